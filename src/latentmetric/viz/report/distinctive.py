"""The features in which a row differs most from the mean of all rows, in the units given."""

from __future__ import annotations

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.viz.report.context import Context, Row
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, breakable, join, number, shown, tag

DISTINCTIVE_FEATURES = 4
"""Features listed for each latent example where rows are not images."""


class Distinctive:
    """Lists distinctive features of rows; words among the features are listed after them."""

    def __init__(self, rows: Row, names: list[str]) -> None:
        self._names = names
        self._words = [
            place
            for place, column in enumerate(rows.T)
            if rows.dtype.kind == "O" and _is_text(column)
        ]
        self._numbers = np.setdiff1d(np.arange(rows.shape[1]), self._words)
        table = rows
        if rows.dtype.kind == "O":
            table = rows[:, self._numbers].astype(np.float64)  # None becomes NaN
        has_gaps = table.dtype.kind == "f" and bool(np.isnan(table.sum()))
        known = np.ma.masked_invalid(table) if has_gaps else table
        self._mean: Floats = np.ma.filled(known.mean(axis=0), 0.0)
        self._deviation: Floats = np.ma.filled(known.std(axis=0), 0.0)

    @classmethod
    def of(cls, evidence: Evidence, context: Context) -> Distinctive | None:
        """Of the original rows; None where features have no names."""
        if context.feature_names is None:
            return None
        return cls(evidence.originals.given, context.feature_names)

    def of_row(self, row: Row) -> Html:
        """The list for one row."""
        numbers = row[self._numbers].astype(self._mean.dtype)
        safe = np.where(self._deviation > 0, self._deviation, 1)
        apart = np.nan_to_num((numbers - self._mean) / safe)
        order: Ints = np.argsort(-np.abs(apart), kind="stable")[:DISTINCTIVE_FEATURES]
        values = [
            (self._numbers[place], f"{number(float(numbers[place]))} ",
             tag("small", f"({_signed(float(apart[place]))} sd)"))
            for place in order
        ]  # fmt: skip
        words = [
            (place, tag("bdi", shown(row[place], 40)), None)
            for place in self._words[:DISTINCTIVE_FEATURES]
        ]
        lines = join(
            join((tag("dt", tag("bdi", breakable(self._names[place]))), tag("dd", *said)))
            for place, *said in [*values, *words]
        )
        return tag("dl", lines, class_="distinctive")


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _is_text(column: Row) -> bool:
    return any(isinstance(value, str) for value in column)
