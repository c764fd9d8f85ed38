"""LMNN: large margin nearest neighbours.

Weinberger, Saul: "Distance Metric Learning for Large Margin Nearest Neighbor Classification",
JMLR 10, 2009. The algorithm is in ``latentmetric.core.lmnn``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from latentmetric.core import lmnn
from latentmetric.core.parallel import thread_count
from latentmetric.core.steps import Steps
from latentmetric.core.types import Floats
from latentmetric.estimators.rivals import MetricLearner
from latentmetric.estimators.training import TrainingData
from latentmetric.validation.parameters import Integer, Number, Rule


class LMNN(MetricLearner[lmnn.State]):
    """Metric that pulls each row's target neighbours near and pushes other classes beyond them.

    L-BFGS uses the full gradient over all active triplets, with a line search, so the loss never
    rises on the impostors that are known. Impostors are searched in blocks, so no n×n array is
    held. The scale and position of the data do not matter.

    Parameters
    ----------
    n_neighbors : int, default=3
        The number of nearest rows that vote.
    target_neighbors : int, default=5
        The number of nearest rows of its own class that each row should keep near, chosen once. The
        authors use 3.
    push : float, default=0.1
        The weight μ of the impostors' loss; the weight of the targets' loss is 1 − μ. The authors
        use 0.5.
    max_iter : int, default=1000
        Iterations of L-BFGS. Impostors are searched again after at most 20 of them.
    tol : float, default=1e-4
        Stop when the loss falls by no more than this share of itself between two searches.
    max_impostors : int, default=30
        At most how many rows of other classes inside a row's margin count, the nearest ones. With
        ``push`` below 0.01, most rows have more impostors than that. The pull then outweighs the
        few that count, and the metric collapses unless ``max_impostors`` is raised.
    weights : str, default="uniform"
        How neighbours vote; see ``MaPML``.
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of every class, stop when the error on it no longer
        falls, and return the best round, the Euclidean round 0 included.
    validation_fraction : float, default=0.1
        Share of every class's rows held out for ``early_stopping``.
    n_jobs : int, default=None
        The number of threads. None means as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        The seed for choosing the held-out rows; nothing else is random.
    verbose : int, default=0
        1 logs a line per search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    components_ : ndarray of shape (n_features, n_features)
        The factor of the metric: ``M = components_.T @ components_``. The margin is the features'
        mean variance.
    history_ : list of dict
        For each search: iterations so far, loss per row in units of the margin ("objective"),
        share of active triplets, number of impostor pairs, seconds.
    n_iter_ : int
        Iterations of L-BFGS run.
    best_iter_ : int
        The iteration that was kept: the last one without ``early_stopping``.
    n_features_in_ : int
        The number of features of the rows passed to ``fit``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from latentmetric import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(LMNN(max_iter=40).fit(X, y).score(X, y) > 0.95)
    True
    """

    _parameter_rules: ClassVar[dict[str, Rule]] = {
        **MetricLearner._parameter_rules,
        "target_neighbors": Integer(1),
        "push": Number(0, 1),
        "max_iter": Integer(0),
        "tol": Number(0),
        "max_impostors": Integer(1),
    }

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        target_neighbors: int = 5,
        push: float = 0.1,
        max_iter: int = 1000,
        tol: float = 1e-4,
        max_impostors: int = 30,
        weights: str = "uniform",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
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
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _steps(self, data: TrainingData) -> Steps[lmnn.State]:
        rows, codes = data.inner_rows()
        problem = lmnn.Problem.of(
            rows, codes, self.target_neighbors, self.push, self.max_impostors,
            thread_count(self.n_jobs),
        )  # fmt: skip
        start: Floats = np.eye(rows.n_features, dtype=rows.dtype)
        return lmnn.steps(problem, start, self.max_iter, self.tol)

    def _components(self, data: TrainingData, state: lmnn.State) -> Floats:
        return state.components * state.components.dtype.type(state.margin**-0.5)
