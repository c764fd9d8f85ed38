"""Tables and models that commands read, with notes on what was taken from where."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric import load
from latentmetric.characters import shortened
from latentmetric.cli._messages import describe, note
from latentmetric.io import Choice, Table, open_table
from latentmetric.io.formats import similar_name
from latentmetric.persistence.model_file import ModelFileError, holds_model, is_model_file
from latentmetric.validation.pipelines import SplitPipeline, split_pipeline

STANDARD_INPUT = Path("-")


def read_table(
    features: Path, labels: Path | None, choice: Choice, *, models: str = "features come second"
) -> Table:
    """Open a table and note what was read from where.

    ``models`` says where the command takes a model, for whoever gives one in place of rows.
    """
    for path in (features, labels):
        if path is not None and holds_model(path):
            raise ValueError(f"{path} is a model file, not a file of rows or labels; {models}")
    table = open_table(sys.stdin.buffer if features == STANDARD_INPUT else features, labels, choice)
    for line in table.notes:
        note(line)
    return table


def read_for(
    model: SplitPipeline, features: Path, labels: Path | None, choice: Choice, labelled: bool
) -> Table:
    """Open a table of the features that a model was fitted with, by name where both have names.

    The rows of a pipeline have yet to pass its steps; see ``prepared``.
    """
    choice = replace(
        choice,
        labelled=labelled,
        missing=model.takes_missing_values,
        usual=getattr(model.estimator, "columns_in_", {}),
    )
    names, words = model.feature_names, model.text_columns
    if words and (names is None or choice.key):
        raise ValueError(
            f"the model takes words in feature {words[0]} (counted from 0), and commands find "
            "columns of words by their names; fit it with names, without --key"
        )
    if names is not None and not choice.key:
        choice = replace(choice, names=names, categories=[names[index] for index in words])
    table, n_features = read_table(features, labels, choice), model.first.n_features_in_
    if table.rows.shape[1] != n_features:
        raise ValueError(
            f"{features} has {table.rows.shape[1]} features, but the model was fitted with "
            f"{n_features}"
        )
    _note_unknown_words(model, table)
    if table.labels is None:
        return table
    return replace(table, labels=_like(table.labels, model.estimator.classes_))


def prepared(model: SplitPipeline, rows: Any) -> Any:
    """Rows of a table as the estimator of a model takes them."""
    if model.steps is None:
        return rows
    rows, names = np.asarray(rows), model.feature_names
    if names is None:
        return as_numbers(model.prepared(rows))
    from pyarrow import table  # steps that were fitted to a frame may ask for columns by name

    columns = rows.T if rows.dtype.kind != "O" else [column.tolist() for column in rows.T]
    return as_numbers(model.prepared(table(dict(zip(names, columns, strict=True)))))


def as_numbers(rows: Any) -> np.ndarray[Any, Any]:
    """Rows without objects: numbers that stood beside words are objects until here."""
    found = np.asarray(rows)
    return found.astype(np.float64) if found.dtype.kind == "O" else found


def _note_unknown_words(model: SplitPipeline, table: Table) -> None:
    """Say which words the steps of a model encode as none of their categories."""
    for index, known in model.categories.items():
        if index not in table.words:
            continue
        unknown = [word for word in table.rows[:, index].tolist() if word not in known]
        if unknown and table.feature_names:
            note(
                f"Warning: column {table.feature_names[index]!r} has a value that the model was "
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


def _like(labels: Any, classes: Any) -> Any:
    """Labels of the type of the model's classes, if all can be: a file may write them otherwise."""
    if classes.dtype.kind in "UO":
        return labels if labels.dtype.kind in "UO" else labels.astype(str)
    if labels.dtype.kind not in "UO":
        return labels
    if classes.dtype.kind == "b":
        words = np.char.lower(labels.astype(str))
        return words == "true" if set(words.tolist()) <= {"true", "false"} else labels
    try:
        return labels.astype(np.float64)
    except ValueError:
        return labels


def load_model(path: Path, features_follow: bool = True) -> SplitPipeline:
    """Load a model; an error on another kind of file explains the order of the arguments."""
    try:
        return split_pipeline(load(path))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{describe(error)}{similar_name(path)}") from error
    except ModelFileError as error:
        if is_model_file(path) or not features_follow:
            raise
        message = f"{error}; the model is the first argument, features come second"
        raise ModelFileError(message) from error


def load_latents(path: Path) -> SplitPipeline:
    """Load a model that has latent examples."""
    model = load_model(path, features_follow=False)
    if not hasattr(model.estimator, "latent_examples_"):
        kind = type(model.estimator).__name__
        raise ValueError(f"{path} holds {kind}, which has no latent examples; fit mapml")
    return model
