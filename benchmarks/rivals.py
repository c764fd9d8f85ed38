"""The rivals of baselines.py: each takes training rows, their codes and test rows.

Parameters are chosen by cross-validation on training rows; no rival sees a test label.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from common import PUBLISHED_LMNN
from pairwise_svm import PairwiseSVM, rbf
from reproduction.sources import sample
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import SVC

from latentmetric import LMNN
from latentmetric.core.distances import References, k_nearest
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import VOTES, vote, vote_shares

SELECTION_FOLDS = 3
SELECTION_ROWS = 10_000
SVM_SELECTION_ROWS = 3_000
LOGISTIC_WORK = 10**9
"""Product of rows, features and classes above which logistic regression is cut short: it is chosen
on fewer rows and fitted with fewer iterations."""

NEIGHBOURS = (1, 3, 5, 9, 15)
SCALINGS = ("none", "standardised")
METRICS = ("euclidean", "cosine")
WEIGHTS = ("uniform", "distance")
LOGISTIC_C = {"none": (0.1, 1, 10, 100), "standardised": (0.001, 0.01, 0.1, 1, 10)}
LOGISTIC_ITERATIONS, LOGISTIC_FEW_ITERATIONS, LOGISTIC_SELECTION_ITERATIONS = 1000, 200, 100
SVM_C = (1, 10, 100)
SVM_GAMMA = (0.3, 1, 3, 10)
"""Multiples of scikit-learn's "scale", 1 / (features × variance)."""

SMALLEST_SHARE = 1e-3
"""Probabilities below this count as this, as in ``latentmetric evaluate``."""

PROTOTYPE_SHARE = 0.1
PROTOTYPE_ITERATIONS = 50

FIRST_SAMPLE = 2_000
"""Rows of the first fit that is timed."""
LARGEST_STEP = 4
"""How much larger the next sample is, at most."""
SMALLEST_STEP = 1.25
"""A sample less than this much larger is not worth another fit."""


@dataclass
class Outcome:
    """What a rival says about the test rows."""

    predicted: Ints
    shares: Floats | None = None
    """Probabilities of the classes, if the rival gives any."""
    rows: int = 0
    """Training rows that the final model was fitted on."""
    chosen: dict[str, Any] = field(default_factory=dict)
    converged: bool = True


def scaled(scaling: str, X: Floats, *others: Floats) -> list[Floats]:
    """Rows and others, standardised by the mean and deviation of the first."""
    if scaling == "none":
        return [X, *others]
    scaler = StandardScaler().fit(X)
    return [scaler.transform(rows) for rows in (X, *others)]


def selection_folds(codes: Ints) -> Iterator[tuple[Ints, Ints]]:
    splitter = StratifiedKFold(SELECTION_FOLDS, shuffle=True, random_state=0)
    return splitter.split(np.zeros(len(codes)), codes)


