"""Cross-validate methods on the same folds, with seconds that mean something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from latentmetric.comparison.methods import METHODS, answering, fit_method
from latentmetric.comparison.timing import timed
from latentmetric.core.types import Bools


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of one method on one fold."""

    method: str
    """Its name in ``METHODS``."""
    fold: int
    """The number of the fold, from 0."""
    right: Bools
    """Whether each row of the fold is predicted correctly."""
    fit_seconds: float
    """The time of a fit, the choice of parameters included."""
    query_seconds: float
    """The time to predict all rows of the fold."""
    references: int
    """Rows or latent examples that a query is compared with; 0 if there are none."""

    @property
    def error(self) -> float:
        """The share of the fold's rows that are predicted wrongly."""
        return float(np.mean(~self.right))

    @property
    def n_queries(self) -> int:
        """The rows of the fold."""
        return len(self.right)


def compare(
    X: Any,
    y: Any,
    methods: Sequence[str] = tuple(METHODS),
    *,
    n_folds: int = 5,
    n_neighbors: int = 3,
    random_state: int = 0,
    steps: Any = None,
    about_to: Callable[[str, int], None] = lambda method, fold: None,
) -> Iterator[Outcome]:
    """Cross-validate methods on the same folds, and yield each result as soon as it is known.

    The estimators of this package have their default parameters. Those of tuned-k-NN,
    logistic-regression and SVC are chosen on training rows, which counts as part of the fit;
    random-forest has scikit-learn's defaults. Fits and queries that take little time are repeated.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows.
    y : array of shape (n_samples,)
        The label of each row.
    methods : sequence of str
        Names in ``METHODS``.
    n_folds : int, default=5
        Number of cross-validation folds.
    n_neighbors : int, default=3
        Nearest references that vote; tuned-k-NN chooses its own number.
    random_state : int, default=0
        Seed of the folds and of the methods.
    steps : transformer, default=None
        Steps before every method, such as a pipeline of an imputer and a scaler; a copy is fitted
        to the training rows of each fold.
    about_to : callable
        Called with method and fold before each fit.

    Yields
    ------
    Outcome

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from latentmetric.comparison import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> found = list(compare(X, y, ["Euclid", "MaPML-O"], n_folds=2))
    >>> [(outcome.method, outcome.fold) for outcome in found]
    [('Euclid', 0), ('MaPML-O', 0), ('Euclid', 1), ('MaPML-O', 1)]
    """
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    for fold, (train, test) in enumerate(folds.split(np.empty(len(y)), y)):
        fitted: dict[str, tuple[Any, float]] = {}
        y_train = y[train]
        X_train, X_test = _prepared(steps, X[train], X[test])
        for method in methods:
            about_to(method, fold)
            kind = METHODS[method]
            if kind not in fitted:
                fitted[kind] = timed(
                    partial(fit_method, kind, X_train, y_train, n_neighbors, random_state)
                )
            model, fit_seconds = fitted[kind]
            ready = answering(method, model, X_train, y_train)
            predicted, query_seconds = timed(partial(ready.predict, X_test))
            right = predicted == y[test]
            yield Outcome(method, fold, right, fit_seconds, query_seconds, ready.references)


def _prepared(steps: Any, rows: Any, queries: Any) -> tuple[Any, Any]:
    """Training rows and queries after the steps, which see the training rows alone."""
    if steps is None:
        return rows, queries
    fitted = clone(steps)
    return fitted.fit_transform(rows), fitted.transform(queries)
