"""Shared by commands that read tables and models: arguments, and notes on what was read."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from latentmetric.characters import shortened
from latentmetric.cli._errors import in_words, note
from latentmetric.cli._signature import made_of, option
from latentmetric.io import (
    BOOLEANS,
    Choice,
    Table,
    as_numbers,
    open_table,
    similar_name,
    suffixes,
)
from latentmetric.persistence.model_file import ModelFileError, holds_model, is_model_file
from latentmetric.validation.pipelines import Piped

STANDARD_INPUT = Path("-")

Features = Annotated[
    Path,
    typer.Argument(help=f"File of the rows: {' '.join(suffixes())}; - is CSV on standard input."),
]
Labels = Annotated[
    Path | None,
    typer.Argument(help="File of their labels. Default: a column or array of the first file."),
]
Model = Annotated[Path, typer.Argument(help="A model file that [bold]fit[/] has written.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_PANEL = "Reading files"


class Decimal(StrEnum):
    """The mark before the decimals of a number."""

    point = "."
    comma = ","


def _choice(given: Any) -> Choice:
    return Choice(**given | {"ignore": tuple(given["ignore"] or ())})


def _reading(name: str, kind: Any, *flags: str, text: str, default: Any = None) -> Any:
    annotation = Annotated[kind, typer.Option(*flags, help=text, rich_help_panel=_PANEL)]
    return option(name, annotation, default)


reads_tables = made_of(
    "choice",
    [
        _reading(
            "key", str | None, "--key", text="Array, data set or column of lists with the rows."
        ),
        _reading(
            "label",
            str | None,
            "--label",
            text="Column or array with the labels; a number counts columns, -1 is the last.",
        ),
        _reading(
            "id",
            str | None,
            "--id",
            text="Column or array that identifies the rows; not a feature, kept in the answers.",
        ),
        _reading(
            "ignore",
            list[str] | None,
            "--ignore",
            text="Columns to leave out, with commas between; may be repeated.",
        ),
        _reading(
            "header",
            bool | None,
            "--header/--no-header",
            text="Whether the first line of text names the columns. Default: detected if clear.",
        ),
        _reading(
            "encoding",
            str | None,
            "--encoding",
            text="Encoding of text, such as latin-1. Default: UTF-8.",
        ),
        _reading(
            "decimal",
            Decimal,
            "--decimal",
            text="Decimal mark in text.",
            default=Decimal.point,
        ),
    ],
    _choice,
)
"""Options that say how to read files, for a command that takes a ``choice``."""


def read_table(
    features: Path, labels: Path | None, choice: Choice, *, models: str = "features come second"
) -> Table:
    """Open a table and note on standard error what was read from where.

    ``models`` says where the command takes a model, for whoever gives one in place of rows.
    """
    for path in (features, labels):
        if path is not None and holds_model(path):
            raise ValueError(f"{path} is a model file, not a file of rows or labels; {models}")
    if features == STANDARD_INPUT and sys.stdin is None:
        raise ValueError("features are read from standard input, but it is closed")
    source = sys.stdin.buffer if features == STANDARD_INPUT else features
    table = open_table(source, labels, choice)
    for line in table.notes:
        note(line)
    return table


def read_for(
    model: Piped, features: Path, labels: Path | None, choice: Choice, labelled: bool
) -> Table:
    """Open a table of the features that a model was fitted with, by name where both have them.

    Rows are as the file has them; those of a pipeline have yet to pass its steps.
    """
    columns = getattr(model.estimator, "columns_in_", {})
    choice = replace(
        choice,
        labelled=labelled,
        missing=model.takes_missing_values,
        for_model=True,
        usual_label=columns.get("label"),
        usual_id=columns.get("id"),
    )
    names, words = model.feature_names, model.text_columns
    if words and (names is None or choice.key):
        raise ValueError(
            f"the model takes words in feature {words[0]} (counted from 0), and commands find "
            "columns of words by their names; fit it with names, without --key"
        )
    if names is not None and not choice.key:
        choice = replace(choice, names=names, categories=[names[place] for place in words])
    table, n_features = read_table(features, labels, choice), model.first.n_features_in_
    if table.rows.shape[1] != n_features:
        raise ValueError(
            f"{features} has {table.rows.shape[1]} features, but the model was fitted with "
            f"{n_features}"
        )
    _note_unknown_words(model, table)
    if table.labels is None:
        return table
    return replace(table, labels=_like(table.labels, model.estimator))


def _note_unknown_words(model: Piped, table: Table) -> None:
    """Say which words the steps of a model encode as none of their categories."""
    names = table.feature_names or []
    for place, known in model.categories.items():
        if place not in table.words:
            continue
        unknown = [word for word in table.rows[:, place].tolist() if word not in known]
        if unknown:
            note(
                f"Warning: column {names[place]!r} has a value that the model was "
                f"not fitted with in {len(unknown):,} of {len(table.rows):,} rows, such as "
                f"{shortened(unknown[0], 40)!r}; it counts as none of the known ones"
            )


def note_rare_labels(labels: Any) -> None:
    """Say so where labels look like numbers or names of rows: most classes would have one row."""
    counts = np.unique(labels, return_counts=True)[1]
    n_single = int((counts == 1).sum())
    if 2 * n_single >= len(counts):
        note(
            f"Warning: {n_single:,} of {len(counts):,} classes have a single row, of "
            f"{len(labels):,} rows in all; are these really labels? --label names another column"
        )


def _like(labels: Any, model: Any) -> Any:
    """Labels as text or as numbers, as the model's classes are: a file may have others beside."""
    is_text = labels.dtype.kind in "UO"
    if model.classes_.dtype.kind in "UO":
        return labels if is_text else labels.astype(str)
    if model.classes_.dtype.kind == "b" and is_text:
        words = [word.lower() for word in labels.tolist()]
        return np.array(words) == "true" if BOOLEANS.keys() >= set(words) else labels
    return as_numbers(labels) if is_text and model.classes_.dtype.kind in "iuf" else labels


def load_latents(path: Path) -> Piped:
    """Load a model that has latent examples."""
    model = load_model(path, features_follow=False)
    if not hasattr(model.estimator, "latent_examples_"):
        kind = type(model.estimator).__name__
        raise ValueError(f"{path} holds {kind}, which has no latent examples; fit mapml")
    return model


def load_model(path: Path, features_follow: bool = True) -> Piped:
    """Load a model; an error on another kind of file explains the order of the arguments."""
    from latentmetric import load

    try:
        return Piped.of(load(path))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{in_words(error)}{similar_name(path)}") from error
    except ModelFileError as error:
        if is_model_file(path) or not features_follow:
            raise
        message = f"{error}; the model is the first argument, features come second"
        raise ModelFileError(message) from error
