"""The rules for weights of rows and of classes.

Only ratios of weights matter to a fit, so they are scaled to a mean of 1: a weight of 2 then counts
as two rows of the usual weight, whatever the unit of the caller's weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from latentmetric.core.types import Floats, Ints
from latentmetric.validation.labels import Labels
from latentmetric.validation.parameters import Number, check_keys

BALANCED = "balanced"
"""All classes weigh the same."""

MAX_WEIGHT = 1e15
"""The largest weight: sums of weighted rows must fit into float32."""

MIN_WEIGHT = 1e-30
"""What a weight above 0 counts as at least, so that it is not 0 in float32."""


def class_weights(name: str, value: Any) -> Any:
    """The word "balanced", or a weight for each of some classes."""
    if isinstance(value, str) and value == BALANCED:
        return value
    if not isinstance(value, Mapping):
        raise ValueError(
            f"{name} must be None, {BALANCED!r} or a dict with a weight for each class, got "
            f"{value!r:.60}"
        )
    rule = Number(0, MAX_WEIGHT, open_low=True)
    return {label: rule.check(f"{name} of class {label!r}", value[label]) for label in value}


@dataclass(frozen=True)
class RowWeights:
    """What each row of a fit counts as."""

    of_rows: Floats | None
    """One number for each row, scaled to a mean of 1 over the rows that count at all; None if each
    counts as one."""
    units: Floats
    """What the weights of each class's rows are multiplied by to be those of ``sample_weight``."""


def checked_weights(sample_weight: Any, n_rows: int) -> Floats:
    """One weight for each row, as floats; raise unless they are from 0 to ``MAX_WEIGHT``."""
    weights: Floats = _check_sample_weight(sample_weight, np.empty(n_rows), dtype=np.float64)
    wrong = (weights < 0) | (weights > MAX_WEIGHT)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"sample_weight must be at least 0 and at most {MAX_WEIGHT:g}, but it is "
            f"{weights[row]:g} for row {row} (counted from 0); correct it, or divide all weights "
            "by one number"
        )
    return weights


def row_weights(sample_weight: Any, class_weight: Any, codes: Ints, classes: Labels) -> RowWeights:
    """What each row counts as."""
    given: Floats = np.ones(len(codes))
    if sample_weight is not None:
        given = checked_weights(sample_weight, len(codes))
    totals = np.bincount(codes, given, minlength=len(classes))
    if not totals.all():
        without = classes[np.flatnonzero(totals == 0)].tolist()
        raise ValueError(
            f"sample_weight is zero for all rows of {len(without)} of {len(classes)} classes, such "
            f"as class {without[0]!r}; leave their rows out of X and y"
        )
    of_classes = _of_classes(class_weight, totals, classes)
    weights = given * of_classes[codes]
    mean = float(weights.sum()) / np.count_nonzero(given)
    units = mean / of_classes
    if (weights == weights[0]).all():
        return RowWeights(None, units)
    return RowWeights(np.where(given > 0, np.maximum(weights / mean, MIN_WEIGHT), 0.0), units)


def _of_classes(class_weight: Any, totals: Ints | Floats, classes: Labels) -> Floats:
    """The weight of each class, whose rows weigh ``totals`` without it."""
    if class_weight == BALANCED:
        balanced: Floats = totals.sum() / len(totals) / totals
        return balanced
    given, known = class_weight or {}, classes.tolist()
    check_keys("class_weight", given, known)
    return np.array([float(given.get(label, 1.0)) for label in known])
