"""The gallery: latent examples beside rows that they represent."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.characters import distinct_names
from latentmetric.core.types import Floats, Ints
from latentmetric.viz.report import limits
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.rows import Row
from latentmetric.viz.report.text import number, value_text
from latentmetric.viz.summaries import (
    busiest_clusters,
    last_before_refinement,
)


def options(evidence: Evidence, codes: list[int]) -> list[tuple[int, str, str]]:
    """Classes to choose from: code, label, and a short label that is as different."""
    short = distinct_names(evidence.labels, limits.MAX_OPTION)
    return [(code, evidence.labels[code], short[code]) for code in codes]


def gallery_section(evidence: Evidence) -> dict[str, Any]:
    """The latent examples with the most rows, each with the rows nearest to it, class by class."""
    model, latent_codes = evidence.latent_model, evidence.latent_codes
    if model is None or latent_codes is None:
        return {"classes": None}
    n_classes, originals = len(evidence.labels), evidence.originals
    per_class = min(limits.MAX_PER_CLASS, max(1, limits.MAX_GALLERY // n_classes))
    values = None
    if evidence.image_shape is None and evidence.feature_names is not None:
        values = UnusualValues(originals.given, evidence.feature_names)
    codes = list(range(n_classes))
    if n_classes > limits.MAX_GALLERY:
        codes = sorted(evidence.errors.hardest[: limits.MAX_GALLERY].tolist())
    members, latents = _by_class(originals.codes, n_classes), _by_class(latent_codes, n_classes)
    classes = {
        code: busiest_clusters(model, latents[code], originals.rows, members[code], per_class)
        for code in codes
    }
    before = last_before_refinement(model.history_)
    return {
        "classes": classes,
        "options": options(evidence, codes),
        "per_class": per_class,
        "n_shown": sum(map(len, classes.values())),
        "values": values,
        "was_refined": before is not None and model.best_iter_ > before,
    }


def _by_class(codes: Ints, n_classes: int) -> list[Ints]:
    """The indices of the rows of each class."""
    sizes = np.bincount(codes, minlength=n_classes)
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])


class UnusualValues:
    """The features in which a row differs most from the mean of all rows; then its words."""

    def __init__(self, rows: Row, names: list[str]) -> None:
        is_text = [
            rows.dtype.kind == "O" and any(isinstance(value, str) for value in column)
            for column in rows.T
        ]
        self._names = names
        self._words, self._numbers = np.flatnonzero(is_text), np.flatnonzero(~np.array(is_text))
        table = rows[:, self._numbers].astype(np.float64) if rows.dtype.kind == "O" else rows
        has_gaps = table.dtype.kind == "f" and bool(np.isnan(table.sum()))
        known = np.ma.masked_invalid(table) if has_gaps else table
        self._mean: Floats = np.ma.filled(known.mean(axis=0), 0.0)
        self._deviation: Floats = np.ma.filled(known.std(axis=0), 0.0)

    def of(self, row: Row) -> list[tuple[str, str, float | None]]:
        """Names and values of a row, with the difference in standard deviations of numbers."""
        numbers = row[self._numbers].astype(self._mean.dtype)
        safe = np.where(self._deviation > 0, self._deviation, 1)
        apart = np.nan_to_num((numbers - self._mean) / safe)
        order = np.argsort(-np.abs(apart), kind="stable")[: limits.MAX_LATENT_VALUES]
        listed: list[tuple[str, str, float | None]] = [
            (self._names[self._numbers[index]], number(float(numbers[index])), float(apart[index]))
            for index in order
        ]
        words = self._words[: limits.MAX_LATENT_VALUES]
        return listed + [(self._names[index], value_text(row[index]), None) for index in words]
