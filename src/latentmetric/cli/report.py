"""``latentmetric report`` and ``demo``: pages that show what a model does and where it fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from latentmetric.cli import _options as option
from latentmetric.cli._estimators import joined
from latentmetric.cli._messages import print_json, say
from latentmetric.cli._output import check_output
from latentmetric.cli._progress import show_progress
from latentmetric.cli._reading import STANDARD_INPUT, Reading, load_model, read_for


def report(
    model: option.Model,
    features: option.Features,
    labels: option.Labels = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path(
        "report.html"
    ),
    train: Annotated[
        Path | None,
        typer.Option(help="Rows the model was fitted on; the verdict needs them."),
    ] = None,
    train_labels: Annotated[
        Path | None, typer.Option(help="Labels of the --train rows, if in a file of their own.")
    ] = None,
    image_shape: Annotated[
        str | None,
        typer.Option(metavar="SHAPE", help="Shape of rows that are images, as 28x28 or 32x32x3."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Fit no tuned k-NN, logistic regression, SVC and map."),
    ] = False,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
    reading: Reading,
) -> None:
    """Write an HTML report: data, errors, map, latent examples, confusions.

    Give test rows, and with --train the rows that the model was fitted on: the page opens with a
    verdict, a comparison with tuned k-NN, logistic regression and SVC. Without --train,
    there is no verdict. --id shows rows by a column of the file. The page is one file that opens
    offline and sends no request.
    """
    from latentmetric.viz import write_report

    shape = _shape(image_shape)
    if features == train == STANDARD_INPUT:
        message = "standard input can be read only once, and the test rows are read from it"
        raise typer.BadParameter(message, param_hint="--train")
    check_output(out, "report", [model, features, labels, train, train_labels], overwrite)
    loaded = load_model(model)
    table = read_for(loaded, features, labels, reading, labelled=True)
    known = None if train is None else read_for(loaded, train, train_labels, reading, labelled=True)
    with show_progress(each_round=False) as progress:
        written = write_report(
            joined(loaded.steps, loaded.estimator),
            table.rows,
            table.labels,
            out,
            X_train=None if known is None else known.rows,
            y_train=None if known is None else known.labels,
            image_shape=shape,
            row_names=table.ids,
            train_names=None if known is None else known.ids,
            title=title,
            source=features.name,
            quick=quick,
            on_start=progress.begin,
        )
    if json:
        print_json({"report": str(written), "bytes": written.stat().st_size})
    else:
        say(f"{written}: {written.stat().st_size / 1e6:.1f} MB, opens in any browser")


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d+x\d+(x\d+)?", text):
        message = f"{text!r} is not height x width, as 28x28, or with channels, as 32x32x3"
        raise typer.BadParameter(message, param_hint="--image-shape")
    return tuple(int(size) for size in text.split("x"))


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
) -> None:
    """Show what this is for, on digits, in less than a minute; write a report.

    Compares tuned k-NN, logistic regression, SVC and MaPML on clean images, with noise and with
    wrong labels, turns away images of an unknown digit, and then adds that digit to the model.
    """
    from latentmetric import demo as digits

    digits.show(out)
