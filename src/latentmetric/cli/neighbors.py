"""``latentmetric neighbors``: the nearest references of the rows of a file."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

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

COLUMNS = ("rank", "reference", "label", "distance")
"""Of the answers in files and on standard output, after the row."""

KEYS = ("references", "labels", "distances")
"""Of the answers in JSON: a list for each row."""


@reads_tables
def neighbors(
    model: Model,
    features: Features,
    k: Annotated[int, typer.Option("-k", min=1, help="Neighbours of each row.")] = 5,
    out: AnswersOut = None,
    overwrite: Overwrite = False,
    json: Json = False,
    *,
    choice: Choice,
) -> None:
    """Find the nearest references of the rows of a file, k lines a row, nearest first.

    References are latent examples, or rows of the file given to fit, both numbered from 0. --id
    puts a column of the file before the number of the row. An .npy file holds the numbers of the
    references alone, a row for each row. --json prints all answers, also where -o writes them to a
    file.
    """
    check_answers(out, [model, features], overwrite)
    piped = load_model(model)
    fitted = piped.estimator
    table = read_for(piped, features, None, choice, labelled=False)
    check_id_name(table.id_name, [*(COLUMNS if out or not json else ()), *(KEYS if json else ())])
    distances, found = fitted.kneighbors(prepared(piped, table.rows), k)
    labels = fitted.classes_[fitted.model_.codes[found]]
    if out is not None and out.suffix == ".npy":
        write_array(found, out)
    elif out is not None or not json:
        rows = {name: np.repeat(column, k) for name, column in numbered(len(found), table).items()}
        ranks = np.tile(np.arange(1, k + 1), len(found))
        columns = (ranks, found.ravel(), labels.ravel(), distances.ravel())
        write_columns(rows | dict(zip(COLUMNS, columns, strict=True)), out)
    if json:
        print_json(ids_of(table) | dict(zip(KEYS, (found, labels, distances), strict=True)))
