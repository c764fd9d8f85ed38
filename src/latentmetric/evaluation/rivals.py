"""The classifiers that one would use instead, with parameters chosen for the data.

The parameters of tuned k-NN, logistic regression and SVC, and whether columns are standardised, are
chosen by cross-validation on a sample of the training rows. Of the others, nothing is chosen.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import product
from math import isqrt
from typing import Any, TypeAlias

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from latentmetric.core.model import euclidean_model
from latentmetric.core.parallel import single_threaded_blas
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.evaluation.sampling import sample

MAJORITY, SCALED = "majority class", "Euclid-scaled"
"""Always the most frequent class, and nearest neighbours on standardised columns."""

FOREST, BOOSTING = "random forest", "HistGradientBoosting"
"""Trees with scikit-learn's defaults."""

K_NN, LOGISTIC, SUPPORT = TUNED = ("tuned k-NN", "logistic regression", "SVC")

FOLDS = 3
"""Folds of the choice of parameters."""

SELECTION_ROWS, SELECTION_WORK = 3_000, 2 * 10**8
"""Training rows that the parameters are chosen on, and, for logistic regression, their product with
features and classes."""

SVC_SELECTION_ROWS = 1_000

NEIGHBORS = (1, 3, 5, 9, 15)
WEIGHTS = {"uniform": "equal votes", "distance": "nearer rows count more"}
"""The weights that are tried, each in words."""

STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Values of logistic regression's C."""

PENALTIES, WIDTHS = (1.0, 10.0), (0.3, 1.0, 3.0)
"""Values of SVC's C, and of gamma as multiples of scikit-learn's gamma="scale"."""

LOGISTIC_WORK = 2 * 10**9
"""Product of rows, features and classes of a bounded fit; from more rows, a sample is drawn."""

ITERATION_WORK = 4 * 10**10
"""The same times the iterations of a bounded fit."""

MIN_ITER, MAX_ITER = 20, 300

SVC_MAX_ROWS, SVC_WORK = 5_000, 10**10
"""Rows of a bounded fit, and the product of their square and the features."""

SMALL_WORK = 10**7
"""Up to this product of rows, features and classes, threads of BLAS and OpenMP gain nothing, and on
a busy machine they wait for each other."""

Folds: TypeAlias = list[tuple[Ints, Ints]]
"""Rows to fit and rows to test; none if every class has fewer rows than there are folds."""


@dataclass(frozen=True)
class Rival:
    """A rival after its fit."""

    pipeline: Pipeline
    """Scaling and classifier, which predicts labels as they were given."""
    n_rows: int
    """Training rows that it was fitted to."""
    chosen: str
    """The parameters that were chosen, in words."""


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
    classes, codes = np.unique(y, return_inverse=True)
    width = int(X.shape[1]) * len(classes)
    threads: AbstractContextManager[Any] = nullcontext()
    if len(codes) * width <= SMALL_WORK and name in TUNED:
        threads = single_threaded_blas()
    elif len(codes) * width <= SMALL_WORK and name == BOOSTING:
        threads = threadpool_limits(1, user_api="openmp")
    with warnings.catch_warnings(), threads:
        if name in TUNED:
            # Fits that end early are judged by their errors; not every fold has every class.
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("ignore", FitFailedWarning)
            generator = np.random.default_rng(random_state)
            pipeline, words = _chosen(name, X, codes, width, random_state, generator)
            if name == K_NN:
                pipeline[-1].set_params(n_jobs=n_jobs)
            elif bounded:
                n_rows = _bound(pipeline[-1], len(codes), int(X.shape[1]), len(classes))
                if n_rows < len(codes):
                    kept = np.sort(sample(codes, n_rows, generator))
                    X, y = X[kept], y[kept]
        else:
            # Boosting would stop early from 10,000 rows on, and fail where a class has one row.
            boosting = HistGradientBoostingClassifier(
                early_stopping=False, random_state=random_state
            )
            forest = RandomForestClassifier(random_state=random_state, n_jobs=n_jobs)
            always = DummyClassifier(strategy="most_frequent")
            classifier, scaling, words = {
                MAJORITY: (always, False, "always the most frequent class"),
                SCALED: (Euclidean(n_neighbors), True, f"k = {n_neighbors}"),
                FOREST: (forest, False, "scikit-learn's defaults"),
                BOOSTING: (boosting, False, "scikit-learn's defaults"),
            }[name]
            pipeline = _pipeline(classifier, scaling)
        columns = "as they are" if pipeline[0] == "passthrough" else "standardised"
        return Rival(pipeline.fit(X, y), len(y), f"{words}, columns {columns}")


