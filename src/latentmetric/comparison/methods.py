"""The methods that are compared, by name, and how each is fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from latentmetric.core.model import FittedModel
from latentmetric.core.parallel import small_numbers_may_vanish
from latentmetric.core.votes import n_voters
from latentmetric.engines.admission import in_this_process
from latentmetric.evaluation.rivals import FOREST, SCALED, TUNED, fit_rival
from latentmetric.registry import ESTIMATORS, estimator_class
from latentmetric.validation.parameters import VOTING, validated_copy

ORIGINAL = "-O"
"""The paper's suffix for a method whose references are all rows, not latent examples."""

METHODS = {
    "Euclid": "Euclidean",
    **{name: name for name in (SCALED, *TUNED, FOREST)},
    "MaPML": "MaPML",
    "MaPML" + ORIGINAL: "MaPML",
    **{name: name for name in ESTIMATORS if name not in ("Euclidean", "MaPML")},
}
"""What is fitted for each method: an estimator of this package, or a rival of scikit-learn."""

Labels = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Answering:
    """A fitted method, ready to predict."""

    predict: Callable[[Any], Labels]
    references: int
    """Rows or latent examples that a query is compared with; 0 if there are none."""


def fit_method(kind: str, X: Any, y: Labels, n_neighbors: int, random_state: int) -> Any:
    """Fit what ``METHODS`` names for a method."""
    if kind not in ESTIMATORS:
        return fit_rival(kind, X, y, n_neighbors=n_neighbors, random_state=random_state)
    kind_of = estimator_class(kind)
    return kind_of(n_neighbors=n_neighbors, random_state=random_state).fit(X, y)


def answering(method: str, fitted: Any, X: Any, y: Labels) -> Answering:
    """A method after its fit on these rows."""
    if METHODS[method] not in ESTIMATORS:
        return Answering(fitted.pipeline.predict, fitted.references)
    model = fitted.model_
    if method.endswith(ORIGINAL):
        codes = np.searchsorted(fitted.classes_, y)
        rows = in_this_process(X, fitted, "compare")
        with small_numbers_may_vanish():
            model = model.with_references(rows, codes)
    return Answering(partial(_predicted, fitted, model), len(model.references))


def _predicted(estimator: Any, model: FittedModel, X: Any) -> Labels:
    """Labels by the estimator's vote, with the references of ``model``."""
    estimator = validated_copy(estimator, VOTING)
    k = n_voters(estimator.weights, estimator.n_neighbors, len(model.references))
    rows = in_this_process(X, estimator, "compare")
    with small_numbers_may_vanish():
        neighbors = model.nearest(rows, k, estimator.n_jobs)
        labels: Labels = estimator.classes_[model.vote(neighbors, estimator.weights)]
    return labels
