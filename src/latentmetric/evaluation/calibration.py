"""Whether probabilities are what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.validation.labels import checked_labels

BINS = 15
"""Bins of equal width from 0 to 1."""


@dataclass(frozen=True)
class Calibration:
    """Confidence and accuracy, bin by bin; bins without rows are left out."""

    confidence: Floats
    """The mean probability of the predicted class in each bin."""
    accuracy: Floats
    """The share of rows that were classified correctly."""
    counts: Ints

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of the two, weighted by rows."""
        return float(np.average(np.abs(self.confidence - self.accuracy), weights=self.counts))

    @property
    def surplus(self) -> float:
        """By how much the mean probability exceeds the accuracy: above 0 is too confident."""
        return float(np.average(self.confidence - self.accuracy, weights=self.counts))


def calibration(confidence: Floats, right: Bools) -> Calibration:
    """Bin rows by the probability of the predicted class, and compare it with the share right."""
    bins = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    present = counts > 0
    mean_confidence = np.bincount(bins, confidence, BINS)[present] / counts[present]
    accuracy = np.bincount(bins, right, BINS)[present] / counts[present]
    return Calibration(mean_confidence, accuracy, counts[present])


def calibration_error(labels: Any, probabilities: Any, classes: Any) -> float:
    """The expected calibration error: how far confidence is from accuracy, on average.

    Rows are sorted into bins by their largest probability, the confidence. In each bin, the mean
    confidence is compared with the share of right answers.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        The true labels; those that are not among the classes count as wrong answers.
    probabilities : array-like of shape (n_samples, n_classes)
        As ``predict_proba`` returns them.
    classes : array-like of shape (n_classes,)
        The classes of the columns, such as ``model.classes_``.

    Returns
    -------
    float
        From 0, where a confidence of 80 % means 80 % of right answers, to 1.

    Examples
    --------
    >>> from latentmetric.evaluation import calibration_error
    >>> calibration_error(["a", "b"], [[1.0, 0.0], [1.0, 0.0]], ["a", "b"])
    0.5
    """
    truth = checked_labels(labels, "labels")
    shares = check_array(probabilities, dtype="float64", input_name="probabilities")
    check_consistent_length(truth, shares)
    names = np.asarray(classes)
    if len(names) != shares.shape[1]:
        raise ValueError(
            f"probabilities have {shares.shape[1]} columns, but there are {len(names)} classes"
        )
    return calibration(shares.max(axis=1), names[shares.argmax(axis=1)] == truth).error
