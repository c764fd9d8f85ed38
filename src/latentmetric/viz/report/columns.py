"""What the columns that the metric sees are called, and which given column each is made of.

Without steps they are the columns that the caller gave. Scalers and imputers keep columns, an
encoder makes several of one, and PCA and SVD mix them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from latentmetric.validation.pipelines import Piped, fitted_columns
from latentmetric.viz.report.markup import distinct


@dataclass(frozen=True)
class Column:
    """A column after the steps."""

    name: str
    given: int | None
    """The place of the given column that it is made of; None if it is a mix of several."""


def columns_after(piped: Piped, names: list[str] | None, n_given: int) -> list[Column]:
    """The columns after the steps, in their order; ``names`` are those of the given ones."""
    if names is None:
        names = [f"feature {place:,}" for place in range(n_given)]
    given = [Column(name, place) for place, name in enumerate(names)]
    found = _traced(piped.steps, given)
    told_apart = distinct(column.name for column in found)
    return [Column(name, column.given) for name, column in zip(told_apart, found, strict=True)]


def _traced(step: Any, columns: list[Column]) -> list[Column]:
    """The columns that a step makes of others."""
    kind = type(step).__name__
    if kind == "Pipeline":
        for _, inner in step.steps:
            columns = _traced(inner, columns)
        return columns
    if kind == "ColumnTransformer":
        return [
            column
            for _, inner, places in fitted_columns(step)
            if not (isinstance(inner, str) and inner == "drop")
            for column in _traced(inner, [columns[place] for place in places])
        ]
    if kind == "SimpleImputer":
        return _imputed(step, columns)
    if kind == "OneHotEncoder":
        return _encoded(step, columns)
    if kind in ("PCA", "TruncatedSVD"):
        return [Column(str(name), None) for name in step.get_feature_names_out()]
    return columns


def _imputed(step: Any, columns: list[Column]) -> list[Column]:
    """Columns without any number may be left out; columns that say what was missing come last."""
    kept = [
        column
        for column, filling in zip(columns, step.statistics_, strict=True)
        if filling == filling or step.keep_empty_features
    ]
    if not step.add_indicator:
        return kept
    marked = [columns[place] for place in step.indicator_.features_]
    return kept + [Column(f"{column.name} is missing", column.given) for column in marked]


def _encoded(step: Any, columns: list[Column]) -> list[Column]:
    """A column for each category, or group of infrequent ones, that is not dropped."""
    called = getattr(step, "feature_names_in_", [f"x{place}" for place in range(len(columns))])
    waiting = [str(name) for name in step.get_feature_names_out()]
    found: list[Column] = []
    for place, (column, own) in enumerate(zip(columns, called, strict=True)):
        made, waiting = waiting[: _n_made(step, place)], waiting[_n_made(step, place) :]
        found += [
            Column(f"{column.name} = {name.removeprefix(f'{own}_')}", column.given) for name in made
        ]
    return found


def _n_made(step: Any, place: int) -> int:
    """How many columns an encoder makes of the one at a place."""
    rare = getattr(step, "infrequent_categories_", None)
    n_rare = 0 if rare is None or rare[place] is None else len(rare[place])
    dropped = step.drop_idx_ is not None and step.drop_idx_[place] is not None
    return len(step.categories_[place]) - n_rare + bool(n_rare) - dropped
