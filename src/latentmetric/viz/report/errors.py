"""Where the model fails: errors by class, confused classes, and how reliable probabilities are."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.characters import told_apart
from latentmetric.evaluation.calibration import BINS, calibration
from latentmetric.viz.report import limits
from latentmetric.viz.report.charts import reliability_chart
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.summaries import ConfusedPair, class_errors, order_by_confusion

MATRIX_NAMES = 40, 24, 12
"""Lengths of the names in the matrix, which takes the longest that fit."""


def class_section(evidence: Evidence) -> dict[str, Any]:
    """A line for each class: rows, error, latent examples, margin, most frequent confusion."""
    n_classes, model = len(evidence.labels), evidence.latent_model
    errors = class_errors(evidence.true, evidence.verdict.predicted, n_classes)
    confusions: dict[int, ConfusedPair] = {}
    for pair in evidence.confused:
        confusions.setdefault(pair.true, pair)
    n_latents = None
    if evidence.latent_codes is not None:
        n_latents = np.bincount(evidence.latent_codes, minlength=n_classes)
    shares, most = errors.shares, float(np.nanmax(errors.shares)) or 1.0
    lines = []
    for code in errors.hardest[: limits.MAX_CLASSES].tolist():
        share = float(shares[code])
        line: dict[str, Any] = {
            "code": code,
            "label": evidence.labels[code],
            "n_rows": int(errors.rows[code]),
            "error": share,
            "bar": 0 if share != share else share / most,
            "n_wrong": int(errors.wrong[code]),
            "confusion": None,
        }
        if code in confusions:
            pair = confusions[code]
            line["confusion"] = evidence.labels[pair.predicted], pair.count
        if n_latents is not None:
            line |= {"n_latents": int(n_latents[code]), "margin": float(model.margins_[code])}
        lines.append(line)
    return {
        "lines": lines,
        "n_clean": int((shares == 0).sum()),
        "n_absent": int(np.isnan(shares).sum()),
    }


def confusion_section(evidence: Evidence) -> dict[str, Any]:
    """The matrix, and the pairs of classes with the most errors.

    The page's script draws the matrix from the cells that are not empty.
    """
    pairs, labels = evidence.confused, evidence.labels
    sizes = np.bincount(evidence.true, minlength=len(labels))
    right = np.bincount(evidence.true[evidence.right], minlength=len(labels))
    order = _matrix_order(pairs, len(labels))
    position = {code: index for index, code in enumerate(order)}
    cells = [[index, index, int(right[code])] for index, code in enumerate(order) if right[code]]
    shown = [pair for pair in pairs if pair.true in position and pair.predicted in position]
    for pair in shown[: limits.MAX_CELLS]:
        cells.append([position[pair.true], position[pair.predicted], pair.count])
    names = [labels[code] for code in order]
    return {
        "script": {
            "labels": names,
            "shorter": [told_apart(names, length) for length in MATRIX_NAMES],
            "sizes": [int(sizes[code]) for code in order],
            "cells": cells,
        },
        "n_pairs": len(pairs),
        "n_wrong": sum(pair.count for pair in pairs),
        "n_shown": len(order),
        "pairs": [
            {
                "true": labels[pair.true],
                "predicted": labels[pair.predicted],
                "count": pair.count,
                "bar": pair.count / pairs[0].count,
                "share": float(pair.count / sizes[pair.true]),
            }
            for pair in pairs[: limits.MAX_PAIRS]
        ],
    }


def _matrix_order(pairs: list[ConfusedPair], n_classes: int) -> list[int]:
    """The classes of the matrix, side by side if they are confused."""
    order = order_by_confusion(pairs, n_classes)
    if n_classes <= limits.MAX_CLASSES:
        return order
    confused = np.zeros(n_classes, dtype=np.intp)
    for pair in pairs:
        confused[[pair.true, pair.predicted]] += pair.count
    kept = set(np.argsort(-confused, kind="stable")[: limits.MAX_CLASSES].tolist())
    return [code for code in order if code in kept]


def reliability_section(evidence: Evidence) -> dict[str, Any]:
    """How often the model is right where it says that it is sure."""
    found = calibration(evidence.verdict.confidence, evidence.right)
    groups = zip(found.promised.tolist(), found.kept.tolist(), found.counts.tolist(), strict=True)
    return {
        "chart": reliability_chart(found),
        "error": found.error,
        "surplus": 0.0 if abs(found.surplus) < limits.NOTICEABLE else found.surplus,
        "groups": list(groups),
        "n_empty": BINS - len(found.counts),
    }
