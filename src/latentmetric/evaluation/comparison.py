"""Cross-validate methods on the same folds, with seconds that mean something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from latentmetric.core.types import Bools, Floats
from latentmetric.evaluation.rivals import (
    BOOSTING,
    FOREST,
    MAJORITY,
    SCALED,
    TUNED,
    Rival,
    fit_rival,
)
from latentmetric.evaluation.unequal import are_unequal, second_class_scores
from latentmetric.registry import ESTIMATORS, estimator_class

METHODS = {
    MAJORITY: MAJORITY,
    "Euclid": "Euclidean",
    **{name: name for name in (SCALED, *TUNED, FOREST, BOOSTING)},
    "MaPML": "MaPML",
    "MaPML-O": "MaPML",
    **{name: name for name in ESTIMATORS if name not in ("Euclidean", "MaPML")},
}
"""What is fitted for each method: an estimator of this package, or a rival of scikit-learn.

The simplest and best-known come first, and are recommended before others of the same error.
MaPML-O is the paper's name for MaPML whose references are all rows, not latent examples.
"""

MIN_SECONDS, MAX_CALLS = 0.2, 100
"""A call is repeated until all calls together have taken this long, but no more often."""

Result = TypeVar("Result")


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
    true: Any = field(kw_only=True)
    """The label of each row of the fold."""
    scores: Floats | None = field(default=None, kw_only=True)
    """How likely each row is of the second class, if there are two, and these are unequal."""

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
    on_start: Callable[[str, int], None] = lambda method, fold: None,
) -> Iterator[Outcome]:
    """Cross-validate methods on the same folds, and yield each result as soon as it is known.

    The estimators of this package have their default parameters. Those of tuned k-NN,
    logistic regression and SVC are chosen on training rows, which counts as part of the fit;
    random forest and HistGradientBoosting have scikit-learn's defaults. Fits and queries that take
    little time are repeated.

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
        Nearest references that vote; tuned k-NN chooses its own number.
    random_state : int, default=0
        Seed of the folds and of the methods.
    steps : transformer, default=None
        Steps before every method, such as a pipeline of an imputer and a scaler; a copy is fitted
        to the training rows of each fold.
    on_start : callable
        Called with method and fold before each fit.

    Yields
    ------
    Outcome

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from latentmetric.evaluation import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> found = list(compare(X, y, ["Euclid", "MaPML-O"], n_folds=2))
    >>> [(outcome.method, outcome.fold) for outcome in found]
    [('Euclid', 0), ('MaPML-O', 0), ('Euclid', 1), ('MaPML-O', 1)]
    """
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    unequal = are_unequal(y)
    for fold, (train, test) in enumerate(folds.split(np.empty(len(y)), y)):
        X_train, X_test, y_train = X[train], X[test], y[train]
        if steps is not None:
            fitted_steps = clone(steps)
            X_train, X_test = fitted_steps.fit_transform(X_train), fitted_steps.transform(X_test)
        fitted: dict[str, tuple[Any, float]] = {}
        for method in methods:
            on_start(method, fold)
            kind = METHODS[method]
            if kind not in fitted:  # MaPML and MaPML-O share a fit
                fitted[kind] = timed(
                    partial(_fit, kind, X_train, y_train, n_neighbors, random_state)
                )
            model, fit_seconds = fitted[kind]
            if method == "MaPML-O":
                model = copy(model).set_references(X_train, y_train)
            predict, references = predictor(model)
            predicted, query_seconds = timed(partial(predict, X_test))
            true, scores = y[test], None
            if unequal:
                classifier = model.pipeline if isinstance(model, Rival) else model
                scores = second_class_scores(classifier, X_test)
            yield Outcome(
                method, fold, predicted == true, fit_seconds, query_seconds, references,
                true=true, scores=scores,
            )  # fmt: skip


def _fit(kind: str, X: Any, y: Any, n_neighbors: int, random_state: int) -> Any:
    if kind not in ESTIMATORS:
        return fit_rival(kind, X, y, n_neighbors=n_neighbors, random_state=random_state)
    return estimator_class(kind)(n_neighbors=n_neighbors, random_state=random_state).fit(X, y)


def predictor(fitted: Any) -> tuple[Callable[[Any], Any], int]:
    """How a fitted estimator or rival predicts, and how many references it compares with."""
    model, last = fitted, fitted
    if isinstance(fitted, Rival):
        model, last = fitted.pipeline, fitted.pipeline[-1]
    if hasattr(last, "model_"):
        return model.predict, len(last.model_.references)
    return model.predict, int(np.sum(getattr(last, "n_support_", 0)))


def timed(
    call: Callable[[], Result], clock: Callable[[], float] = perf_counter
) -> tuple[Result, float]:
    """The result of a call, and the median of the seconds that it takes."""
    seconds: list[float] = []
    while True:
        since = clock()
        result = call()
        seconds.append(clock() - since)
        if sum(seconds) >= MIN_SECONDS or len(seconds) == MAX_CALLS:
            return result, median(seconds)


def duration(seconds: float) -> str:
    """Seconds as text, short ones in milliseconds."""
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"
