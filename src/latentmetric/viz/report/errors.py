"""Where the model fails: errors by class, confused classes, and how reliable probabilities are."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.characters import distinct_names
from latentmetric.evaluation.calibration import BINS
from latentmetric.viz.report import limits
from latentmetric.viz.report.charts import reliability_chart
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.summaries import order_by_confusion

MATRIX_NAMES = 40, 24, 12
"""Lengths of the names in the matrix, which takes the longest that fit."""


def class_section(evidence: Evidence) -> dict[str, Any]:
    """Errors, latent examples and the most frequent confusion of each class, the hardest first."""
    n_classes = len(evidence.labels)
    errors = evidence.errors
    n_latents = None
    if evidence.latent_codes is not None:
        n_latents = np.bincount(evidence.latent_codes, minlength=n_classes)
    return {
        "errors": errors,
        "order": errors.hardest[: limits.MAX_CLASSES].tolist(),
        "highest": float(np.nanmax(errors.shares)) or 1.0,
        "n_clean": int((errors.shares == 0).sum()),
        "n_absent": int(np.isnan(errors.shares).sum()),
        "n_latents": n_latents,
        "confusions": {pair.true: pair for pair in reversed(evidence.confused)},
    }


def confusion_section(evidence: Evidence) -> dict[str, Any]:
    """The matrix, and the pairs of classes with the most errors.

    The page's script draws the matrix from the cells that are not empty.
    """
    pairs, labels = evidence.confused, evidence.labels
    sizes, right = evidence.errors.rows, evidence.errors.rows - evidence.errors.wrong
    order = order_by_confusion(pairs, len(labels))
    if len(order) > limits.MAX_CLASSES:
        confused = np.zeros(len(order), dtype=np.intp)
        for pair in pairs:
            confused[[pair.true, pair.predicted]] += pair.count
        kept = set(np.argsort(-confused, kind="stable")[: limits.MAX_CLASSES].tolist())
        order = [code for code in order if code in kept]
    position = {code: index for index, code in enumerate(order)}
    cells = [[index, index, int(right[code])] for index, code in enumerate(order) if right[code]]
    shown = [pair for pair in pairs if pair.true in position and pair.predicted in position]
    for pair in shown[: limits.MAX_CELLS]:
        cells.append([position[pair.true], position[pair.predicted], pair.count])
    names = [labels[code] for code in order]
    return {
        "script": {
            "labels": names,
            "shorter": [distinct_names(names, length) for length in MATRIX_NAMES],
            "sizes": [int(sizes[code]) for code in order],
            "cells": cells,
        },
        "n_wrong": sum(pair.count for pair in pairs),
        "n_shown": len(order),
        "sizes": sizes,
    }


def reliability_section(evidence: Evidence) -> dict[str, Any]:
    """How often the model is right where it says that it is sure."""
    found = evidence.calibration
    groups = zip(
        found.confidence.tolist(), found.accuracy.tolist(), found.counts.tolist(), strict=True
    )
    return {
        "chart": reliability_chart(found),
        "error": found.error,
        "surplus": 0.0 if abs(found.surplus) < limits.NOTICEABLE else found.surplus,
        "groups": list(groups),
        "n_empty": BINS - len(found.counts),
    }
