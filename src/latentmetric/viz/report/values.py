"""A misclassified row's values beside those of the two references that explain the mistake.

One is the nearest reference of the predicted class, the other the nearest of the row's own class.
Time O(m·r) for m references and a metric of rank r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.viz.report.context import Context, head_cell, row_text, table
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.features import feature_name
from latentmetric.viz.report.markup import Html, breakable, number, tag

SHOWN_VALUES = 6
"""Features in the table of a row."""


@dataclass(frozen=True)
class _References:
    """What votes, in the caller's coordinates."""

    rows: Floats
    codes: Ints


def values_table(place: int, evidence: Evidence, context: Context) -> Html | None:
    """The values of a query and of two references, the features that mislead most first."""
    references = _references(evidence)
    if references is None:
        return None
    number_ = int(evidence.queries[place])
    row = evidence.given.rows[number_].astype(np.float64)
    classes = int(evidence.verdict.predicted[place]), int(evidence.true[place])
    nearest = [_nearest(row, references, code, evidence) for code in classes]
    shown = [one for one in nearest if one is not None]
    features = _misleading(row, nearest, evidence)
    head = [head_cell("feature"), head_cell("this row", "number")]
    head += [
        tag("th", "nearest ", context.label(code), scope="col", class_="number")
        for code, one in zip(classes, nearest, strict=True)
        if one is not None
    ]
    lines = [
        [
            tag("th", tag("bdi", breakable(feature_name(context, feature))), scope="row"),
            *(_value(float(one[feature])) for one in (row, *shown)),
        ]
        for feature in features
    ]
    name = row_text(evidence.given, number_)
    file = f"values-row-{evidence.given.numbers[number_]}"
    return table(file, head, lines, aria_label=f"Values of {name}", class_="values")


def _references(evidence: Evidence) -> _References | None:
    """The rows that voted; None if only the model knows them."""
    verdict = evidence.verdict
    if verdict.voters == "latent" and evidence.latent_codes is not None:
        return _References(evidence.model.latent_examples_, evidence.latent_codes)
    if verdict.voters != "original":
        return None
    which = evidence.references
    return _References(evidence.originals.rows[which], evidence.originals.codes[which])


def _nearest(row: Floats, references: _References, code: int, evidence: Evidence) -> Floats | None:
    """The reference of a class that is nearest to the row; None where the class has none."""
    own = np.flatnonzero(references.codes == code)
    if not len(own):
        return None
    rows = references.rows[own].astype(np.float64)
    apart = (rows - row) @ evidence.model.components_.T
    nearest: Floats = rows[np.square(apart).sum(axis=1).argmin()]
    return nearest


def _misleading(row: Floats, nearest: list[Floats | None], evidence: Evidence) -> list[int]:
    """The features whose parts of the two squared distances differ most in favour of the error."""
    components = evidence.model.components_.astype(np.float64)
    parts = [
        np.zeros(len(row))
        if one is None
        else (row - one) * ((row - one) @ components.T @ components)
        for one in nearest
    ]
    pull = parts[1] - parts[0]
    return [int(feature) for feature in np.argsort(-pull, kind="stable")[:SHOWN_VALUES]]


def _value(value: float) -> Html:
    return tag("td", number(value), class_="number", data_value=repr(value))
