"""An estimator written by the recipe in docs/architecture.md: the inverse covariance as metric."""

import numpy as np

from latentmetric.estimators.rivals import ClosedFormLearner
from latentmetric.validation.parameters import Number


class Whitened(ClosedFormLearner):
    """k-NN after whitening.

    Parameters
    ----------
    n_neighbors : int, default=3
        Nearest rows that vote.
    shrinkage : float, default=0.1
        Added to the variances.
    weights : str, default="uniform"
        How they vote.
    n_jobs : int, default=None
        Threads.
    random_state : int, default=None
        Not used.
    verbose : int, default=0
        1 logs a line a round.
    """

    _parameter_rules = {**ClosedFormLearner._parameter_rules, "shrinkage": Number(0)}  # noqa: RUF012

    def __init__(
        self, n_neighbors=3, *, shrinkage=0.1, weights="uniform", n_jobs=None, random_state=None,
        verbose=0,
    ):  # fmt: skip
        self.n_neighbors = n_neighbors
        self.shrinkage = shrinkage
        self.weights = weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, rows, codes):
        covariance = np.cov(rows[:].T) + self.shrinkage * np.eye(rows.n_features)
        values, vectors = np.linalg.eigh(covariance)
        return (vectors / np.sqrt(values)).T
