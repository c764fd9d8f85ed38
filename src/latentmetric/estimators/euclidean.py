"""The Euclidean baseline: k-nearest-neighbour classification without a learned metric."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from latentmetric.core.coordinates import InnerRows
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators.rivals import ClosedFormLearner


class Euclidean(ClosedFormLearner):
    """k-NN with the Euclidean distance, with the same interface as the other estimators.

    Parameters
    ----------
    n_neighbors : int, default=3
        The number of nearest rows that vote.
    weights : str, default="uniform"
        How neighbours vote; see ``MaPML``.
    n_jobs : int, default=None
        The number of threads. None means as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        Accepted for compatibility with the other estimators; nothing is random.
    verbose : int, default=0
        1 logs a line per round; there is only one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    components_ : ndarray of shape (n_features, n_features)
        The identity.
    history_ : list of dict
        One entry, because there is one round.
    n_iter_ : int
        Always 0.
    n_features_in_ : int
        The number of features of the rows passed to ``fit``.

    Examples
    --------
    >>> from latentmetric import Euclidean
    >>> model = Euclidean(n_neighbors=1).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    >>> model.predict([[4.0]]).tolist()
    ['b']
    """

    _learns: ClassVar[bool] = False

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

    def _solve(self, rows: InnerRows, codes: Ints) -> Floats:
        return np.eye(rows.n_features)
