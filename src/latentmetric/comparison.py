"""Compare MaPML with other methods on any data: same folds, same vote, errors and seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from latentmetric.core.distances import row_blocks
from latentmetric.core.model import FittedModel
from latentmetric.core.parallel import small_numbers_may_vanish
from latentmetric.core.votes import n_voters
from latentmetric.engines.admission import in_this_process
from latentmetric.registry import ESTIMATORS, estimator_class
from latentmetric.validation.parameters import VOTING, plain

ORIGINAL = "-O"
"""The paper's suffix for a method whose references are all rows, not latent examples."""

METHODS = {
    "Euclid": "Euclidean",
    "MaPML": "MaPML",
    "MaPML" + ORIGINAL: "MaPML",
    **{name: name for name in ESTIMATORS if name not in ("Euclidean", "MaPML")},
}
"""The name of the estimator for each method, by the paper's names."""


@dataclass(frozen=True)
class Outcome:
    """The result of one method on one fold."""

    method: str
    """A name in ``METHODS``."""
    fold: int
    """The number of the fold, from 0."""
    error: float
    """The share of the fold's rows that were classified wrongly."""
    fit_seconds: float
    """The time of the fit."""
    query_seconds: float
    """The time to classify all rows of the fold."""
    n_queries: int
    """The number of rows of the fold."""
    references: int
    """The number of references that vote."""


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

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Labelled rows.
    y : array of shape (n_samples,)
        The label of each row.
    methods : sequence of str
        Names in ``METHODS``.
    n_folds : int, default=5
        Number of cross-validation folds.
    n_neighbors : int, default=3
        Nearest references that vote.
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
        rows, queries = _prepared(steps, X[train], X[test])
        fitted: dict[str, tuple[Any, float]] = {}
        for method in methods:
            about_to(method, fold)
            kind = METHODS[method]
            if kind not in fitted:
                since = perf_counter()
                estimator = estimator_class(kind)(
                    n_neighbors=n_neighbors, random_state=random_state
                )
                estimator.fit(rows, y[train])
                fitted[kind] = estimator, perf_counter() - since
            estimator, seconds = fitted[kind]
            model = estimator.model_
            if method.endswith(ORIGINAL):
                codes = np.searchsorted(estimator.classes_, y[train])
                originals = in_this_process(rows, estimator, "compare")
                with small_numbers_may_vanish():
                    model = model.with_references(originals, codes)
            since = perf_counter()
            wrong = _predicted(estimator, model, queries) != y[test]
            queried = perf_counter() - since
            yield Outcome(
                method, fold, float(wrong.mean()), seconds, queried, len(test),
                len(model.references),
            )  # fmt: skip


def _prepared(steps: Any, rows: Any, queries: Any) -> tuple[Any, Any]:
    """Training rows and queries after the steps, which see the training rows alone."""
    if steps is None:
        return rows, queries
    fitted = clone(steps)
    return fitted.fit_transform(rows), fitted.transform(queries)


def _predicted(estimator: Any, model: FittedModel, X: Any) -> np.ndarray[Any, Any]:
    """Labels by the estimator's vote, with the references of ``model``."""
    estimator = plain(estimator, VOTING)
    k = n_voters(estimator.weights, estimator.n_neighbors, len(model.references))
    rows = in_this_process(X, estimator, "compare")
    with small_numbers_may_vanish():
        neighbors = model.nearest(rows, k, estimator.n_jobs)
        labels: np.ndarray[Any, Any] = estimator.classes_[model.vote(neighbors, estimator.weights)]
    return labels


def sample_rows(
    X: Any, y: np.ndarray[Any, Any], n_rows: int, random_state: int = 0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """At most ``n_rows`` rows, drawn at random; rows in a file are read block by block."""
    if len(y) <= n_rows:
        return np.asarray(X), y
    drawn = np.random.default_rng(random_state).choice(len(y), n_rows, replace=False)
    drawn.sort()
    parts = []
    for block in row_blocks(len(y), X.shape[1] * X.dtype.itemsize):
        first, last = np.searchsorted(drawn, (block.start, block.stop))
        if first < last:
            parts.append(X[block][drawn[first:last] - block.start])
    return np.concatenate(parts), y[drawn]
