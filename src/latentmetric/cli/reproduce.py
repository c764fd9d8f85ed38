"""``latentmetric reproduce``: the paper's experiments, resumable, with its claims checked."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Experiment(StrEnum):
    """What can be reproduced."""

    mnist = "mnist"
    cifar10 = "cifar10"
    cifar100 = "cifar100"
    imagenet = "imagenet"
    banking77 = "banking77"
    clinc150 = "clinc150"
    all = "all"


def reproduce(
    experiment: Annotated[Experiment, typer.Argument(help="Data set, or all of them.")],
    quick: Annotated[
        bool, typer.Option(help="One trial, 10,000 rows, 64 principal components.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results; default: reproduction, or reproduction-quick."),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials of methods that draw.")] = 5,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data; else $LATENTMETRIC_DATA.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Compute nothing; tell what the folder holds.")
    ] = False,
    imagenet: Annotated[
        Path | None,
        typer.Option(
            help="ImageNet features: .npz of x_train, y_train, x_test, y_test; "
            "else image-like rows of the same size are made."
        ),
    ] = None,
) -> None:
    """Run the paper's comparison, draw its figures and tables, and check its claims.

    Finished cells are kept in the folder and not computed again.
    """
    from latentmetric.reproduction import run as reporting
    from latentmetric.reproduction.sources import Source

    names = [e.value for e in Experiment if e is not Experiment.all]
    chosen = names if experiment is Experiment.all else [experiment.value]
    source = Source(data, imagenet)
    out = out or Path("reproduction-quick" if quick else "reproduction")
    do = reporting.report if report else reporting.run
    do(chosen, quick=quick, out=out, n_trials=1 if quick else trials, source=source)
