"""A learned metric for a vector database that ranks by inner products.

With the metric M and the centre c, D²(q, z) is (z − c)ᵀM(z − c) − 2(q − c)ᵀMz and what does not
depend on z. That is minus the inner product of (2M(q − c), 1) and (z, −(z − c)ᵀM(z − c)).
Time O(n·d²) for n rows, memory four copies of them in float64: pass many rows in batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.types import Floats
from latentmetric.engines.dispatch import in_this_process
from latentmetric.estimators.fitted import fitted_model
from latentmetric.validation.pipelines import SplitPipeline, split_pipeline

LARGEST_SPREAD = 1e15
"""Of the features; 1 divided by it is the smallest. Beyond, float32 cannot hold squares."""

SHARE_OF_NUMBER = 1 / 16
"""How large the stored number may be beside the row (``benchmarks/query_adapter.py``)."""

MAX_ROUNDING = 1e-4
"""Of scores, as a share of squared distances (``benchmarks/query_adapter.py``)."""


@dataclass(frozen=True, eq=False)
class QueryAdapter:
    """Vectors to store and to send, whose inner products rank by the learned distance.

    Stored for a row z is (z, −(z − c)ᵀM(z − c) / w), sent for a query q is (2M(q − c), w). The
    larger their inner product, the nearer is z to q.

    Attributes
    ----------
    matrix : ndarray of shape (n_features, n_features)
        M, the metric.
    centre : ndarray of shape (n_features,)
        c, the mean of the rows passed to ``fit``. Any c gives the same order; this one keeps the
        numbers small, so that float32 loses little.
    weight : float
        w, a power of 2. Any w gives the same order; this one makes the additional number small
        beside the row, so that approximate indexes, which compare stored vectors with each other,
        see the rows.
    """

    matrix: Floats
    centre: Floats
    weight: float
    _typical: float
    """The mean (z − c)ᵀM(z − c) of the model's references."""
    _piped: SplitPipeline

    def stored(self, X: Any) -> Floats:
        """The vectors to store: the rows as they are, and one more number. Pass many in batches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the features of the model; those of a pipeline pass its steps here.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1), float32
        """
        rows = _in_float32(self._rows(X))  # the number is that of the row as it is stored
        mapped, norms = self._under_metric(rows)
        self._check_rounding(rows, mapped, norms)
        return _in_float32(np.column_stack((rows, -norms / self.weight)))

    def query(self, X: Any) -> Floats:
        """The vectors to send for rows whose neighbours to find.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the features of the model; those of a pipeline pass its steps here.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1), float32
        """
        mapped, _ = self._under_metric(self._rows(X))
        return _in_float32(np.column_stack((2 * mapped, np.full(len(mapped), self.weight))))

    def squared_distances(self, scores: Any, X: Any) -> Floats:
        """Squared distances from the scores of an inner-product search.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_neighbors)
            The inner products that the search gives for each row of ``X``. (Some databases give
            minus the inner product, or 1 minus it.)
        X : array-like of shape (n_samples, n_features)
            The rows that ``query`` was called with.

        Returns
        -------
        ndarray of shape (n_samples, n_neighbors), float64
            The squares of the distances that ``kneighbors`` gives, in the units of the features.
        """
        mapped, norms = self._under_metric(self._rows(X))
        scores = np.asarray(scores, dtype=np.float64)
        if scores.ndim != 2 or len(scores) != len(norms):
            raise ValueError(
                f"scores must be of shape ({len(norms)}, n_neighbors), because X has {len(norms)} "
                f"rows; got {scores.shape}"
            )
        # With the query as it was sent, its rounding counts only away from the centre.
        offsets = norms + _in_float32(2 * mapped) @ self.centre
        squared: Floats = np.maximum(offsets[:, None] - scores, 0)
        return squared

    def _check_rounding(self, rows: Floats, mapped: Floats, norms: Floats) -> None:
        """Raise if float32 rounds scores so much that the order of neighbours suffers."""
        sums = 2 * np.einsum("ij,ij->i", np.abs(mapped), np.abs(rows))
        rounding = np.finfo(np.float32).eps / 2 * float(np.mean(sums))
        squared = float(np.mean(np.maximum(norms, self._typical)))
        if rounding > MAX_ROUNDING * squared:
            raise ValueError(
                f"float32 rounds the scores of these rows by {rounding / squared:.1g} times their "
                f"squared distances, and at most {MAX_ROUNDING:g} is safe: the rows are too far "
                "from 0 for their differences; store model.transform(X) and search by Euclidean "
                "distance"
            )

    def _under_metric(self, rows: Floats) -> tuple[Floats, Floats]:
        """M(x − c) and (x − c)ᵀM(x − c) of each row x, in float64."""
        centred = rows - self.centre
        mapped: Floats = centred @ self.matrix
        return mapped, np.einsum("ij,ij->i", centred, mapped)

    def _rows(self, X: Any) -> Floats:
        """Rows as the estimator takes them."""
        piped = self._piped
        return in_this_process(piped.prepared(X), piped.estimator, "an adapter for queries")


def to_query_adapter(model: Any) -> QueryAdapter:
    """Search by the learned distance in a vector database that ranks by inner products.

    The rows to search among are those that you store; the references of the model do not matter.

    Parameters
    ----------
    model : estimator of this package, or a Pipeline that ends in one
        Fitted, with a metric (not OASIS without ``psd``). Of a pipeline, rows are stored and
        compared as they are after its steps.

    Returns
    -------
    QueryAdapter

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from latentmetric import MaPML
    >>> from latentmetric.export import to_query_adapter
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MaPML(random_state=0).fit(X[300:], y[300:])
    >>> adapter = to_query_adapter(model)
    >>> scores = adapter.query(X[:300]) @ adapter.stored(X[300:]).T  # what the database does
    >>> distances, nearest = model.set_references(X[300:], y[300:]).kneighbors(X[:300], 1)
    >>> bool((scores.argmax(axis=1) == nearest[:, 0]).all())
    True
    """
    piped = split_pipeline(model)
    fitted = fitted_model(piped.estimator)
    if fitted.components is None:
        raise TypeError(
            f"{type(piped.estimator).__name__} has learned a similarity and an adapter needs a "
            "metric; fit OASIS(psd=True) or another estimator"
        )
    scale = fitted.coordinates.scale
    if not 1 / LARGEST_SPREAD <= scale <= LARGEST_SPREAD:
        raise ValueError(
            f"the features have a spread of {scale:.1g}, too far from 1 for squared distances in "
            f"float32; rescale them to between {1 / LARGEST_SPREAD:g} and {LARGEST_SPREAD:g}"
        )
    components = fitted.components.astype(np.float64)
    centre = fitted.coordinates.origin(fitted.dtype)
    typical = float(np.mean(fitted.references.norms)) * scale**2
    length = np.sqrt(centre @ centre + len(centre) * scale**2)
    weight = 2.0 ** int(np.frexp(typical / (SHARE_OF_NUMBER * length))[1])
    return QueryAdapter(components.T @ components, centre, weight, typical, piped)


def _in_float32(values: Floats) -> Floats:
    """Values as databases store them; raise on those that are too large."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise ValueError(
            f"vectors are stored in float32, which cannot hold {np.abs(values).max():.1g}; "
            "rescale the features, or remove rows far from the others"
        )
    return rounded
