"""Whether probabilities are what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from latentmetric.validation.labels import checked_labels

BINS = 15
"""Bins of equal width from 0 to 1."""


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
    confidence = shares.max(axis=1)
    right = names[shares.argmax(axis=1)] == truth
    bins = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
    surplus = np.bincount(bins, confidence - right, minlength=BINS)
    return float(np.abs(surplus).sum()) / len(truth)
