"""``latentmetric predict``: labels, or probabilities, for the rows of a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from latentmetric.cli._csv import Columns
from latentmetric.cli._output import (
    AnswersOut,
    Overwrite,
    check_answers,
    check_id_name,
    ids_of,
    numbered,
    print_json,
    write_array,
    write_columns,
)
from latentmetric.cli._preparing import prepared
from latentmetric.cli._tables import Features, Json, Model, load_model, read_for, reads_tables
from latentmetric.io import Choice

OWN_COLUMNS = ("row", "label")
"""The columns before the probabilities."""


@reads_tables
def predict(
    model: Model,
    features: Features,
    out: AnswersOut = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add each class's share of the vote.")
    ] = False,
    reject_below: Annotated[
        float | None,
        typer.Option(help="Reject rows whose score, minus a distance, is lower."),
    ] = None,
    reject_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Reject about this share of rows like those of fit; farther ones, too.",
        ),
    ] = None,
    reject_label: Annotated[
        str | None,
        typer.Option(help="Label of rejected rows. Default: unknown, or -1 among numbers."),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    *,
    choice: Choice,
) -> None:
    """Predict labels, or probabilities, for the rows of a file.

    Rows are numbered from 0; --id puts a column of the file before that number. With --proba there
    is a column for each class under its name; that of a class called row or label is "probability
    of row" or "probability of label". An .npy file holds the labels alone, or with --proba the
    probabilities alone, columns in the order of the classes. --json prints all answers, also where
    -o writes them to a file.

    Rows that are unlike all that fit has seen can be rejected: those with a score below a number,
    or with --reject-share below the score that this share of the rows held out of fit had.
    """
    if reject_below is not None and reject_share is not None:
        raise typer.BadParameter("give --reject-below or --reject-share, not both")
    check_answers(out, [model, features], overwrite)
    piped = load_model(model)
    fitted = piped.estimator
    rejecting = _rejecting(fitted, reject_below, reject_share, reject_label)
    table = read_for(piped, features, None, choice, labelled=False)
    check_id_name(table.id_name, ["label"])
    rows = prepared(piped, table.rows)
    shares = fitted.predict_proba(rows) if proba else None
    if shares is None or rejecting:
        labels = fitted.predict(rows, **rejecting)
    else:
        labels = fitted.classes_[shares.argmax(1)]
    answers: Columns = {"label": labels}
    if shares is not None:
        names = _share_names(fitted.classes_.tolist(), table.id_name)
        answers |= dict(zip(names, shares.T, strict=True))
    if out is not None and out.suffix == ".npy":
        write_array(labels if shares is None else shares, out)
    elif out is not None or not json:
        write_columns(numbered(len(labels), table) | answers, out)
    if json:
        print_json(ids_of(table) | answers)


def _rejecting(
    fitted: Any, below: float | None, share: float | None, label: str | None
) -> dict[str, Any]:
    """The arguments of ``predict`` that reject rows."""
    if share is not None:
        if not hasattr(fitted, "reject_threshold"):
            raise ValueError(
                f"{type(fitted).__name__} keeps no scores of held-out rows; use --reject-below"
            )
        below = fitted.reject_threshold(share)
    if below is None:
        if label is not None:
            raise typer.BadParameter("--reject-label needs --reject-below or --reject-share")
        return {}
    return {"reject_below": below, "reject_label": _reject_label(fitted.classes_.dtype.kind, label)}


def _reject_label(kind: str, label: str | None) -> Any:
    """The label of rejected rows, of the kind that the classes are."""
    if kind in "UO":
        return "unknown" if label is None else label
    try:
        return -1 if label is None else (float(label) if kind == "f" else int(label))
    except ValueError as error:
        raise typer.BadParameter(
            f"--reject-label must be a number, as the model's labels are, such as -1, got {label!r}"
        ) from error


def _share_names(classes: list[Any], id_name: str | None) -> list[str]:
    """The names of the classes, changed where another column already has that name."""
    names = [str(label) for label in classes]
    own_columns = {*OWN_COLUMNS, *([] if id_name is None else [id_name])}
    taken = {*own_columns, *names}
    for own in own_columns:
        if own in names:
            place = names.index(own)
            while names[place] in taken:
                names[place] = f"probability of {names[place]}"
    return names
