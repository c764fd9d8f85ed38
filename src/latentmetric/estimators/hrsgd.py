"""HR-SGD: stochastic gradient descent with mini-batches and adaptive sampling.

Qian, Jin, Yi, Zhang, Zhu: "Efficient distance metric learning by adaptive sampling and mini-batch
stochastic gradient descent (SGD)", Machine Learning 99, 2015. The algorithm, and how it is
implemented, is in ``latentmetric.core.hrsgd``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from latentmetric.core import hrsgd
from latentmetric.core.psd import psd_factor
from latentmetric.core.steps import Steps
from latentmetric.core.tuning import DRAWN_AT_ONCE
from latentmetric.core.types import Floats
from latentmetric.estimators.rivals import REPORTS, MetricLearner
from latentmetric.estimators.training import TrainingData
from latentmetric.validation.parameters import Integer, Number, OneOf, Rule

MAX_LEARNING_RATE = 1e6
"""Longer steps are useless, and in the end the metric would overflow in float32."""


class HRSGD(MetricLearner[hrsgd.State]):
    """Metric learned by gradient descent on mini-batches of random triplets, with random updates.

    In every iteration, one triplet of a mini-batch, picked at random, sets the probability of an
    update: the slope of its smooth hinge, near 1 if its margin is violated and near 0 if it is
    kept. An update follows the gradients of the whole mini-batch, and the result is projected to
    the PSD matrices. The metric is the average over all iterations. The scale and position of
    the data do not matter: the margin is the mean squared distance of a row from the mean.

    Parameters
    ----------
    n_neighbors : int, default=3
        The number of nearest rows that vote.
    learning_rate : float, default=0.01
        The length η of a step, for rows of a mean squared norm of 1.
    update : {"damped", "unbiased"}, default="damped"
        What a step follows: the mini-batch's mean gradient, so that steps become short as well as
        rare when the margins are kept; or this gradient divided by the probability of an update,
        so that an iteration follows the mean gradient on average.
    batch_size : int, default=10
        Triplets per mini-batch, at most a million.
    n_steps : int, default=100_000
        Triplets drawn; there are n_steps // batch_size iterations.
    weights : str, default="uniform"
        How neighbours vote; see ``MaPML``.
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of every class, stop when the error on it no longer
        falls, and return the best round, the Euclidean round 0 included.
    validation_fraction : float, default=0.1
        Share of every class's rows held out for ``early_stopping``.
    n_jobs : int, default=None
        Threads for the neighbour search. None means as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        The seed of the random draws.
    verbose : int, default=0
        1 logs a line for the start and for each tenth of the fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    components_ : ndarray of shape (rank, n_features)
        The factor of the metric: ``M = components_.T @ components_``.
    history_ : list of dict
        For the start and each tenth of the iterations: iterations so far, mean loss
        ("objective"), share of iterations with an update, norm of the average so far, seconds.
    n_iter_ : int
        Iterations run, one per mini-batch.
    best_iter_ : int
        The iteration that was kept: the last one without ``early_stopping``.
    n_features_in_ : int
        The number of features of the rows passed to ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows passed to ``fit`` had feature names that are all strings.

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

    _parameter_rules: ClassVar[dict[str, Rule]] = {
        **MetricLearner._parameter_rules,
        "learning_rate": Number(0, MAX_LEARNING_RATE, open_low=True),
        "update": OneOf(hrsgd.UPDATES),
        "batch_size": Integer(1, DRAWN_AT_ONCE),
        "n_steps": Integer(1),
    }

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        learning_rate: float = 0.01,
        update: str = "damped",
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
        self.update = update
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.weights = weights
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_combinations(self) -> None:
        if self.n_steps < self.batch_size:
            raise ValueError(
                f"n_steps is {self.n_steps}, less than one mini-batch: "
                f"batch_size is {self.batch_size}; raise n_steps or lower batch_size"
            )

    def _steps(self, data: TrainingData) -> Steps[hrsgd.State]:
        rows, codes = data.inner_rows()
        n_parts = min(REPORTS, self.n_steps // self.batch_size)
        settings = hrsgd.Settings(self.learning_rate, self.batch_size, self.update == "unbiased")
        return hrsgd.steps(rows, codes, self.n_steps, n_parts, settings)

    def _components(self, data: TrainingData, state: hrsgd.State) -> Floats:
        return psd_factor(state.average).astype(data.training.dtype)
