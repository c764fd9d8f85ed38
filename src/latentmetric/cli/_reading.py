"""Tables and models that commands read, with notes on what was taken from where."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from typer import Option

from latentmetric import load
from latentmetric.characters import shortened
from latentmetric.cli._messages import describe, note
from latentmetric.io import Choice, Table, open_table
from latentmetric.io.formats import similar_name
from latentmetric.persistence.model_file import ModelFileError, is_model_file
from latentmetric.validation.pipelines import SplitPipeline, split_pipeline

if TYPE_CHECKING:
    from latentmetric.cli._estimators import Steps

STANDARD_INPUT = Path("-")


def _option(*names: str, metavar: str, help: str) -> Any:  # noqa: A002
    """An option in a panel of its own, below those that people change first."""
    return Option(*names, metavar=metavar, help=help, rich_help_panel="Reading files")


@dataclass
class Reading:
    """Options on how to read files."""

    label: Annotated[
        str | None, Option(metavar="COLUMN", help="Column or array of the labels; -1 is the last.")
    ] = None
    id_: Annotated[
        str | None,
        _option("--id", metavar="COLUMN", help="Names of the rows, kept in the answers."),
    ] = None
    ignore: Annotated[
        list[str] | None, _option(metavar="COLUMNS", help="Columns to leave out: a,b; repeatable.")
    ] = None
    key: Annotated[
        str | None, _option(metavar="NAME", help="Array, or column of lists, with the features.")
    ] = None
    header: Annotated[
        bool | None,
        _option("--header/--no-header", metavar=" ", help="Whether the first line names columns."),
    ] = None
    encoding: Annotated[
        str | None, _option(metavar="NAME", help="As latin-1, if it is not UTF-8.")
    ] = None
    decimal: Annotated[
        Literal[".", ","], _option(metavar="MARK", help="Point or comma in numbers.")
    ] = "."

    def choice(self, **more: Any) -> Choice:
        """How to read a table, with more that the options do not say."""
        given = vars(self) | {"ignore": self.ignore or ()} | more
        return Choice(id=given.pop("id_"), **given)


def read_table(
    features: Path, labels: Path | None, choice: Choice, *, models: str = "features come second"
) -> Table:
    """Open a table and note what was read from where.

    ``models`` says where the command takes a model, for whoever gives one in place of rows.
    """
    for path in (features, labels):
        if path is not None and is_model_file(path):
            raise ValueError(f"{path} is a model file, not a file of rows or labels; {models}")
    table = open_table(sys.stdin.buffer if features == STANDARD_INPUT else features, labels, choice)
    for line in table.notes:
        note(line)
    return table


def read_to_fit(
    features: Path, labels: Path | None, reading: Reading, steps: Steps, models: str
) -> Table:
    """Open a table that a model will be fitted to, with the columns that its steps take."""
    categories, missing = steps.one_hot or (), steps.impute is not None
    choice = reading.choice(categories=categories, missing=missing)
    table = read_table(features, labels, choice, models=models)
    given: Any = table.labels
    counts = np.unique(given, return_counts=True)[1]
    n_single = int((counts == 1).sum())
    if 2 * n_single >= len(counts):
        note(
            f"Warning: {n_single:,} of {len(counts):,} classes have a single row, of "
            f"{len(given):,} rows in all; are these really labels? --label names another column"
        )
    return table


def read_for(
    model: SplitPipeline, features: Path, labels: Path | None, reading: Reading, labelled: bool
) -> Table:
    """Open a table of the features that a model was fitted with, by name where both have names.

    The rows of a pipeline have yet to pass its steps; see ``prepared``.
    """
    names, words = model.feature_names, model.text_columns
    if words and (names is None or reading.key):
        raise ValueError(
            f"the model takes words in feature {words[0]} (counted from 0), and commands find "
            "columns of words by their names; fit it with names, without --key"
        )
    if reading.key:
        names = None
    choice = reading.choice(
        labelled=labelled,
        missing=model.takes_missing_values,
        usual=getattr(model.estimator, "columns_in_", {}),
        names=names,
        categories=[names[index] for index in words] if names else (),
    )
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
    with warnings.catch_warnings():  # columns were found by name, in the order of the fit
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return as_numbers(model.prepared(np.asarray(rows)))


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


def load_model(path: Path) -> SplitPipeline:
    """Load a model; an error on another kind of file explains the order of the arguments."""
    try:
        return split_pipeline(load(path))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{describe(error)}{similar_name(path)}") from error
    except ModelFileError as error:
        if is_model_file(path):
            raise
        raise ModelFileError(f"{error}; the model is the first argument") from error


def load_latents(path: Path) -> SplitPipeline:
    """Load a model that has latent examples."""
    model = load_model(path)
    if not hasattr(model.estimator, "latent_examples_"):
        kind = type(model.estimator).__name__
        raise ValueError(f"{path} holds {kind}, which has no latent examples; fit mapml")
    return model
