"""Where the model fails: classes, confused pairs, misclassified rows, and its probabilities.

Where rows are a table, the values of a misclassified row stand beside those of two references that
explain the mistake: the nearest of the predicted class, and the nearest of its own. Time O(m·r) a
row for m references and a metric of rank r.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from latentmetric.core.types import Floats, Ints
from latentmetric.evaluation.calibration import BINS
from latentmetric.viz.report import limits
from latentmetric.viz.report.charts import matrix_chart
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.rows import Row
from latentmetric.viz.summaries import order_by_confusion

References = tuple[Floats, Row, Ints]
"""Rows that vote: in the metric's units, in those given, and their codes."""


def class_section(evidence: Evidence) -> dict[str, Any]:
    """Errors, latent examples and the most frequent confusion of each class, the hardest first."""
    errors, codes = evidence.errors, evidence.latent_codes
    return {
        "errors": errors,
        "order": errors.hardest[: limits.MAX_CLASSES].tolist(),
        "highest": float(np.nanmax(errors.shares)) or 1.0,
        "n_clean": int((errors.shares == 0).sum()),
        "n_absent": int(np.isnan(errors.shares).sum()),
        "n_latents": None if codes is None else np.bincount(codes, minlength=len(evidence.labels)),
        "confusions": {pair.true: pair for pair in reversed(evidence.confused)},
    }


def confusion_section(evidence: Evidence) -> dict[str, Any]:
    """The matrix of the classes that are confused most, and the pairs with the most errors."""
    pairs, sizes = evidence.confused, evidence.errors.rows
    confused = np.zeros(len(sizes), dtype=np.intp)
    for pair in pairs:
        confused[[pair.true, pair.predicted]] += pair.count
    kept = np.sort(np.lexsort((sizes == 0, -confused))[: limits.MAX_MATRIX])
    counts = confusion_matrix(evidence.true, evidence.verdict.predicted, labels=kept)
    order = order_by_confusion(counts)
    counts, order = counts[np.ix_(order, order)], kept[order]
    cells = [
        {"row": row, "column": column, "true": order[row], "predicted": order[column],
         "count": int(count), "share": count / sizes[order[row]]}
        for (row, column), count in np.ndenumerate(counts)
        if count
    ]  # fmt: skip
    labels = [evidence.labels[code] for code in order]
    return {
        "matrix": matrix_chart(labels, cells),
        "n_wrong": sum(pair.count for pair in pairs),
        "sizes": sizes,
    }


def calibration_section(evidence: Evidence) -> dict[str, Any]:
    """How often the model is right where it says that it is sure."""
    found = evidence.calibration
    groups = zip(*(values.tolist() for values in astuple(found)), strict=True)
    return {
        "error": found.error,
        "surplus": 0.0 if abs(found.surplus) < limits.NOTICEABLE else found.surplus,
        "groups": list(groups),
        "n_bins": BINS,
    }


def mistake_section(evidence: Evidence) -> dict[str, Any]:
    """Misclassified queries, each with its values beside those of two references if that helps."""
    references = _references(evidence)
    cards = [
        (query, None if references is None else _values(query, evidence, references))
        for query in _chosen(evidence)
    ]
    n_open = len(cards) if references is None else limits.MAX_OPEN_MISTAKES
    return {"cards": cards[:n_open], "more_cards": cards[n_open:]}


def _chosen(evidence: Evidence) -> list[int]:
    """Mistakes to show: the first of each of the most confused pairs, then the second of each, …"""
    true, predicted = evidence.true, evidence.verdict.predicted
    waiting = [
        np.flatnonzero((true == pair.true) & (predicted == pair.predicted)).tolist()
        for pair in evidence.confused[: limits.MAX_MISTAKES]
    ]
    longest = max(map(len, waiting), default=0)
    in_turn = [found[turn] for turn in range(longest) for found in waiting if turn < len(found)]
    return in_turn[: limits.MAX_MISTAKES]


def _references(evidence: Evidence) -> References | None:
    """The rows that voted, in the metric's units and in those given, and their codes.

    None where single values cannot explain a mistake: they can where rows are a table, no step
    mixes columns, and the voters' values are known.
    """
    mixed = any(column.given is None for column in evidence.columns)
    if mixed or not evidence.is_metric or not evidence.is_table:
        return None
    if evidence.verdict.voters == "latent" and evidence.latents is not None:
        codes = evidence.latent_codes
        assert codes is not None
        return evidence.model.latent_examples_, evidence.latents, codes
    if evidence.verdict.voters == "original":
        rows = evidence.originals
        return rows.rows, rows.given, rows.codes
    return None


def _values(query: int, evidence: Evidence, references: References) -> dict[str, Any]:
    """The values of a query and of two references, the features that mislead most first.

    Distances are those after the steps of a pipeline: the part of a given column in a squared
    distance is that of all columns that are made of it.
    """
    rows, given, codes = references
    row = evidence.queries[query]
    components = evidence.model.components_.astype(np.float64)
    position = evidence.given.rows[row].astype(np.float64)
    shown, heads, pull = [evidence.given.given[row]], [], np.zeros(len(position))
    for code, sign in ((evidence.verdict.predicted[query], -1), (evidence.true[query], 1)):
        own = np.flatnonzero(codes == code)
        if not len(own):
            continue
        apart = position - rows[own].astype(np.float64)
        nearest = int(np.square(apart @ evidence.model.components_.T).sum(axis=1).argmin())
        pull += sign * apart[nearest] * (apart[nearest] @ components.T @ components)
        shown.append(given[own[nearest]])
        heads.append(evidence.labels[code])
    used, positions = np.unique([column.given for column in evidence.columns], return_inverse=True)
    order = np.argsort(-np.bincount(positions, pull), kind="stable")
    names = evidence.given_names
    return {
        "heads": heads,
        "lines": [
            (names[feature], [values[feature] for values in shown])
            for feature in used[order[: limits.MAX_MISTAKE_VALUES]]
        ],
    }
