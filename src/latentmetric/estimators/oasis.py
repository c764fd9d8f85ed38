"""OASIS: an online algorithm for scalable image similarity.

Chechik, Sharma, Shalit, Bengio: "Large Scale Online Learning of Image Similarity Through
Ranking", JMLR 11, 2010. The class drives; what it computes is in ``latentmetric.core.oasis``.
"""

from __future__ import annotations

from collections.abc import Generator
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from latentmetric.core.alternation import THREADED_FEATURES
from latentmetric.core.coordinates import InnerRows
from latentmetric.core.distances import References, search
from latentmetric.core.oasis import learn_similarity
from latentmetric.core.parallel import blas_threads, thread_count
from latentmetric.core.psd import psd_factor
from latentmetric.core.random_triplets import RandomTriplets, of_unit_norm
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators._checks import check_bool, check_integer, check_real
from latentmetric.estimators._learner import REPORTS, Data, MetricLearner, Step


def _is_metric(estimator: Any) -> bool:
    """Whether the model is a metric, or will be once it is fitted."""
    metric: bool = getattr(estimator, "_fitted_metric", estimator.psd)
    return metric


def _only_where_a_metric(cls: type[Any]) -> type[Any]:
    """Let the class have what needs a metric only where the model is one.

    Done after the class exists, because scikit-learn wraps a ``transform`` that it finds in a
    class and would drop the condition.
    """
    for name in ("transform", "fit_transform", "get_feature_names_out", "get_mahalanobis_matrix"):
        setattr(cls, name, available_if(_is_metric)(getattr(cls, name)))
    return cls


