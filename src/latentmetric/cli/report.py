"""``latentmetric report``: one page that shows what a model has learned and where it fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from latentmetric.cli._output import Overwrite, check_output, print_json, say
from latentmetric.cli._preparing import joined
from latentmetric.cli._progress import followed
from latentmetric.cli._tables import (
    STANDARD_INPUT,
    Features,
    Json,
    Labels,
    Model,
    load_model,
    read_for,
    reads_tables,
)
from latentmetric.io import Choice
from latentmetric.viz import write_report


@reads_tables
def report(
    model: Model,
    features: Features,
    labels: Labels = None,
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
        str | None, typer.Option(help="Shape of rows that are images, such as 28x28 or 32x32x3.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Fit no k-NN, logistic regression, SVC and map for the page."),
    ] = False,
    overwrite: Overwrite = False,
    json: Json = False,
    choice: Choice,
) -> None:
    """Write an HTML report: data, errors, map, latent examples, confusions.

    Give test rows, and with --train the rows that the model was fitted on. The page opens with a
    verdict: k-NN, logistic regression and SVC are tuned on the training rows and compared with the
    model on the test rows. Without --train there is no verdict, a part of the test rows takes the
    place of the training rows, and the page says so. Rows are shown by their numbers, counted from
    0, or by the column that --id names. The page is one file, opens offline and sends no request.
    """
    shape = _shape(image_shape)
    if features == train == STANDARD_INPUT:
        raise typer.BadParameter(
            "standard input can be read only once, and the test rows are read from it; name a file",
            param_hint="--train",
        )
    check_output(out, "report", [model, features, labels, train, train_labels], overwrite)
    piped = load_model(model)
    table = read_for(piped, features, labels, choice, labelled=True)
    known = None if train is None else read_for(piped, train, train_labels, choice, labelled=True)
    with followed(each_round=False) as follower:
        written = write_report(
            joined(piped.steps, piped.estimator),
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
            about_to=follower.begin,
        )
    if json:
        print_json({"report": str(written), "bytes": written.stat().st_size})
    else:
        say(f"{written}: {written.stat().st_size / 1e6:.1f} MB, opens in any browser")


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d+x\d+(x\d+)?", text):
        raise typer.BadParameter(
            f"{text!r} is not height x width, as 28x28, or with channels, as 32x32x3",
            param_hint="--image-shape",
        )
    return tuple(int(size) for size in text.split("x"))
