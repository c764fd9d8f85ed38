"""A misclassified row's values beside those of the two references that explain the mistake.

One is the nearest reference of the predicted class, the other the nearest of the row's own class.
Values are in the units that the caller gave, while distances are those after the steps of a
pipeline: the part of a given column is that of all columns that are made of it.
Time O(m·r) for m references and a metric of rank r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.viz.report.context import Context, Row, head_cell, row_text, table
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.features import is_table
from latentmetric.viz.report.markup import Html, breakable, number, shown, tag

SHOWN_VALUES = 6
"""Features in the table of a row."""


@dataclass(frozen=True)
class _References:
    """What votes: for distances, and in the units that the caller gave."""

    rows: Floats
    given: Row
    codes: Ints


@dataclass(frozen=True)
class _Nearest:
    """The reference of a class that is nearest to a query."""

    code: int
    apart: Floats
    """The query minus the reference, as the metric sees them."""
    given: Row


def has_values(evidence: Evidence, context: Context) -> bool:
    """Whether single values can explain a mistake: rows are a table that no step has mixed."""
    traced = all(column.given is not None for column in context.columns)
    known = _references(evidence) is not None
    return evidence.is_metric and traced and known and is_table(evidence, context)


def values_table(place: int, evidence: Evidence, context: Context) -> Html | None:
    """The values of a query and of two references, the features that mislead most first."""
    references = _references(evidence)
    if references is None:
        return None
    number_ = int(evidence.queries[place])
    row = evidence.given.rows[number_].astype(np.float64)
    classes = int(evidence.verdict.predicted[place]), int(evidence.true[place])
    nearest = [_nearest(row, references, code, evidence) for code in classes]
    found = [one for one in nearest if one is not None]
    pulls = [np.zeros(len(row)) if one is None else _parts(one, evidence) for one in nearest]
    head = [head_cell("feature"), head_cell("this row", "number")]
    head += [
        tag("th", "nearest ", context.label(one.code), scope="col", class_="number")
        for one in found
    ]
    compared = [evidence.given.given[number_], *(one.given for one in found)]
    lines = [
        [
            tag("th", tag("bdi", breakable(_name(context, feature))), scope="row"),
            *(_value(values[feature]) for values in compared),
        ]
        for feature in _misleading(pulls[1] - pulls[0], context)
    ]
    name = row_text(evidence.given, number_)
    file = f"values-row-{evidence.given.numbers[number_]}"
    return table(file, head, lines, aria_label=f"Values of {name}", class_="values")


def _name(context: Context, feature: int) -> str:
    """The name of a given column, or its number."""
    names = context.feature_names
    return f"feature {feature:,}" if names is None else names[feature]


def _references(evidence: Evidence) -> _References | None:
    """The rows that voted; None if only the model knows them, or their values are not known."""
    verdict, latents = evidence.verdict, evidence.shown_latents
    if verdict.voters == "latent" and evidence.latent_codes is not None and latents is not None:
        return _References(evidence.model.latent_examples_, latents, evidence.latent_codes)
    if verdict.voters != "original":
        return None
    which, pool = evidence.references, evidence.originals
    return _References(pool.rows[which], pool.given[which], pool.codes[which])


def _nearest(
    row: Floats, references: _References, code: int, evidence: Evidence
) -> _Nearest | None:
    """None where the class has no reference."""
    own = np.flatnonzero(references.codes == code)
    if not len(own):
        return None
    apart = row - references.rows[own].astype(np.float64)
    squared = np.square(apart @ evidence.model.components_.T).sum(axis=1)
    place = int(squared.argmin())
    return _Nearest(code, apart[place], references.given[own[place]])


def _parts(nearest: _Nearest, evidence: Evidence) -> Floats:
    """The part of each column in the squared distance."""
    components = evidence.model.components_.astype(np.float64)
    parts: Floats = nearest.apart * (nearest.apart @ components.T @ components)
    return parts


def _misleading(pull: Floats, context: Context) -> list[int]:
    """The given columns whose parts of two squared distances differ most in favour of the error."""
    pulls: dict[int, float] = {}
    for column, part in zip(context.columns, pull.tolist(), strict=True):
        if column.given is not None:
            pulls[column.given] = pulls.get(column.given, 0.0) + part
    return sorted(pulls, key=lambda given: (-pulls[given], given))[:SHOWN_VALUES]


def _value(value: Any) -> Html:
    """A number, a word, or a dash where there is none."""
    if value is None or value != value:
        return tag("td", "–", class_="number")
    if not isinstance(value, int | float | np.number):
        return tag("td", tag("bdi", shown(value, 40)), class_="number")
    return tag("td", number(float(value)), class_="number", data_value=repr(float(value)))
