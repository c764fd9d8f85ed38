"""A fitted model as a pipeline of standard scikit-learn parts, which runs without this package.

Memory: a copy of the references.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from latentmetric.core.types import Floats
from latentmetric.export.parts import SearchParts

TIE_BREAK = 2.0**-46
"""The unit by which a nearer neighbour's vote counts more; sums of up to 40 votes stay exact."""

MOST_BROKEN_TIES = 40


def to_sklearn(model: Any) -> Pipeline:
    """A pipeline of scikit-learn that predicts as the model does and needs no latentmetric.

    Its steps are a ``StandardScaler`` (the model's centre and scale), a ``FunctionTransformer`` of
    ``numpy.dot`` (the metric) and a brute-force ``KNeighborsClassifier`` (the references). It can
    be pickled and used wherever NumPy and scikit-learn of about the same version are.

    Predictions are the same where neighbours do not tie within rounding. A tied vote goes to the
    nearest neighbour's class, as in the model, where scikit-learn alone would take the first
    class: a nearer neighbour's vote counts a trace more, which moves probabilities by less than
    2 ** (n_neighbors - 46). This holds for up to 40 neighbours; beyond, the first class wins. With
    ``weights="distance"`` classes whose inverse distances add up to exactly the same go to the
    first class.

    Parameters
    ----------
    model : MaPML, LMNN, OASIS, HRSGD or Euclidean
        Fitted, with ``weights`` "uniform" or "distance". "kernel" is refused: scikit-learn has
        no part for it that works without code of ours.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Classes that have no reference are not among its ``classes_``.

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
    parts = SearchParts.of(model)
    if model.weights == "kernel":
        raise ValueError(
            "weights='kernel' has no standard part in scikit-learn; use to_onnx, or export "
            "after model.set_params(weights='distance') or weights='uniform'"
        )
    factor, rows = _map_and_rows(parts)
    voters = KNeighborsClassifier(
        n_neighbors=min(model.n_neighbors, len(rows)),
        weights=_weights(model.weights, min(model.n_neighbors, len(rows))),
        algorithm="brute",
        n_jobs=model.n_jobs,
    ).fit(rows, parts.labels)
    linear = FunctionTransformer(np.dot, kw_args={"b": factor.T})
    steps = [("centre", _scaler(parts, model)), ("metric", linear), ("vote", voters)]
    return Pipeline(steps)


def _scaler(parts: SearchParts, model: Any) -> StandardScaler:
    """x → (x − centre) / scale, as if fitted."""
    scaler = StandardScaler()
    scaler.mean_ = parts.coordinates.centre.copy()
    scaler.scale_ = np.full(parts.n_features, parts.coordinates.scale)
    scaler.var_ = scaler.scale_**2
    scaler.n_features_in_ = parts.n_features
    scaler.n_samples_seen_ = len(parts.references)
    if hasattr(model, "feature_names_in_"):
        scaler.feature_names_in_ = model.feature_names_in_.copy()
    return scaler


def _map_and_rows(parts: SearchParts) -> tuple[Floats, Floats]:
    """The linear map, and references that are nearest where the model's are.

    For a similarity, references get one more coordinate that brings them all to one norm, and
    queries a 0 there: then the nearest is the one with the largest inner product.
    """
    rows = parts.references.rows
    if parts.components is not None:
        return parts.components.copy(), rows.copy()
    norms = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    lacking = np.sqrt(norms.max() - norms)
    identity = np.eye(parts.n_features + 1, parts.n_features)
    return identity, np.column_stack((rows, lacking))


def _weights(weights: str, n_neighbors: int) -> Any:
    """As the name says; "uniform" by a function of NumPy that breaks ties."""
    if weights == "distance" or n_neighbors > MOST_BROKEN_TIES:
        return weights
    ascending = 1 + TIE_BREAK * 2.0 ** np.arange(n_neighbors - 1, -1, -1)
    return partial(np.full_like, fill_value=ascending, dtype=np.float64)
