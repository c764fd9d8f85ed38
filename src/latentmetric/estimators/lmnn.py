"""LMNN: large margin nearest neighbours.

Weinberger, Saul: "Distance Metric Learning for Large Margin Nearest Neighbor Classification",
JMLR 10, 2009. The class drives; what it computes is in ``latentmetric.core.lmnn``.
"""

from __future__ import annotations

from collections.abc import Generator
from time import perf_counter
from typing import Any

import numpy as np

from latentmetric.core import lmnn
from latentmetric.core.coordinates import InnerRows
from latentmetric.core.parallel import thread_count
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators._checks import check_integer, check_real
from latentmetric.estimators._learner import MetricLearner, Step


class LMNN(MetricLearner):
    """Metric that pulls each row's target neighbours near and pushes other classes beyond them.

    The full gradient over all active triplets, with a line search, so the loss never rises on
    the impostors at hand. Impostors are searched for in blocks: nothing of n×n is held. The
    scale and place of the data do not matter.

    Parameters
    ----------
    n_neighbors : int, default=3
        Nearest rows that vote.
    target_neighbors : int, default=3
        Nearest rows of its own class that each row is to keep near, chosen once.
    push : float, default=0.5
        Weight μ of the impostors' loss; the pull of the targets has 1 − μ.
    max_iter : int, default=1000
        Iterations of L-BFGS. Impostors are searched for again every 20.
    tol : float, default=1e-4
        Stop when the loss falls by less than this share of it between two searches.
    max_impostors : int, default=30
        Nearest rows of other classes inside a row's margin that are taken into account. With a
        ``push`` of less than a hundredth most rows have more of them; the pull then wins against
        the few that count, and the metric collapses unless this is raised.
    weights : {"uniform", "distance", "kernel"}, default="uniform"
        How neighbours vote; see ``MaPML``.
    n_jobs : int, default=None
        Threads. None is as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        Taken for the sake of the common contract; nothing is drawn.
    verbose : int, default=0
        1 logs a line a search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (n_features, n_features)
        The factor of the metric: M = components_.T @ components_. The margin is 1 in units of
        the features' mean variance.
    history_ : list of dict
        For each search: loss a row, active triplets a row, impostor pairs, seconds.
    n_iter_ : int
        Searches made.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from latentmetric import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(LMNN(max_iter=40).fit(X, y).score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        target_neighbors: int = 3,
        push: float = 0.5,
        max_iter: int = 1000,
        tol: float = 1e-4,
        max_impostors: int = 30,
        weights: str = "uniform",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.target_neighbors = target_neighbors
        self.push = push
        self.max_iter = max_iter
        self.tol = tol
        self.max_impostors = max_impostors
        self.weights = weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_own_parameters(self) -> None:
        check_integer("target_neighbors", self.target_neighbors, 1)
        check_real("push", self.push, 0, 1)
        check_integer("max_iter", self.max_iter, 0)
        check_real("tol", self.tol, 0)
        check_integer("max_impostors", self.max_impostors, 1)

    def _n_reports(self) -> int:
        return 1 + self.max_iter  # a descent between two searches has one iteration or more

    def _steps(
        self, rows: InnerRows, codes: Ints, generator: np.random.Generator
    ) -> Generator[Step, None, None]:
        problem = lmnn.Problem.of(
            rows, codes, self.target_neighbors, self.push, self.max_impostors,
            thread_count(self.n_jobs),
        )  # fmt: skip
        start: Floats = np.eye(rows.n_features, dtype=rows.dtype)
        since = perf_counter()
        found = lmnn.steps(problem, start, self.max_iter, self.tol)
        for number, (components, evaluation, n_pairs) in enumerate(found):
            record = {
                "round": number,
                "objective": evaluation.loss / len(rows) / problem.margin,
                "active_share": evaluation.active / max(1, n_pairs * problem.targets.shape[1]),
                "impostors": n_pairs,
                "seconds": {"metric": perf_counter() - since},
            }
            yield Step(components * rows.dtype.type(problem.margin**-0.5), record)
            since = perf_counter()
