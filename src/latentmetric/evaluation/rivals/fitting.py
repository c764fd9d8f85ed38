"""Every rival by its name, chosen and fitted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from latentmetric.core.parallel import blas_threads
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.evaluation.rivals.choosing import Chosen, Task
from latentmetric.evaluation.rivals.logistic import logistic_regression
from latentmetric.evaluation.rivals.neighbours import nearest_neighbours
from latentmetric.evaluation.rivals.support_vectors import support_vectors
from latentmetric.evaluation.sampling import sample

TUNED: dict[str, Callable[[Task], Chosen]] = {
    "tuned-k-NN": nearest_neighbours,
    "logistic-regression": logistic_regression,
    "SVC": support_vectors,
}
"""How the parameters of each rival are chosen, by its name."""

FOREST = "random-forest"
"""The name of scikit-learn's random forest, of which nothing is chosen: its defaults do well."""

SMALL_WORK = 10**7
"""Up to this product of rows, features and classes, threads of BLAS gain nothing, and on a busy
machine they wait for each other."""

SCALED = "Euclid-scaled"
"""The name of nearest neighbours on standardised columns, of which nothing is chosen."""


@dataclass(frozen=True)
class Rival:
    """A rival after its fit."""

    pipeline: Pipeline
    """Scaling and classifier, which predicts labels as they were given."""
    n_rows: int
    """Training rows that it was fitted to."""
    chosen: str
    """The parameters that were chosen, in words."""

    @property
    def references(self) -> int:
        """How many rows a query is compared with; 0 if it is not compared with rows."""
        classifier = self.pipeline[-1]
        if isinstance(classifier, SVC):
            return int(classifier.n_support_.sum())
        has_none = isinstance(classifier, LogisticRegression | RandomForestClassifier)
        return 0 if has_none else self.n_rows


def fit_rival(
    name: str,
    X: Any,
    y: Any,
    *,
    n_neighbors: int = 3,
    random_state: int = 0,
    n_jobs: int | None = None,
    bounded: bool = False,
) -> Rival:
    """A rival, its parameters chosen on these rows, fitted to all of them.

    If it is ``bounded``, logistic regression and SVC take only as many rows as a bounded time
    allows.
    """
    if name == SCALED:
        return _fitted(Chosen(Euclidean(n_neighbors), True, f"k = {n_neighbors}"), X, y)
    if name == FOREST:
        forest = RandomForestClassifier(random_state=random_state, n_jobs=n_jobs)
        return _fitted(Chosen(forest, False, "scikit-learn's defaults"), X, y)
    codes = np.unique(y, return_inverse=True)[1]
    task = Task(X, codes, np.random.default_rng(random_state), n_jobs, bounded)
    small = len(codes) * task.width <= SMALL_WORK
    with warnings.catch_warnings(), blas_threads(1 if small else None):
        # One that ends early is judged by its errors like any other.
        warnings.simplefilter("ignore", ConvergenceWarning)
        chosen = TUNED[name](task)
        if chosen.n_rows is not None and chosen.n_rows < len(y):
            kept = np.sort(sample(codes, chosen.n_rows, task.generator))
            X, y = X[kept], y[kept]
        return _fitted(chosen, X, y)


def _fitted(chosen: Chosen, X: Any, y: Any) -> Rival:
    scaler = StandardScaler() if chosen.scaling else "passthrough"
    pipeline = Pipeline([("scaling", scaler), ("classifier", chosen.classifier)])
    return Rival(pipeline.fit(X, y), len(y), chosen.words)
