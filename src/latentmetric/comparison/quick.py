"""Did a fit beat what one would try first? Answered on few rows, in about the time of a small fit.

A second, smaller fit with the same parameters is compared with k-NN and logistic regression, on
rows that none of them has seen.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from latentmetric.comparison.samples import sample_rows
from latentmetric.evaluation.rivals import fit_rival
from latentmetric.evaluation.significance import paired

MOST_ROWS = 1_500
"""Rows that are used, two thirds of them to fit."""

FEWEST_ROWS = 60
"""With fewer rows, the answer would be chance."""

MOST_WORK = 5 * 10**7
"""Product of rows, features and classes above which nothing is compared: it would take long."""

RIVALS = ("tuned-k-NN", "logistic-regression")

FAR_MORE = 2
"""With so many times the rows of the trial, a fit should be clearly better."""


@dataclass(frozen=True)
class QuickCheck:
    """Errors of an estimator and its rivals on the same held-out rows."""

    fitted_rows: int
    """Rows that all were fitted to."""
    held_out_rows: int
    """Rows that none has seen."""
    errors: dict[str, float]
    """The share of wrong answers by name; the estimator comes first."""
    words: str
    """The result in one sentence."""


def quick_check(estimator: Any, X: Any, y: Any, random_state: int = 0) -> QuickCheck | None:
    """Compare an estimator with k-NN and logistic regression, on a sample of its training rows.

    Parameters
    ----------
    estimator : estimator of this package
        Its parameters are used; it is not changed.
    X : array of shape (n_samples, n_features), or rows of a file
        Training rows.
    y : array of shape (n_samples,)
        The label of each row.
    random_state : int, default=0
        Seed of the sample and of the choice of the rivals' parameters.

    Returns
    -------
    QuickCheck or None
        None where the rows are too few for an answer, or the features and classes too many for a
        quick one.
    """
    n_classes = len(np.unique(y))
    n_rows = min(len(y), MOST_ROWS)
    if n_rows < FEWEST_ROWS or n_rows * X.shape[1] * n_classes > MOST_WORK:
        return None
    rows, labels = _without_rare_classes(*sample_rows(X, y, MOST_ROWS, random_state))
    if len(labels) < FEWEST_ROWS or len(np.unique(labels)) < 2:
        return None
    X_fit, X_held_out, y_fit, y_held_out = train_test_split(
        rows, labels, test_size=1 / 3, stratify=labels, random_state=random_state
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern a trial, not what the caller does
        trial = clone(estimator).set_params(verbose=0).fit(X_fit, y_fit)
        right = {type(estimator).__name__: trial.predict(X_held_out) == y_held_out}
        for name in RIVALS:
            rival = fit_rival(name, X_fit, y_fit, random_state=random_state)
            right[name] = rival.pipeline.predict(X_held_out) == y_held_out
    errors = {name: float(np.mean(~answers)) for name, answers in right.items()}
    return QuickCheck(len(y_fit), len(y_held_out), errors, _words(right, len(y_fit), len(y)))


def _without_rare_classes(X: Any, y: Any) -> tuple[Any, Any]:
    """Rows of the classes that have at least three: one to hold out and two to fit."""
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    common = counts[codes] >= 3
    return X[common], y[common]


def _words(right: dict[str, Any], n_fit: int, n_all: int) -> str:
    """One sentence: who made which errors, and whether the difference is more than chance."""
    own, *rivals = right
    wrong = {name: int(np.count_nonzero(~answers)) for name, answers in right.items()}
    n_rows = len(right[own])
    shares = ", ".join(f"{name} {100 * wrong[name] / n_rows:.1f} %" for name in right)
    best = min(rivals, key=lambda name: wrong[name])
    if not paired(right[own], right[best]).beyond_chance:
        verdict = f"{own} and {best} are too close to tell"
    elif wrong[own] < wrong[best]:
        verdict = f"{own} is better"
    else:
        verdict = f"{best} is better"
    more = ""
    if n_all > FAR_MORE * n_fit:
        more = f" A fit to all {n_all:,} rows should have a lower error."
    return f"Error on {n_rows} rows after a trial fit to {n_fit} others: {shares}; {verdict}.{more}"
