"""OASIS: an online algorithm for scalable image similarity.

Chechik, Sharma, Shalit, Bengio: "Large Scale Online Learning of Image Similarity Through
Ranking", JMLR 11, 2010. The algorithm is in ``latentmetric.core.oasis``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils.metaestimators import available_if

from latentmetric.core import oasis
from latentmetric.core.model import FittedModel
from latentmetric.core.psd import psd_factor
from latentmetric.core.steps import Record, Steps
from latentmetric.core.types import Floats
from latentmetric.core.votes import VOTES
from latentmetric.estimators.rivals import REPORTS, MetricLearner
from latentmetric.estimators.training import TrainingData
from latentmetric.validation.parameters import Boolean, Integer, Number, Rule


def _is_metric(estimator: Any) -> bool:
    """Whether the model is a metric, or will be once it is fitted."""
    model = getattr(estimator, "model_", None)
    return bool(estimator.psd if model is None else model.is_metric)


def _available_if_metric(cls: type[Any]) -> type[Any]:
    """Make the methods that need a metric available only if the model is one.

    This is done after the class exists, because scikit-learn wraps a ``transform`` that it finds
    in a class body and would drop the condition.
    """
    for name in ("transform", "fit_transform", "get_feature_names_out", "get_mahalanobis_matrix"):
        setattr(cls, name, available_if(_is_metric)(getattr(cls, name)))
    return cls


@_available_if_metric
class OASIS(MetricLearner[oasis.State]):
    """Bilinear similarity learned by passive-aggressive steps on random triplets.

    The similarity of two rows is S(x, x') = (x − x̄)ᵀ W (x' − x̄) / v, with x̄ the mean of the
    training rows and v their mean squared distance from it, so the scale and position of the data
    do not matter. W starts as the identity. A step draws a row, another row of its class and one
    of another class. It moves W just far enough that the first is more similar to the second than
    to the third by 1, but no farther than ``aggressiveness`` allows.

    With ``psd``, the default, the similarity is turned into a metric once, at the end: the nearest
    rows vote, and there is a ``transform``. Without ``psd``, W is in general not a metric. Then the
    most similar rows vote, and ``kneighbors`` returns negated similarities, so that they ascend as
    distances do. Because an inner product favours rows with a large norm, this suits rows that are
    about equally far from their mean.

    Parameters
    ----------
    n_neighbors : int, default=3
        The number of rows that vote: the most similar ones, or the nearest with ``psd``.
    psd : bool, default=True
        Make W symmetric and project it to the PSD matrices after the last step, and use it as a
        metric. The authors use the similarity itself, which is ``psd=False``.
    aggressiveness : float, default=0.1
        The largest step size C: a step adds at most C o (p − q)ᵀ, for rows of a mean squared norm
        of 1.
    n_steps : int, default=100_000
        Triplets drawn, one per step.
    weights : str, default="uniform"
        How neighbours vote; see ``MaPML``. All but "uniform" need distances, that is ``psd``.
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of every class, stop when the error on it no longer
        falls, and return the best round; round 0 is the plain inner product, or the Euclidean
        metric with ``psd``.
    validation_fraction : float, default=0.1
        Share of every class's rows held out for ``early_stopping``.
    n_jobs : int, default=None
        The number of threads. None means as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        The seed of the random draws.
    verbose : int, default=0
        1 logs a line for the start and for each tenth of the fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    similarity_ : ndarray of shape (n_features, n_features)
        The matrix W of the similarity above; with ``psd`` the projected one.
    components_ : ndarray of shape (rank, n_features)
        The factor of the metric: ``W = components_.T @ components_``. Only with ``psd``.
    history_ : list of dict
        For the start and each tenth of the steps: steps so far ("iterations"), mean hinge
        ("objective"), share of steps with a positive hinge, norm of W, seconds.
    n_iter_ : int
        The number of steps run.
    best_iter_ : int
        The step that was kept: the last one without ``early_stopping``.
    n_features_in_ : int
        The number of features of the rows passed to ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows passed to ``fit`` had feature names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from latentmetric import OASIS
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = OASIS(n_steps=20_000, random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    >>> len(model.transform(X_test))
    450
    >>> hasattr(OASIS(psd=False), "transform")
    False
    """

    _parameter_rules: ClassVar[dict[str, Rule]] = {
        **MetricLearner._parameter_rules,
        "psd": Boolean(),
        "aggressiveness": Number(0, open_low=True),
        "n_steps": Integer(1),
    }
    similarity_: Floats

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        psd: bool = True,
        aggressiveness: float = 0.1,
        n_steps: int = 100_000,
        weights: str = "uniform",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.psd = psd
        self.aggressiveness = aggressiveness
        self.n_steps = n_steps
        self.weights = weights
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not _is_metric(self):
            tags.transformer_tags = None
        return tags

    def _voting(self) -> Self:
        """A checked copy to vote with, which no other thread changes."""
        voting = super()._voting()
        voting._check_combinations()
        return voting

    def _check_combinations(self) -> None:
        if VOTES[self.weights].needs_distances and not _is_metric(self):
            raise ValueError(
                f"weights={self.weights!r} weighs by distance, but with psd=False OASIS learns "
                "only a similarity; set psd=True or weights='uniform'"
            )

    def _steps(self, data: TrainingData) -> Steps[oasis.State]:
        rows, codes = data.inner_rows()
        n_parts = min(REPORTS, self.n_steps)
        return oasis.steps(rows, codes, self.n_steps, n_parts, self.aggressiveness)

    def _components(self, data: TrainingData, state: oasis.State) -> Floats:
        return psd_factor(state.similarity)

    def _fitted_model(self, data: TrainingData, state: oasis.State, all_rows: bool) -> FittedModel:
        if self.psd:
            return super()._fitted_model(data, state, all_rows)
        rows, codes = data.inner_rows(all_rows)
        return FittedModel.of_similarity(state.similarity, rows, codes, len(data.classes))

    def _attributes(
        self, data: TrainingData, state: oasis.State, history: list[Record], *, final: bool
    ) -> dict[str, Any]:
        attributes = super()._attributes(data, state, history, final=final)
        factor = attributes.get("components_")
        attributes["similarity_"] = state.similarity if factor is None else factor.T @ factor
        return attributes
