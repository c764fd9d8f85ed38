"""HR-SGD: stochastic gradient descent with mini-batches and adaptive sampling.

Qian, Jin, Yi, Zhang, Zhu: "Efficient distance metric learning by adaptive sampling and mini-batch
stochastic gradient descent (SGD)", Machine Learning 99, 2015. The class drives; what it computes,
and in which form, is in ``latentmetric.core.hrsgd``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from latentmetric.core import hrsgd
from latentmetric.core.psd import psd_factor
from latentmetric.core.steps import Steps
from latentmetric.core.types import Floats
from latentmetric.estimators.base import EARLY_STOPPING
from latentmetric.estimators.rivals import REPORTS, MetricLearner
from latentmetric.estimators.training import TrainingData
from latentmetric.validation.parameters import AnInteger, ANumber, Rule

MAX_LEARNING_RATE = 1e6
"""Longer steps are beyond any use, and in the end beyond what float32 holds."""


class HRSGD(MetricLearner[hrsgd.State]):
    """Metric learned by descent on mini-batches of random triplets, a coin deciding on each.

    In every iteration one triplet of a mini-batch, picked at random, sets the probability of an
    update: the slope of its smooth hinge, near 1 where its margin is violated and near 0 where it
    is kept. An update follows the mean gradient of the whole mini-batch and is projected to the
    PSD matrices. The metric is the average over all iterations. The scale and place of the data do
    not matter: the margin of 1 stands for the mean squared distance of a row from the mean.

    Parameters
    ----------
    n_neighbors : int, default=3
        Nearest rows that vote.
    learning_rate : float, default=0.01
        Length η of a step along the mean gradient, for rows of a mean squared norm of 1.
    batch_size : int, default=10
        Triplets in a mini-batch.
    n_steps : int, default=100_000
        Triplets drawn; there are n_steps // batch_size iterations.
    weights : str, default="uniform"
        How they vote; see ``MaPML``.
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of every class, stop when the error on it no longer
        falls, and return the best round, the Euclidean round 0 included.
    validation_fraction : float, default=0.1
        Share of every class's rows held out for ``early_stopping``.
    n_jobs : int, default=None
        Threads of the search for neighbours. None is as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    verbose : int, default=0
        1 logs ten lines a fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (rank, n_features)
        The factor of the metric: M = components_.T @ components_.
    history_ : list of dict
        For the start and each tenth of the iterations: iterations so far, mean loss
        ("objective"), share of iterations that updated, norm of the average so far, seconds.
    n_iter_ : int
        Iterations run, one a mini-batch.
    best_iter_ : int
        The iteration that was kept: the last one without ``early_stopping``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if the rows given to ``fit`` had feature names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from latentmetric import HRSGD
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = HRSGD(n_steps=20_000, random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    >>> model.transform(X_test).shape
    (450, 64)
    """

    parameter_rules: ClassVar[dict[str, Rule]] = {
        **MetricLearner.parameter_rules,
        **EARLY_STOPPING,
        "learning_rate": ANumber(0, MAX_LEARNING_RATE, open_low=True),
        "batch_size": AnInteger(1),
        "n_steps": AnInteger(1),
    }

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        learning_rate: float = 0.01,
        batch_size: int = 10,
        n_steps: int = 100_000,
        weights: str = "uniform",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.weights = weights
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def check_parameters(self) -> None:
        """Raise ``TypeError`` or ``ValueError`` on a parameter that is out of range."""
        super().check_parameters()
        if self.n_steps < self.batch_size:
            raise ValueError(
                f"n_steps is {self.n_steps}, which is not one mini-batch: "
                f"batch_size is {self.batch_size}"
            )

    def _steps(self, data: TrainingData) -> Steps[hrsgd.State]:
        rows, codes = data.trainers
        n_parts = min(REPORTS, self.n_steps // self.batch_size)
        return hrsgd.steps(rows, codes, self.n_steps, n_parts, self.learning_rate, self.batch_size)

    def _components(self, data: TrainingData, state: hrsgd.State) -> Floats:
        return psd_factor(state.average).astype(data.training.dtype)