def _chosen(
    name: str, X: Any, codes: Ints, width: int, random_state: int, generator: np.random.Generator
) -> tuple[Pipeline, str]:
    """The pipeline with the lowest error on the folds of a sample, and its parameters in words."""
    n_selection = SVC_SELECTION_ROWS if name == SUPPORT else SELECTION_ROWS
    if name == LOGISTIC:
        n_selection = min(n_selection, SELECTION_WORK // width + 2)
    some = np.sort(sample(codes, n_selection, generator))
    rows, some_codes = np.asarray(X[some], dtype=np.float64), codes[some]
    folds: Folds = []
    if np.bincount(some_codes).max() >= FOLDS:
        shuffled = StratifiedKFold(FOLDS, shuffle=True, random_state=random_state)
        folds = list(shuffled.split(rows, some_codes))
    if name == K_NN:
        return _choose_neighbors(rows, some_codes, folds)
    return _choose_strength(name, rows, some_codes, folds)


def _pipeline(classifier: Any, scaling: bool) -> Pipeline:
    scaler = StandardScaler() if scaling else "passthrough"
    return Pipeline([("scaling", scaler), ("classifier", classifier)])


def _choose_neighbors(rows: Floats, codes: Ints, folds: Folds) -> tuple[Pipeline, str]:
    """k nearest rows; the rows of a fold are searched once for all k and weights."""
    ks = [k for k in NEIGHBORS if k <= max(1, len(rows) // 2)]
    n_right = dict.fromkeys(product((False, True), ks, WEIGHTS), 0)
    for train, test in folds:
        for scaling in (False, True):
            scaler = _pipeline("passthrough", scaling).fit(rows[train])
            known, asked = scaler.transform(rows[train]), scaler.transform(rows[test])
            model = euclidean_model(known, codes[train], int(codes.max()) + 1)
            neighbors = model.nearest(asked, min(ks[-1], len(train)))
            for k, weights in product(ks, WEIGHTS):
                voted = model.vote(neighbors.first(k), weights)
                n_right[scaling, k, weights] += int((voted == codes[test]).sum())
    scaling, k, weights = max(n_right, key=lambda candidate: n_right[candidate])
    return _pipeline(Euclidean(k, weights=weights), scaling), f"k = {k}, {WEIGHTS[weights]}"


def _choose_strength(name: str, rows: Floats, codes: Ints, folds: Folds) -> tuple[Pipeline, str]:
    """Logistic regression, or an SVM with an RBF kernel, by a grid search.

    Of equals, and without folds, the first candidate is taken.
    """
    scalers = {True: StandardScaler(), False: "passthrough"}
    if name == LOGISTIC:
        pipeline = _pipeline(LogisticRegression(max_iter=50, tol=1e-3), True)
        grids = [{"scaling": [*scalers.values()], "classifier__C": STRENGTHS}]
    else:
        pipeline, grids = _pipeline(SVC(), True), []
        for scaling, scaler in scalers.items():
            variance = np.var(_pipeline("passthrough", scaling).fit_transform(rows))
            gammas = np.divide(WIDTHS, rows.shape[1] * (variance or 1.0)).tolist()
            grids.append(
                {"scaling": [scaler], "classifier__C": PENALTIES, "classifier__gamma": gammas}
            )
    best = ParameterGrid(grids)[0]
    if folds:
        search = GridSearchCV(pipeline, grids, cv=folds, refit=False, error_score=0)
        best = search.fit(rows, codes).best_params_
    pipeline.set_params(**best)
    strength = pipeline[-1].C
    if name == LOGISTIC:
        pipeline.set_params(classifier=LogisticRegression(C=strength, max_iter=MAX_ITER))
        return pipeline, f"C = {strength:g}"
    return pipeline, f"C = {strength:g}, gamma = {pipeline[-1].gamma:.2g}"


def _bound(classifier: Any, n_rows: int, n_features: int, n_classes: int) -> int:
    """Rows that a bounded time allows, at least two for each class; bounds the iterations, too."""
    if isinstance(classifier, SVC):
        allowed = min(SVC_MAX_ROWS, isqrt(SVC_WORK // n_features))
        return min(n_rows, max(2 * n_classes, allowed))
    width = n_features * n_classes
    n_rows = min(n_rows, max(2 * n_classes, LOGISTIC_WORK // width))
    classifier.max_iter = int(np.clip(ITERATION_WORK // (width * n_rows), MIN_ITER, MAX_ITER))
    return n_rows
