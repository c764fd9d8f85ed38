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
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from latentmetric.core.types import Floats
from latentmetric.export.parts import Parts

TIE_BREAK = 2.0**-46
"""The smallest extra weight of a nearer neighbour; sums of up to 40 votes stay exact."""

MAX_TIE_BREAKERS = 40


def to_sklearn(model: Any) -> Pipeline:
    """Convert a model to a scikit-learn pipeline that predicts the same without latentmetric.

    Its steps are a ``StandardScaler`` (the model's centre and scale), a ``FunctionTransformer`` of
    ``numpy.dot`` (the metric) and a brute-force ``KNeighborsClassifier`` (the references). It can
    be pickled and used wherever similar versions of NumPy and scikit-learn are installed.

    Predictions are the same except where neighbours tie within rounding. A tied vote goes to the
    nearest neighbour's class, as in the model, not to the first class as in scikit-learn alone:
    the votes of nearer neighbours weigh slightly more, which moves probabilities by less than
    2 ** (n_neighbors - 46). This holds for up to 40 neighbours; with more, the first class wins.
    With ``weights="distance"``, classes whose inverse distances have exactly the same sum go to the
    first class. With "kernel", the weights are a softmax of squared distances, in a small pipeline
    of their own.

    Parameters
    ----------
    model : estimator of this package, or a Pipeline that ends in one
        Fitted. The steps of a pipeline are copied before the three steps of the model.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Classes without references are not in its ``classes_``.

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
    factor, rows = _map_and_rows(parts)
    if parts.weights == "kernel" and parts.model.temperature > 0:
        unit = factor.dtype.type(sqrt(parts.model.temperature))
        factor, rows, voters = factor / unit, rows / unit, _kernel_voters(parts.n_voters)
    else:
        voters = _plain_voters(parts)
    voters.set_params(n_jobs=parts.n_jobs).fit(rows, parts.labels)
    linear = FunctionTransformer(np.dot, kw_args={"b": factor.T})
    steps = [] if parts.piped.steps is None else deepcopy(parts.piped.steps.steps)
    for name, step in (("centre", _scaler(parts)), ("metric", linear), ("vote", voters)):
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
