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
    """
    check_answers(out, [model, features], overwrite)
    fitted = load_model(model)
    table = read_for(fitted, features, None, choice, labelled=False)
    check_id_name(table.id_name, ["label"])
    shares = fitted.predict_proba(table.rows) if proba else None
    labels = fitted.predict(table.rows) if shares is None else fitted.classes_[shares.argmax(1)]
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