class Trials:
    """Errors of combinations of parameters on the folds of a selection."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._losses: dict[tuple, list[tuple[float, float]]] = {}

    def add(self, key: tuple, predicted: Ints, codes: Ints, shares: Floats | None = None) -> None:
        surprise = 0.0 if shares is None else negative_log_likelihood(shares, codes)
        self._losses.setdefault(key, []).append((float(np.mean(predicted != codes)), surprise))

    def best(self) -> dict[str, Any]:
        """The least mean error; of several, the most likely probabilities; then the first."""

        def mean_losses(key: tuple) -> tuple[float, ...]:
            return tuple(np.mean(self._losses[key], axis=0).round(12))

        return dict(zip(self._names, min(self._losses, key=mean_losses), strict=True))


def negative_log_likelihood(shares: Floats, codes: Ints) -> float:
    right = shares[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(right, SMALLEST_SHARE)).mean())


# Nearest neighbours


def nearest(X: Floats, queries: Floats, k: int, metric: str = "euclidean") -> tuple[Floats, Ints]:
    """Squared distances to the k nearest rows, and their indices."""
    if metric == "cosine":
        squared, found = k_nearest(normalize(queries), References.of(normalize(X)), k)
        return (squared / 2) ** 2, found
    centre = X.mean(axis=0)
    return k_nearest(queries - centre, References.of(X - centre), k)


def three_nearest(X: Floats, codes: Ints, queries: Floats, minutes: float) -> Outcome:
    _, found = nearest(X, queries, min(3, len(X)))
    return _elected(codes[found], np.ones(found.shape), codes, len(X))


def three_nearest_standardised(X: Floats, codes: Ints, queries: Floats, minutes: float) -> Outcome:
    return three_nearest(*_with_codes(scaled("standardised", X, queries), codes), minutes)


def chosen_nearest(X: Floats, codes: Ints, queries: Floats, minutes: float) -> Outcome:
    chosen = _choose_neighbours(*sample(X, codes, SELECTION_ROWS, seed=0))
    X, queries = scaled(chosen["scaling"], X, queries)
    squared, found = nearest(X, queries, chosen["k"], chosen["metric"])
    outcome = _elected(codes[found], VOTES[chosen["weights"]].weigh(squared, 0), codes, len(X))
    outcome.chosen = chosen
    return outcome


def _choose_neighbours(X: Floats, codes: Ints) -> dict[str, Any]:
    trials = Trials("scaling", "metric", "k", "weights")
    for scaling, metric in product(SCALINGS, METRICS):
        for train, test in selection_folds(codes):
            fold, queries = scaled(scaling, X[train], X[test])
            squared, found = nearest(fold, queries, max(NEIGHBOURS), metric)
            labels = codes[train][found]
            for k, weights in product(NEIGHBOURS, WEIGHTS):
                weighed = VOTES[weights].weigh(squared[:, :k], 0)
                outcome = _elected(labels[:, :k], weighed, codes, len(train))
                key = (scaling, metric, k, weights)
                trials.add(key, outcome.predicted, codes[test], outcome.shares)
    return trials.best()


def _elected(labels: Ints, weights: Floats, codes: Ints, rows: int) -> Outcome:
    return Outcome(vote(labels, weights), vote_shares(labels, weights, codes.max() + 1), rows)


def _with_codes(rows: list[Floats], codes: Ints) -> tuple[Floats, Ints, Floats]:
    return rows[0], codes, rows[1]


# Linear and kernel rivals


def logistic_regression(X: Floats, codes: Ints, queries: Floats, minutes: float) -> Outcome:
    n_rows = LOGISTIC_WORK // (X.shape[1] * (int(codes.max()) + 1))
    iterations = LOGISTIC_ITERATIONS if len(X) <= n_rows else LOGISTIC_FEW_ITERATIONS
    chosen = _choose_logistic(*sample(X, codes, min(n_rows, SELECTION_ROWS), seed=0))
    X, queries = scaled(chosen["scaling"], X, queries)
    model = _fit_logistic(X, codes, chosen["C"], iterations)
    shares = model.predict_proba(queries)
    converged = bool(model.n_iter_.max() < iterations)
    return Outcome(shares.argmax(axis=1), shares, len(X), chosen, converged)


def _choose_logistic(X: Floats, codes: Ints) -> dict[str, Any]:
    trials = Trials("scaling", "C")
    for scaling in SCALINGS:
        for train, test in selection_folds(codes):
            fold, queries = scaled(scaling, X[train], X[test])
            for C in LOGISTIC_C[scaling]:
                model = _fit_logistic(fold, codes[train], C, LOGISTIC_SELECTION_ITERATIONS)
                shares = model.predict_proba(queries)
                trials.add((scaling, C), shares.argmax(axis=1), codes[test], shares)
    return trials.best()


def _fit_logistic(X: Floats, codes: Ints, C: float, iterations: int) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=C, max_iter=iterations).fit(X, codes)


def rbf_svm(X: Floats, codes: Ints, queries: Floats, minutes: float) -> Outcome:
    """SVMs have no probabilities of their own."""
    chosen = _choose_svm(*sample(X, codes, SVM_SELECTION_ROWS, seed=0))
    X, queries = scaled(chosen["scaling"], X, queries)

    def fit(n_rows: int) -> PairwiseSVM:
        rows, labels = sample(X, codes, n_rows, seed=0)
        return PairwiseSVM(chosen["C"], chosen["gamma"] * _unit_gamma(X)).fit(rows, labels)

    model, n_rows = fit_within(fit, len(X), 60 * minutes)
    return Outcome(model.predict(queries), None, n_rows, chosen)


def _choose_svm(X: Floats, codes: Ints) -> dict[str, Any]:
    trials = Trials("scaling", "gamma", "C")
    for scaling in SCALINGS:
        for train, test in selection_folds(codes):
            fold, queries = scaled(scaling, X[train], X[test])
            fold, queries = (rows - fold.mean(axis=0, dtype=np.float64) for rows in (fold, queries))
            for factor in SVM_GAMMA:
                gamma = factor * _unit_gamma(fold)
                own, cross = rbf(fold, fold, gamma), rbf(queries, fold, gamma)
                for C in SVM_C:
                    model = SVC(C=C, kernel="precomputed").fit(own, codes[train])
                    trials.add((scaling, factor, C), model.predict(cross), codes[test])
    return trials.best()


def _unit_gamma(X: Floats) -> float:
    return 1 / (X.shape[1] * float(X.var(dtype=np.float64)))


# Prototypes and metrics


def kmeans_prototypes(X: Floats, codes: Ints, queries: Floats, minutes: float) -> Outcome:
    """k-means of each class with a tenth of its rows as centres; the three nearest vote."""
    centres = [_centres(X[codes == code]) for code in range(int(codes.max()) + 1)]
    labels = np.repeat(np.arange(len(centres)), [len(own) for own in centres])
    prototypes = np.concatenate(centres)
    outcome = three_nearest(prototypes, labels, queries, minutes)
    outcome.rows, outcome.chosen = len(X), {"prototypes": len(prototypes)}
    return outcome


def _centres(X: Floats) -> Floats:
    n_centres = max(1, round(PROTOTYPE_SHARE * len(X)))
    kmeans = KMeans(n_centres, n_init=1, max_iter=PROTOTYPE_ITERATIONS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than centres
        return kmeans.fit(X).cluster_centers_


def lmnn(X: Floats, codes: Ints, queries: Floats, minutes: float) -> Outcome:
    """The authors' parameters; all rows vote, whatever sample the metric was learned from."""

    def fit(n_rows: int) -> LMNN:
        return LMNN(random_state=0, **PUBLISHED_LMNN).fit(*sample(X, codes, n_rows, seed=0))

    model, n_rows = fit_within(fit, len(X), 60 * minutes)
    if n_rows < len(X):
        model.set_references(X, codes)
    converged = model.n_iter_ < model.max_iter
    return Outcome(model.predict(queries), model.predict_proba(queries), n_rows, {}, converged)


def fit_within(fit: Callable[[int], Any], n_rows: int, seconds: float) -> tuple[Any, int]:
    """The model fitted on the largest sample that takes no longer, and its rows.

    Samples grow from ``FIRST_SAMPLE``; the time is assumed to grow with the square of the rows.
    """
    n = min(FIRST_SAMPLE, n_rows)
    while True:
        start = time.perf_counter()
        model = fit(n)
        step = min(LARGEST_STEP, (seconds / (time.perf_counter() - start)) ** 0.5)
        if n == n_rows or step < SMALLEST_STEP:
            return model, n
        n = min(n_rows, int(n * step))


RIVALS: dict[str, Callable[[Floats, Ints, Floats, float], Outcome]] = {
    "3-NN": three_nearest,
    "3-NN, standardised": three_nearest_standardised,
    "tuned k-NN": chosen_nearest,
    "logistic regression": logistic_regression,
    "RBF-SVM": rbf_svm,
    "k-means prototypes": kmeans_prototypes,
    "LMNN": lmnn,
}
"""The rivals by name."""
