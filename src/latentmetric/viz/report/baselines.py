"""What one would use instead: rivals that are tuned and fitted on the training rows alone.

Their parameters are chosen by cross-validation on a sample of the training rows. The page says how
many rows each was fitted on: time is bounded, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from latentmetric.core.types import Floats, Ints

FOLDS = 3
"""Parts of the cross-validation."""


@dataclass(frozen=True)
class Baseline:
    """A rival, and what it said about the queries."""

    name: str
    predicted: Ints
    n_rows: int
    """Training rows that it was fitted on."""
    chosen: str
    """The parameters that were chosen, in words."""


@dataclass(frozen=True)
class Task:
    """Training rows with their codes, and queries to classify."""

    rows: Floats
    codes: Ints
    queries: Floats
    n_classes: int
    generator: np.random.Generator
    n_jobs: int | None


def standardised(rows: Floats, *others: Floats) -> list[Floats]:
    """Rows and others, centred and divided by the deviations of the first, in float64."""
    mean, deviation = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    safe = np.where(deviation > 0, deviation, 1)
    return [(part - mean) / safe for part in (rows, *others)]


def folds(codes: Ints, generator: np.random.Generator) -> Iterator[tuple[Ints, Ints]]:
    """Rows to fit and rows to judge, ``FOLDS`` times; the classes are spread over all parts."""
    shuffled = generator.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    parts = np.empty(len(codes), dtype=np.intp)
    parts[by_class] = np.arange(len(codes)) % FOLDS
    for part in range(FOLDS):
        fitted, judged = np.flatnonzero(parts != part), np.flatnonzero(parts == part)
        if len(judged) and len(np.unique(codes[fitted])) > 1:
            yield fitted, judged
