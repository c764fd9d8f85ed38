"""The classifiers of scikit-learn that one would try first, with parameters chosen for the data.

Each is chosen from a few candidates, with and without standardised columns, by cross-validation on
a sample of the training rows, and then fitted on all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from latentmetric.comparison.samples import sample_rows
from latentmetric.estimators.euclidean import Euclidean

FOLDS = 3
"""Folds of the choice among the candidates."""

NEIGHBOURS = (1, 3, 5, 9, 15)
WEIGHTS = ("uniform", "distance")
LOGISTIC_C = (0.01, 0.1, 1.0, 10.0)
LOGISTIC_ITERATIONS = 200
SVC_C = (1.0, 10.0)
SVC_GAMMA = (0.3, 1.0, 3.0)
"""Multiples of scikit-learn's gamma="scale"."""

MOST_ROWS = 1_000
"""Rows that a choice is made on."""

LOGISTIC_WORK = 5 * 10**7
"""Product of rows, features and classes that logistic regression is chosen on, at most."""

Candidates = Callable[[Any, Any], list[Pipeline]]
"""The candidates for some rows and labels; the first is the default."""


def nearest_neighbours(X: Any, y: Any) -> list[Pipeline]:
    """k-NN with the Euclidean distance: number of neighbours, weights, scaling."""
    n_rows = len(y) // 2
    return [
        _scaled(scaling, KNeighborsClassifier(k, weights=weights))
        for scaling, k, weights in product((False, True), NEIGHBOURS, WEIGHTS)
        if k <= max(1, n_rows)
    ]


def logistic_regression(X: Any, y: Any) -> list[Pipeline]:
    """Logistic regression: strength of the regularisation, scaling."""
    return [
        _scaled(scaling, LogisticRegression(C=C, max_iter=LOGISTIC_ITERATIONS))
        for scaling, C in product((True, False), LOGISTIC_C)
    ]


def support_vectors(X: Any, y: Any) -> list[Pipeline]:
    """SVM with an RBF kernel: width, penalty, scaling."""
    unit = {True: 1.0, False: float(np.var(X, dtype=np.float64)) or 1.0}
    return [
        _scaled(scaling, SVC(C=C, gamma=factor / (X.shape[1] * unit[scaling])))
        for scaling, factor, C in product((True, False), SVC_GAMMA, SVC_C)
    ]


TUNED: dict[str, Candidates] = {
    "k-NN-tuned": nearest_neighbours,
    "logistic-regression": logistic_regression,
    "SVC": support_vectors,
}
"""The candidates of each rival, by its name."""

SCALED = "Euclid-scaled"
"""The name of k-NN on standardised columns."""


def fit_rival(name: str, X: Any, y: Any, n_neighbors: int, random_state: int) -> Pipeline:
    """A rival, its parameters chosen on these rows, fitted on all of them."""
    if name == SCALED:
        return _scaled(True, Euclidean(n_neighbors)).fit(X, y)
    n_rows = MOST_ROWS
    if name == "logistic-regression":
        n_rows = min(n_rows, LOGISTIC_WORK // (X.shape[1] * len(np.unique(y))))
    rows, labels = sample_rows(X, y, max(n_rows, 2), random_state)
    with warnings.catch_warnings():
        # One that ends early is judged by its errors like any other.
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = _best(TUNED[name](rows, labels), rows, labels, random_state)
        return best.fit(X, y)


def references_of(rival: Pipeline, n_rows: int) -> int:
    """How many rows a query is compared with; 0 if it is not compared with rows."""
    classifier = rival[-1]
    if isinstance(classifier, SVC):
        return int(classifier.n_support_.sum())
    return 0 if isinstance(classifier, LogisticRegression) else n_rows


def _best(candidates: list[Pipeline], X: Any, y: Any, random_state: int) -> Pipeline:
    """The candidate with the fewest errors; of several, the first. The first if rows are few."""
    counts = np.sort(np.unique(y, return_counts=True)[1])
    if len(counts) < 2 or counts[-2] < FOLDS:
        return candidates[0]
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=random_state)
    errors = np.zeros(len(candidates))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = list(splitter.split(X, y))
    for train, test in folds:
        for place, candidate in enumerate(candidates):
            fitted = clone(candidate).fit(X[train], y[train])
            errors[place] += np.count_nonzero(fitted.predict(X[test]) != y[test])
    return candidates[int(errors.argmin())]


def _scaled(scaling: bool, classifier: Any) -> Pipeline:
    scaler = StandardScaler() if scaling else "passthrough"
    return Pipeline([("scaling", scaler), ("classifier", classifier)])
