"""The classifiers that one would use instead, with parameters chosen for the data.

The parameters of tuned-k-NN, logistic-regression and SVC, and whether columns are standardised, are
chosen by cross-validation on a sample of the training rows. Of Euclid-scaled and random-forest,
nothing is chosen.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from math import isqrt
from typing import Any, TypeAlias

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from latentmetric.core.model import euclidean_model
from latentmetric.core.parallel import single_threaded_blas
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.evaluation.sampling import sample

SCALED, FOREST = "Euclid-scaled", "random-forest"
"""Nearest neighbours on standardised columns, and a forest with scikit-learn's defaults."""

K_NN, LOGISTIC, SUPPORT = TUNED = ("tuned-k-NN", "logistic-regression", "SVC")

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
"""Up to this product of rows, features and classes, threads of BLAS gain nothing, and on a busy
machine they wait for each other."""

Folds: TypeAlias = list[tuple[Ints, Ints]]
"""Rows to fit and rows to test, of each fold."""


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
        if isinstance(classifier, Euclidean):
            return self.n_rows
        return int(np.sum(getattr(classifier, "n_support_", 0)))


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
        return _fitted(_pipeline(Euclidean(n_neighbors), True), f"k = {n_neighbors}", X, y)
    if name == FOREST:
        forest = RandomForestClassifier(random_state=random_state, n_jobs=n_jobs)
        return _fitted(_pipeline(forest, False), "scikit-learn's defaults", X, y)
    classes, codes = np.unique(y, return_inverse=True)
    n_features, n_classes = int(X.shape[1]), len(classes)
    small = len(codes) * n_features * n_classes <= SMALL_WORK
    generator = np.random.default_rng(random_state)
    with warnings.catch_warnings(), single_threaded_blas() if small else nullcontext():
        # Fits that end early are judged by their errors; not every fold has every class.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FitFailedWarning)
        some = np.sort(sample(codes, _selection_rows(name, n_features * n_classes), generator))
        rows, some_codes = np.asarray(X[some], dtype=np.float64), codes[some]
        folds = _folds(some_codes, random_state)
        tune = {K_NN: _tune_neighbors, LOGISTIC: _tune_logistic, SUPPORT: _tune_svc}[name]
        pipeline, words = tune(rows, some_codes, folds)
        if name == K_NN:
            pipeline[-1].set_params(n_jobs=n_jobs)
        elif bounded:
            n_rows = _bound(pipeline[-1], len(codes), n_features, n_classes)
            if n_rows < len(codes):
                kept = np.sort(sample(codes, n_rows, generator))
                X, y = X[kept], y[kept]
        return _fitted(pipeline, words, X, y)


def _fitted(pipeline: Pipeline, words: str, X: Any, y: Any) -> Rival:
    columns = "as they are" if pipeline[0] == "passthrough" else "standardised"
    return Rival(pipeline.fit(X, y), len(y), f"{words}, columns {columns}")


def _pipeline(classifier: Any, scaling: bool) -> Pipeline:
    scaler = StandardScaler() if scaling else "passthrough"
    return Pipeline([("scaling", scaler), ("classifier", classifier)])


def _selection_rows(name: str, width: int) -> int:
    """Rows that the parameters are chosen on, with ``width`` features times classes."""
    if name == SUPPORT:
        return SVC_SELECTION_ROWS
    return min(SELECTION_ROWS, SELECTION_WORK // width + 2) if name == LOGISTIC else SELECTION_ROWS


def _folds(codes: Ints, random_state: int) -> Folds:
    """Rows to fit and rows to test; none if every class has fewer rows than there are folds."""
    if np.bincount(codes).max() < FOLDS:
        return []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=random_state)
    return list(folds.split(codes, codes))


def _tune_neighbors(rows: Floats, codes: Ints, folds: Folds) -> tuple[Pipeline, str]:
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


def _tune_logistic(rows: Floats, codes: Ints, folds: Folds) -> tuple[Pipeline, str]:
    grid = {"scaling": [StandardScaler(), "passthrough"], "classifier__C": STRENGTHS}
    quick = LogisticRegression(max_iter=50, tol=1e-3)
    pipeline = _grid_search(quick, [grid], rows, codes, folds)
    strength = pipeline[-1].C
    pipeline.set_params(classifier=LogisticRegression(C=strength, max_iter=MAX_ITER))
    return pipeline, f"C = {strength:g}"


def _tune_svc(rows: Floats, codes: Ints, folds: Folds) -> tuple[Pipeline, str]:
    """An SVM with an RBF kernel."""
    grids = []
    for scaling in (True, False):
        scaler = _pipeline("passthrough", scaling)[0]
        variance = np.var(_pipeline("passthrough", scaling).fit_transform(rows))
        gammas = np.divide(WIDTHS, rows.shape[1] * (variance or 1.0)).tolist()
        grids.append({"scaling": [scaler], "classifier__C": PENALTIES, "classifier__gamma": gammas})
    pipeline = _grid_search(SVC(), grids, rows, codes, folds)
    return pipeline, f"C = {pipeline[-1].C:g}, gamma = {pipeline[-1].gamma:.2g}"


def _grid_search(
    classifier: Any, grids: list[dict[str, Any]], rows: Floats, codes: Ints, folds: Folds
) -> Pipeline:
    """The pipeline with the highest accuracy; of equals, and without folds, the first."""
    pipeline = _pipeline(classifier, True)
    if not folds:
        return pipeline.set_params(**ParameterGrid(grids)[0])
    search = GridSearchCV(pipeline, grids, cv=folds, refit=False, error_score=0)
    return pipeline.set_params(**search.fit(rows, codes).best_params_)


def _bound(classifier: Any, n_rows: int, n_features: int, n_classes: int) -> int:
    """Rows that a bounded time allows, at least two for each class; bounds the iterations, too."""
    if isinstance(classifier, SVC):
        allowed = min(SVC_MAX_ROWS, isqrt(SVC_WORK // n_features))
        return min(n_rows, max(2 * n_classes, allowed))
    width = n_features * n_classes
    n_rows = min(n_rows, max(2 * n_classes, LOGISTIC_WORK // width))
    classifier.max_iter = int(np.clip(ITERATION_WORK // (width * n_rows), MIN_ITER, MAX_ITER))
    return n_rows