@_only_where_a_metric
class OASIS(MetricLearner):
    """Bilinear similarity learned by passive-aggressive steps on random triplets.

    The similarity of two rows is S(x, x') = (x − x̄)ᵀ W (x' − x̄) / v, with x̄ the mean of the
    training rows and v their mean squared distance from it, so that neither the scale nor the
    place of the data matters. W starts as the identity. A step draws a row, another one of its
    class and one of another class, and moves W no further than the first must become more similar
    to the second than to the third by 1.

    W need not be a metric. Then the most similar rows vote, and because an inner product favours
    long rows, this suits rows of about the same norm. With ``psd`` the similarity is turned into a
    metric once, at the end: the nearest rows vote, and there is a ``transform``.

    Parameters
    ----------
    n_neighbors : int, default=3
        Rows that vote: the most similar ones, or the nearest with ``psd``.
    psd : bool, default=False
        Make W symmetric and project it to the PSD matrices when the steps are done, and use it as
        a metric from there on.
    aggressiveness : float, default=0.001
        The largest factor C of a step's o (p − q)ᵀ, for rows of a mean squared norm of 1.
    n_steps : int, default=100_000
        Triplets drawn.
    weights : {"uniform", "distance", "kernel"}, default="uniform"
        How they vote; see ``MaPML``. All but "uniform" need distances, that is ``psd``.
    n_jobs : int, default=None
        Threads. None is as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    verbose : int, default=0
        1 logs ten lines a fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    similarity_ : ndarray of shape (n_features, n_features)
        The matrix W of the similarity above; with ``psd`` the projected one.
    components_ : ndarray of shape (rank, n_features)
        The factor of the metric: W = components_.T @ components_. Only with ``psd``.
    history_ : list of dict
        For each tenth of the steps: mean hinge ("objective"), share of steps that met one, norm
        of W, seconds.
    n_iter_ : int
        Tenths run.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if the rows given to ``fit`` had feature names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from latentmetric import OASIS
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = OASIS(psd=True, n_steps=20_000, random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    >>> model.transform(X_test).shape
    (450, 64)
    >>> hasattr(OASIS(psd=False), "transform")
    False
    """

    similarity_: Floats
    _fitted_metric: bool

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        psd: bool = False,
        aggressiveness: float = 0.001,
        n_steps: int = 100_000,
        weights: str = "uniform",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.psd = psd
        self.aggressiveness = aggressiveness
        self.n_steps = n_steps
        self.weights = weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Floats, Ints] | Ints:
        """The most similar training rows of each row, or the nearest with ``psd``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        n_neighbors : int, default=None
            How many; None takes the parameter of the estimator.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``. Without ``psd`` the similarities with their sign
            changed, so that here too they ascend.
        indices : ndarray of shape (n_samples, n_neighbors)
            Rows of the references: those given to ``fit`` or ``set_references``.
        """
        return super().kneighbors(X, n_neighbors, return_distance)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not _is_metric(self):
            tags.transformer_tags = None
        return tags

    def _check_own_parameters(self) -> None:
        check_bool("psd", self.psd)
        check_real("aggressiveness", self.aggressiveness, 0, open_low=True)
        check_integer("n_steps", self.n_steps, 1)
        self._check_weights(self.psd)

    def _check_voting_parameters(self) -> None:
        super()._check_voting_parameters()
        if hasattr(self, "_fitted_metric"):
            self._check_weights(self._fitted_metric)

    def _check_weights(self, metric: bool) -> None:
        if self.weights != "uniform" and not metric:
            raise ValueError(
                f"weights={self.weights!r} weighs by distance, but with psd=False OASIS learns a "
                "similarity without one; set psd=True or weights='uniform'"
            )

    def _n_reports(self) -> int:
        return min(REPORTS, self.n_steps)

    def _steps(
        self, rows: InnerRows, codes: Ints, generator: np.random.Generator
    ) -> Generator[Step, None, None]:
        """W after each tenth of the steps, in the place of a metric's factor."""
        rows = of_unit_norm(rows)
        similarity: Floats = np.eye(rows.n_features, dtype=rows.dtype)
        parts = RandomTriplets(codes).in_parts(self.n_steps, self._n_reports(), generator)
        n_threads = thread_count(self.n_jobs) if rows.n_features >= THREADED_FEATURES else 1
        since = perf_counter()
        for number, triplets in enumerate(parts, start=1):
            with blas_threads(n_threads):
                hinges = learn_similarity(similarity, rows, triplets, self.aggressiveness)
            record = {
                "round": number,
                "objective": float(hinges.mean()),
                "active_share": float((hinges > 0).mean()),
                "norm": float(np.linalg.norm(similarity)),
                "seconds": {"metric": perf_counter() - since},
            }
            yield Step(similarity.copy(), record)
            since = perf_counter()

    def _run(self, data: Data, X: Any, y: Any) -> dict[str, Any]:
        attributes = super()._run(data, X, y)
        if not self.psd:
            self.__dict__.pop("components_", None)
        return attributes

    def _attributes(self, data: Data, step: Step, history: list[dict[str, Any]]) -> dict[str, Any]:
        """The factor is taken here, so that a fit whose progress nobody follows takes it once."""
        similarity = step.components
        if self.psd:
            factor = psd_factor(similarity)
            attributes = super()._attributes(data, Step(factor, step.record), history)
            return attributes | {"similarity_": factor.T @ factor, "_fitted_metric": True}
        inner = InnerRows(data.rows, data.coordinates)
        return {
            "classes_": data.classes,
            "similarity_": similarity,
            "history_": list(history),
            "n_iter_": len(history),
            "_coordinates": data.coordinates,
            "_references": _similar_under(similarity, inner),
            "_reference_codes": data.codes,
            "_temperature": 0.0,
            "_fitted_metric": False,
        }

    def _search(self, queries: Floats, k: int) -> tuple[Floats, Ints]:
        if self._fitted_metric:
            return super()._search(queries, k)
        return search(queries, self._references, k)

    def _as_distances(self, squared: Floats) -> Floats:
        return super()._as_distances(squared) if self._fitted_metric else squared / 2

    def _as_references(self, rows: InnerRows) -> References:
        if self._fitted_metric:
            return super()._as_references(rows)
        return _similar_under(self.similarity_, rows)


def _similar_under(similarity: Floats, rows: InnerRows) -> References:
    """References whose comparable distance to an inner row x is −2 S(x, reference).

    Without their norms, comparing "distances" is comparing inner products.
    """
    turned = rows.under(similarity / similarity.dtype.type(rows.n_features))
    return References(turned, np.zeros(len(turned), dtype=turned.dtype))
