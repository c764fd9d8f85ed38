"""A fitted model as a pipeline of standard scikit-learn parts, which runs without this package.

Memory: a copy of the references.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from latentmetric.core.distances import squared_norms
from latentmetric.core.tuning import LEAST_SHARE
from latentmetric.core.types import Floats
from latentmetric.core.votes import voting_scales
from latentmetric.export.parts import Parts

TIE_BREAK = 2.0**-46
"""The smallest extra weight of a nearer neighbour; sums of up to 40 votes stay exact."""

MAX_TIE_BREAKERS = 40


def to_sklearn(model: Any) -> Pipeline:
    """Convert a model to a scikit-learn pipeline that predicts the same without latentmetric.

    Its first steps are a ``StandardScaler`` (the model's centre and scale) and a
    ``FunctionTransformer`` of ``numpy.dot`` (the metric). What follows depends on the vote. The
    pipeline can be pickled and used wherever similar versions of NumPy and scikit-learn are
    installed.

    With "uniform" and "distance", a brute-force ``KNeighborsClassifier`` holds the references.
    Predictions are the same except where neighbours tie within rounding. A tied vote goes to the
    nearest neighbour's class, as in the model, not to the first class as in scikit-learn alone:
    the votes of nearer neighbours weigh slightly more, which moves probabilities by less than
    2 ** (n_neighbors - 46). This holds for up to 40 neighbours; with more, the first class wins.
    With ``weights="distance"``, classes whose inverse distances have exactly the same sum go to the
    first class.

    With "kernel", where all references vote, their votes are a ``LogisticRegression`` over the
    references, whose scores of a row are b − e^t D²/T; sums over classes and a second
    ``LogisticRegression`` follow. Probabilities are the same within rounding, and ties go to the
    first class. Memory O(n·m) for n rows and m references. Beyond 1,024 references, the nearest 40
    vote, in a ``KNeighborsClassifier`` with weights from a softmax: what the model then sets aside
    for the others, at most the weight of the last voter, is missing in the probabilities, so some
    are 0. If so many references have bandwidths of their own, all of them vote here, in the model
    the nearest 1,024.

    Parameters
    ----------
    model : estimator of this package, or a Pipeline that ends in one
        Fitted. The steps of a pipeline are copied before the steps of the model.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Classes without references may not be in its ``classes_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from latentmetric import MaPML
    >>> from latentmetric.export import to_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaPML(random_state=0).fit(X, y)
    >>> bool((to_sklearn(model).predict(X) == model.predict(X)).all())
    True
    """
    parts = Parts.of(model, "scikit-learn")
    steps = [] if parts.piped.steps is None else deepcopy(parts.piped.steps.steps)
    voting = _all_voting if _all_vote(parts) else _nearest_voting
    for name, step in (("centre", _scaler(parts)), *voting(parts)):
        while name in dict(steps):
            name = f"{name}_of_model"
        steps.append((name, step))
    return Pipeline(steps)


def _scaler(parts: Parts) -> StandardScaler:
    """A fitted scaler that maps x to (x − centre) / scale, the centre rounded as in the model."""
    scaler = StandardScaler()
    scaler.mean_ = parts.model.coordinates.centre.astype(parts.model.dtype).astype(np.float64)
    scaler.scale_ = np.full(parts.model.n_features, parts.model.coordinates.scale)
    scaler.var_ = scaler.scale_**2
    scaler.n_features_in_ = parts.model.n_features
    scaler.n_samples_seen_ = len(parts.model.references)
    if hasattr(parts.piped.estimator, "feature_names_in_"):
        scaler.feature_names_in_ = parts.piped.estimator.feature_names_in_.copy()
    return scaler


def _all_vote(parts: Parts) -> bool:
    """Whether all references vote, or must because only that can be computed."""
    model = parts.model
    if parts.weights != "kernel" or not model.temperature > 0 or len(model.references) < 2:
        return False
    return model.log_scales is not None or parts.n_voters == len(model.references)


def _all_voting(parts: Parts) -> list[tuple[str, Any]]:
    """The metric and a kernel vote of all references.

    b − s‖q − u‖² is linear in the point q and the squares of its coordinates.
    """
    model, dtype = parts.model, np.float64
    assert model.components is not None
    points, n_classes = model.references.rows.astype(dtype), len(parts.classes)
    zeros = np.zeros(len(points))
    scales = voting_scales(zeros if model.log_scales is None else model.log_scales,
                           model.temperature)[:, None]  # fmt: skip
    weights = zeros if model.log_weights is None else model.log_weights.astype(dtype)
    squares = FeatureUnion([("points", "passthrough"), ("squares", FunctionTransformer(np.square))])
    references = _logistic(
        np.hstack((2 * scales * points, np.broadcast_to(-scales, points.shape))),
        weights - scales[:, 0] * squared_norms(points),
        np.arange(len(points)),
    )
    of_classes = (model.codes[:, None] == np.arange(n_classes)) + LEAST_SHARE / n_classes
    return [
        ("metric", _linear(model.components.T.astype(dtype))),
        ("squares", squares.fit(np.zeros((1, points.shape[1])))),
        ("references", FunctionTransformer(references.predict_proba)),
        ("classes", _linear(of_classes)),
        ("logarithm", FunctionTransformer(np.log)),
        ("vote", _logistic(np.eye(n_classes), np.zeros(n_classes), parts.classes)),
    ]


def _linear(matrix: Floats) -> FunctionTransformer:
    return FunctionTransformer(np.dot, kw_args={"b": matrix})


def _logistic(coef: Floats, intercept: Floats, classes: Any) -> LogisticRegression:
    """A fitted regression; of two classes, scikit-learn stores the difference."""
    if len(classes) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    fitted = LogisticRegression()
    fitted.coef_, fitted.intercept_, fitted.classes_ = coef, intercept, classes
    fitted.n_features_in_, fitted.n_iter_ = coef.shape[1], np.zeros(1, dtype=np.int32)
    return fitted


def _nearest_voting(parts: Parts) -> list[tuple[str, Any]]:
    """The metric and a vote of the nearest references."""
    factor, rows = _map_and_rows(parts)
    if parts.weights == "kernel" and parts.model.temperature > 0:
        unit = factor.dtype.type(sqrt(parts.model.temperature))
        factor, rows, voters = factor / unit, rows / unit, _kernel_voters(parts.n_voters)
    else:
        voters = _plain_voters(parts)
    voters.set_params(n_jobs=parts.n_jobs).fit(rows, parts.labels)
    return [("metric", _linear(factor.T)), ("vote", voters)]


def _map_and_rows(parts: Parts) -> tuple[Floats, Floats]:
    """The linear map, and references with the same nearest neighbours as the model's.

    For a similarity, references get one more coordinate that gives all of them the same norm, and
    queries get a 0: then the nearest reference is the one with the largest inner product.
    """
    rows = parts.model.references.rows
    if parts.model.components is not None:
        return parts.model.components.copy(), rows.copy()
    norms = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    lacking = np.sqrt(norms.max() - norms)
    identity = np.eye(parts.model.n_features + 1, parts.model.n_features)
    return identity, np.column_stack((rows, lacking))


def _plain_voters(parts: Parts) -> KNeighborsClassifier:
    """A classifier for votes other than the kernel's; at T = 0, this is the nearest reference."""
    weights: Any = parts.weights
    n_neighbors = parts.n_neighbors
    if weights == "kernel":
        weights, n_neighbors = "uniform", 1
    if weights == "uniform" and n_neighbors <= MAX_TIE_BREAKERS:
        ascending = 1 + TIE_BREAK * 2.0 ** np.arange(n_neighbors - 1, -1, -1)
        weights = partial(np.full_like, fill_value=ascending, dtype=np.float64)
    return KNeighborsClassifier(n_neighbors, weights=weights, algorithm="brute")


def _kernel_voters(n_neighbors: int) -> KNeighborsClassifier:
    """A classifier that weights by exp(−D²) of each distance D; the metric must be in units of T.

    The weights come from functions of NumPy and SciPy, which can be pickled without this package.
    """
    softmin = Pipeline(
        [
            ("minus", FunctionTransformer(np.negative)),
            ("weights", FunctionTransformer(softmax, kw_args={"axis": 1})),
        ]
    ).fit(np.zeros((1, n_neighbors)))
    return KNeighborsClassifier(
        n_neighbors, weights=softmin.transform, metric="sqeuclidean", algorithm="brute"
    )
