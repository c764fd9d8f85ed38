"""``latentmetric neighbors``: the nearest references of the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from latentmetric.cli._output import check_format, print_json, write_columns
from latentmetric.cli._tables import Features, Json, Model, load_model, read_for, reads_tables
from latentmetric.io import Choice


@reads_tables
def neighbors(
    model: Model,
    features: Features,
    k: Annotated[int, typer.Option("-k", min=1, help="Neighbours of each row.")] = 5,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write: .csv .tsv .parquet .npy; else CSV here."),
    ] = None,
    json: Json = False,
    *,
    choice: Choice,
) -> None:
    """The nearest references of the rows of a file, k lines a row, nearest first.

    References are latent examples, or rows of the file given to fit, both numbered from 0. An
    .npy file holds their numbers alone, a row for each row.
    """
    check_format(out)
    fitted = load_model(model)
    table = read_for(fitted, features, None, choice, labelled=False)
    distances, found = fitted.kneighbors(table.rows, k)
    labels = fitted.classes_[fitted._reference_codes[found]]
    if json:
        print_json({"references": found, "labels": labels, "distances": distances})
        return
    numbers = np.arange(len(found))
    if out is not None and out.suffix == ".npy":
        write_columns({"row": numbers} | {str(rank): found[:, rank] for rank in range(k)}, out)
        return
    columns = {
        "row": np.repeat(numbers, k),
        "rank": np.tile(np.arange(1, k + 1), len(found)),
        "reference": found.ravel(),
        "label": labels.ravel(),
        "distance": distances.ravel(),
    }
    write_columns(columns, out)
