"""Steps before the estimator: the options that ask for them, and rows that pass them.

The steps are those of a scikit-learn pipeline, which the model file holds, so that later commands
read and prepare their rows in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder

from latentmetric.cli._signature import made_of, option
from latentmetric.io import Choice, RowFile, Table
from latentmetric.validation.pipelines import Piped, fitted_columns

_PANEL = "Steps before the estimator"

FEWEST_ROWS, MOST_DIFFERENT = 20, 0.5
"""From so many rows on, a column of categories may have different values in this share of them."""


class Filling(StrEnum):
    """What takes the place of a missing number: of its column, the…"""

    median = "median"
    mean = "mean"
    most_frequent = "most_frequent"


@dataclass(frozen=True)
class Preparation:
    """The steps that were asked for."""

    impute: Filling | None = None
    normalize: bool = False
    one_hot: Sequence[str] = ()

    @property
    def asked(self) -> list[str]:
        """The names of the options that were given."""
        given = {"impute": self.impute, "normalize": self.normalize, "one_hot": self.one_hot}
        return [name for name, value in given.items() if value]

    def choice(self, choice: Choice) -> Choice:
        """How to read a table for these steps."""
        return replace(choice, missing=self.impute is not None, categories=self.one_hot)

    def steps(self, table: Table) -> Pipeline | None:
        """The steps, not fitted, for the columns of a table; None if there are none."""
        _refuse_identifiers(table)
        steps: list[tuple[str, Any]] = []
        if table.words:
            steps.append(("columns", self._columns(table)))
        elif self.impute is not None:
            steps.append(("impute", SimpleImputer(strategy=self.impute.value)))
        if self.normalize:
            steps.append(("normalize", Normalizer()))
        return Pipeline(steps) if steps else None

    def _columns(self, table: Table) -> ColumnTransformer:
        numbers = [p for p in range(table.rows.shape[1]) if p not in table.words]
        filling: Any = "passthrough"
        if self.impute is not None:
            filling = SimpleImputer(strategy=self.impute.value)
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        parts = [("numbers", filling, numbers)] if numbers else []
        return ColumnTransformer([*parts, ("one_hot", encoder, table.words)])


def _preparation(given: Mapping[str, Any]) -> Preparation:
    return Preparation(given["impute"], given["normalize"], tuple(given["one_hot"] or ()))


prepares = made_of(
    "preparation",
    [
        option(
            "impute",
            Annotated[
                Filling | None,
                typer.Option(
                    help="Fill missing numbers in with this value of their column.",
                    rich_help_panel=_PANEL,
                ),
            ],
        ),
        option(
            "normalize",
            Annotated[
                bool,
                typer.Option(
                    "--normalize",
                    help="Scale each row to length 1, so that only directions count.",
                    rich_help_panel=_PANEL,
                ),
            ],
            False,
        ),
        option(
            "one_hot",
            Annotated[
                list[str] | None,
                typer.Option(
                    help="Columns of categories, with commas between; may be repeated.",
                    rich_help_panel=_PANEL,
                ),
            ],
        ),
    ],
    _preparation,
)
"""Options that ask for steps, for a command that takes a ``preparation``."""


def fitted_steps(preparation: Preparation, table: Table) -> tuple[Pipeline | None, Any]:
    """The steps, fitted to the rows of a table, and the rows after them."""
    steps = preparation.steps(table)
    if steps is None:
        return None, table.rows
    rows = np.asarray(table.rows)
    _refuse_empty_columns(rows, table)
    prepared = steps.fit_transform(rows)
    if table.feature_names is not None:
        _name_features(steps[0], np.array(table.feature_names, dtype=object))
    return steps, _as_numbers(prepared)


def _name_features(step: Any, names: np.ndarray[Any, Any]) -> None:
    """Give the names of its columns to a step that was fitted to an array, and to its parts."""
    step.feature_names_in_ = names
    if isinstance(step, ColumnTransformer):
        for _, part, places in fitted_columns(step):
            if not isinstance(part, str):
                _name_features(part, names[places])


def _refuse_identifiers(table: Table) -> None:
    """Refuse words that most rows have to themselves: as categories they would tell nothing."""
    rows = table.rows
    for place in table.words:
        n_different = len({str(word) for word in rows[:, place]})
        if len(rows) >= FEWEST_ROWS and n_different > MOST_DIFFERENT * len(rows):
            raise ValueError(
                f"column {_column(table, place)} has {n_different:,} different values in "
                f"{len(rows):,} rows, so they name rows and are no categories; leave it out with "
                "--ignore, or keep it beside the answers with --id"
            )


def _column(table: Table, place: int) -> str:
    names = table.feature_names
    return f"number {place + 1}" if names is None else repr(names[place])


def _refuse_empty_columns(rows: np.ndarray[Any, Any], table: Table) -> None:
    """Refuse a column without any number: there is nothing to fill it in with."""
    for place in range(rows.shape[1]):
        if place in table.words:
            continue
        if np.isnan(rows[:, place].astype(np.float64)).all():
            raise ValueError(
                f"column {_column(table, place)} has no number in any of {len(rows):,} rows; leave "
                "it out with --ignore"
            )


def joined(steps: Pipeline | None, estimator: Any) -> Any:
    """The model to save: the estimator, after the steps if there are any."""
    if steps is None:
        return estimator
    return Pipeline([*steps.steps, (type(estimator).__name__.lower(), estimator)])


class _PreparedRows(RowFile):
    """Rows of a file that pass the steps block by block."""

    def __init__(self, rows: RowFile, piped: Piped) -> None:
        self._rows, self._piped = rows, piped
        first = self._read(0, 1)
        self.shape, self.dtype = (len(rows), first.shape[1]), first.dtype

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        return _as_numbers(self._piped.prepared(self._rows[slice(start, stop)]))


def prepared(piped: Piped, rows: Any) -> Any:
    """Rows of a table as the estimator of a model takes them."""
    if piped.steps is None:
        return rows
    if isinstance(rows, RowFile):
        return _PreparedRows(rows, piped)
    return _as_numbers(piped.prepared(rows))


def _as_numbers(rows: Any) -> np.ndarray[Any, Any]:
    """Rows without objects: numbers that stood beside words are objects until here."""
    found = np.asarray(rows)
    return found.astype(np.float64) if found.dtype.kind == "O" else found
