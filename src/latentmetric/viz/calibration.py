"""Do probabilities keep their word? Rows are binned by the probability of the predicted class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.types import Bools, Floats, Ints

BINS = 10
"""Bins of equal width between 0 and 1."""


@dataclass(frozen=True)
class Calibration:
    """What was promised and what was kept, bin by bin; bins without rows are left out."""

    promised: Floats
    """The mean probability of the predicted class in each bin."""
    kept: Floats
    """The share of rows that were classified correctly."""
    counts: Ints

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of the two, weighted by rows."""
        return float(np.average(np.abs(self.promised - self.kept), weights=self.counts))

    @property
    def surplus(self) -> float:
        """By how much the mean probability exceeds the accuracy: above 0 is too confident."""
        return float(np.average(self.promised - self.kept, weights=self.counts))


def calibration(confidence: Floats, right: Bools) -> Calibration:
    """Bin rows by their confidence, and compare it with the share that is right."""
    bins = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    present = counts > 0
    promised = np.bincount(bins, confidence, BINS)[present] / counts[present]
    kept = np.bincount(bins, right, BINS)[present] / counts[present]
    return Calibration(promised, kept, counts[present])
