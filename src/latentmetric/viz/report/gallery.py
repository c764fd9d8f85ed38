"""The gallery: latent examples beside rows that they represent."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.characters import told_apart
from latentmetric.core.types import Floats, Ints
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.pictures import Pictures
from latentmetric.viz.report.rows import Row
from latentmetric.viz.report.text import number, value_text
from latentmetric.viz.summaries import (
    Cluster,
    busiest_clusters,
    class_errors,
    last_before_refinement,
)

MAX_LATENTS = 240
"""Latent examples in the gallery, divided among the classes."""

MAX_PER_CLASS = 12

MAX_ROWS = 6
"""Rows beside a latent example."""

MAX_VALUES = 4
"""Values listed for each latent example where rows are not images."""

OPTION_LENGTH = 24
"""Characters of a label in a box to choose from, which is narrow."""


def options(evidence: Evidence, codes: list[int]) -> list[tuple[int, str, str]]:
    """Classes to choose from: code, label, and a short label that is as different."""
    short = told_apart(evidence.labels, OPTION_LENGTH)
    return [(code, evidence.labels[code], short[code]) for code in codes]


def gallery_section(evidence: Evidence, pictures: Pictures) -> dict[str, Any]:
    """The latent examples with the most rows, each beside its nearest rows, class by class."""
    model, latent_codes = evidence.latent_model, evidence.latent_codes
    if model is None or latent_codes is None:
        return {"name": evidence.name, "classes": None}
    n_classes, originals = len(evidence.labels), evidence.originals
    per_class = min(MAX_PER_CLASS, max(1, MAX_LATENTS // n_classes))
    values = None
    if evidence.image_shape is None and evidence.feature_names is not None:
        values = UnusualValues(originals.given, evidence.feature_names)
    codes = list(range(n_classes))
    if n_classes > MAX_LATENTS:
        errors = class_errors(evidence.true, evidence.verdict.predicted, n_classes)
        codes = sorted(errors.hardest[:MAX_LATENTS].tolist())
    members, latents = _by_class(originals.codes, n_classes), _by_class(latent_codes, n_classes)
    classes: list[dict[str, Any]] = []
    for code in codes:
        clusters = busiest_clusters(model, latents[code], originals.rows, members[code], per_class)
        classes.append(
            {
                "code": code,
                "label": evidence.labels[code],
                "is_long": len(evidence.labels[code]) > OPTION_LENGTH,
                "latents": [_latent(cluster, evidence, pictures, values) for cluster in clusters],
            }
        )
    before = last_before_refinement(model.history_)
    return {
        "classes": classes,
        "options": options(evidence, codes),
        "per_class": per_class,
        "n_shown": sum(len(one["latents"]) for one in classes),
        "n_latents": len(model.latent_examples_),
        "n_classes": n_classes,
        "has_images": evidence.image_shape is not None,
        "has_values": values is not None,
        "has_steps": evidence.has_steps,
        "has_words": bool(evidence.piped.text_columns),
        "why_not_shown": evidence.why_no_latents,
        "was_refined": before is not None and model.best_iter_ > before,
    }


def _by_class(codes: Ints, n_classes: int) -> list[Ints]:
    """The indices of the rows of each class."""
    sizes = np.bincount(codes, minlength=n_classes)
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])


def _latent(
    cluster: Cluster, evidence: Evidence, pictures: Pictures, values: UnusualValues | None
) -> dict[str, Any]:
    row, originals = evidence.latent_row(cluster.latent), evidence.originals
    return {
        "index": cluster.latent,
        "picture": pictures.index(("latent", cluster.latent), row),
        "n_rows": len(cluster.rows),
        "values": None if values is None or row is None else values.of(row),
        "rows": [
            {
                "name": originals.name(index),
                "named": originals.names is not None,
                "picture": pictures.of_row(originals, index),
                "distance": distance,
            }
            for index, distance in zip(
                cluster.rows[:MAX_ROWS].tolist(), cluster.distances[:MAX_ROWS].tolist(), strict=True
            )
        ],
    }


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
        order = np.argsort(-np.abs(apart), kind="stable")[:MAX_VALUES]
        listed: list[tuple[str, str, float | None]] = [
            (self._names[self._numbers[index]], number(float(numbers[index])), float(apart[index]))
            for index in order
        ]
        words = self._words[:MAX_VALUES]
        return listed + [(self._names[index], value_text(row[index]), None) for index in words]
