"""``latentmetric predict``: labels, or probabilities, of the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from latentmetric.cli._output import Columns, check_format, print_json, write_columns
from latentmetric.cli._tables import Features, Json, Model, load_model, read_for, reads_tables
from latentmetric.io import Choice

OWN_COLUMNS = ("row", "label")
"""What stands before the probabilities."""


@reads_tables
def predict(
    model: Model,
    features: Features,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write: .csv .tsv .parquet .npy; else CSV here."),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add each class's share of the vote.")
    ] = False,
    json: Json = False,
    *,
    choice: Choice,
) -> None:
    """Labels, or probabilities, of the rows of a file.

    Rows are numbered from 0. With --proba there is a column for each class under its name; that
    of a class called row or label is "probability of row" or "probability of label". An .npy
    file holds the labels alone, or with --proba the probabilities alone, columns in the order of
    the classes.
    """
    check_format(out)
    fitted = load_model(model)
    table = read_for(fitted, features, None, choice, labelled=False)
    if not proba:
        columns: Columns = {"label": fitted.predict(table.rows)}
    else:
        shares = fitted.predict_proba(table.rows)
        columns = {"label": fitted.classes_[shares.argmax(axis=1)]}
        columns |= dict(zip(_share_names(fitted.classes_.tolist()), shares.T, strict=True))
    if json:
        print_json(columns)
        return
    numbered = {"row": np.arange(len(table.rows))} | columns
    if proba and out is not None and out.suffix == ".npy":
        del numbered["label"]
    write_columns(numbered, out)


def _share_names(classes: list[Any]) -> list[str]:
    """The classes' names, but for those that are already taken by the columns before them."""
    names = [str(label) for label in classes]
    taken = {*OWN_COLUMNS, *names}
    for own in OWN_COLUMNS:
        if own in names:
            place = names.index(own)
            while names[place] in taken:
                names[place] = f"probability of {names[place]}"
    return names
