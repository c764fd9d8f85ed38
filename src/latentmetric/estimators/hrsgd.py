"""HR-SGD: stochastic gradient descent with mini-batches and adaptive sampling.

Qian, Jin, Yi, Zhang, Zhu: "Efficient distance metric learning by adaptive sampling and mini-batch
stochastic gradient descent (SGD)", Machine Learning 99, 2015. The class drives; what it computes,
and in which form, is in ``latentmetric.core.hrsgd``.
"""

from __future__ import annotations

from collections.abc import Generator
from time import perf_counter
from typing import Any

import numpy as np

from latentmetric.core.coordinates import InnerRows
from latentmetric.core.hrsgd import Descent
from latentmetric.core.parallel import blas_threads
from latentmetric.core.psd import psd_factor
from latentmetric.core.random_triplets import RandomTriplets, of_unit_norm
from latentmetric.core.types import Ints
from latentmetric.estimators._checks import check_integer, check_real
from latentmetric.estimators._learner import REPORTS, MetricLearner, Step

MAX_LEARNING_RATE = 1e6
"""Longer steps are beyond any use, and in the end beyond what float32 holds."""


class HRSGD(MetricLearner):
    """Metric learned by descent on mini-batches of random triplets, a coin deciding on each.

    In every iteration one triplet of a mini-batch, picked at random, tells the probability of an
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
    weights : {"uniform", "distance", "kernel"}, default="uniform"
        How they vote; see ``MaPML``.
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
        For each tenth of the iterations: mean loss ("objective"), share of iterations that
        updated, norm of the average so far, seconds.
    n_iter_ : int
        Tenths run.
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

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        learning_rate: float = 0.01,
        batch_size: int = 10,
        n_steps: int = 100_000,
        weights: str = "uniform",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.weights = weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_own_parameters(self) -> None:
        check_real("learning_rate", self.learning_rate, 0, MAX_LEARNING_RATE, open_low=True)
        check_integer("batch_size", self.batch_size, 1)
        check_integer("n_steps", self.n_steps, 1)
        if self.n_steps < self.batch_size:
            raise ValueError(
                f"n_steps is {self.n_steps}, which is not one mini-batch: "
                f"batch_size is {self.batch_size}"
            )

    def _n_reports(self) -> int:
        return min(REPORTS, self.n_steps // self.batch_size)

    def _steps(
        self, rows: InnerRows, codes: Ints, generator: np.random.Generator
    ) -> Generator[Step, None, None]:
        rows = of_unit_norm(rows)
        descent = Descent(rows.n_features, self.learning_rate, self.batch_size)
        parts = RandomTriplets(codes).in_parts(
            self.n_steps, self._n_reports(), generator, self.batch_size
        )
        since = perf_counter()
        for number, triplets in enumerate(parts, start=1):
            with blas_threads(1):  # Its products are many and small.
                losses, n_updates = descent.run(rows, triplets, generator)
            average = descent.average()
            components = psd_factor(average).astype(rows.dtype)
            record = {
                "round": number,
                "objective": float(losses.mean()),
                "active_share": n_updates / len(losses),
                "norm": float(np.linalg.norm(average)),
                "seconds": {"metric": perf_counter() - since},
            }
            yield Step(components, record)
            since = perf_counter()
