"""An estimator written by the recipe in docs/architecture.md: one pass, the inverse covariance."""

from dataclasses import dataclass

import numpy as np

from latentmetric.core.steps import Steps, check_arrays
from latentmetric.estimators.rivals import MetricLearner
from latentmetric.validation.parameters import Number


@dataclass(frozen=True)
class State:
    factor: np.ndarray
    record: dict
    finished: bool = False


def steps(rows, shrinkage):
    def first(generator):
        return State(np.eye(rows.n_features), {"round": 0, "seconds": {}})

    def following(state, generator):
        covariance = np.cov(rows[:].T) + shrinkage * np.eye(rows.n_features)
        values, vectors = np.linalg.eigh(covariance)
        record = {"round": 1, "objective": float(values.max()), "seconds": {"metric": 0.0}}
        return State((vectors / np.sqrt(values)).T, record, finished=True)

    square = (rows.n_features, rows.n_features)
    return Steps(first, following, 1, State, lambda state: check_arrays(square, state.factor))


class Whitened(MetricLearner):
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

    parameter_rules = {**MetricLearner.parameter_rules, "shrinkage": Number(0)}  # noqa: RUF012

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

    def _steps(self, data):
        return steps(data.training_rows[0], self.shrinkage)

    def _components(self, data, state):
        return state.factor.astype(data.training.dtype)
