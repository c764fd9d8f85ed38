"""Euclid: the k-nearest-neighbour vote without a learned metric, the yardstick of the others."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from latentmetric.core.coordinates import InnerRows
from latentmetric.core.types import Ints
from latentmetric.estimators._learner import MetricLearner, Step


class Euclidean(MetricLearner):
    """k-NN with the Euclidean distance, under the contract of the other estimators.

    Parameters
    ----------
    n_neighbors : int, default=3
        Nearest rows that vote.
    weights : {"uniform", "distance", "kernel"}, default="uniform"
        How they vote; see ``MaPML``.
    n_jobs : int, default=None
        Threads. None is as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        Taken for the sake of the common contract; nothing is drawn.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (n_features, n_features)
        The identity.
    history_ : list of dict
        One entry, for there is one round.
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> from latentmetric import Euclidean
    >>> model = Euclidean(n_neighbors=1).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    >>> model.predict([[4.0]]).tolist()
    ['b']
    """

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        weights: str = "uniform",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_own_parameters(self) -> None:
        pass

    def _n_reports(self) -> int:
        return 1

    def _steps(
        self, rows: InnerRows, codes: Ints, generator: np.random.Generator
    ) -> Generator[Step, None, None]:
        yield Step(np.eye(rows.n_features, dtype=rows.dtype), {"round": 0, "seconds": {}})
