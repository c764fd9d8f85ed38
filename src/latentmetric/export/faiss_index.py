"""A fitted model as an exact faiss index.

Time O(m·d·r) to build it for m references and a metric of rank r; memory 4·m·r bytes beside the
model's own arrays, which it shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.distances import (
    References,
    paired_products,
    paired_squared_distances,
    ranked,
)
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.dispatch import in_this_process
from latentmetric.export.parts import SPARE_NEIGHBORS, Parts
from latentmetric.extras import pip_install
from latentmetric.validation.parameters import Integer


@dataclass(frozen=True)
class FaissIndex:
    """The references of a model in a faiss index, their labels, and a transform for queries.

    Attributes
    ----------
    index : faiss.IndexFlat
        The references under the metric: ``IndexFlatL2``, or ``IndexFlatIP`` where the model
        compares by similarity (OASIS without ``psd``). Reference i has the id i.
    labels : ndarray of shape (n_references,)
        The label of each reference.
    """

    index: Any
    labels: np.ndarray[Any, Any]
    _parts: Parts

    def queries(self, X: Any) -> Floats:
        """Transform rows into the space of the index, for ``index.search`` or other faiss indexes.

        Rows are as the model takes them: those of a pipeline pass its steps here.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the features of the model.

        Returns
        -------
        ndarray of shape (n_samples, rank of the metric), float32
        """
        points = self._parts.model.points(self._rows(X))
        return np.ascontiguousarray(points, dtype=np.float32)

    def search(self, X: Any, k: int) -> tuple[Floats, Ints]:
        """Find the k nearest references of each row, as the model's ``kneighbors`` does.

        The index proposes a few more than k, which are ranked again in the model's own precision.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows whose neighbours to find, with the features of the model.
        k : int
            The number of neighbours, at most the number of references.

        Returns
        -------
        distances : ndarray of shape (n_samples, k)
            In the units of the features; for a model that compares by similarity, the negative
            similarities.
        indices : ndarray of shape (n_samples, k)
            The numbers of the references.
        """
        k = Integer(1, len(self.labels)).check("k", k)
        neighbors = self._parts.model.nearest(self._rows(X), k, search=self._search)
        return self._parts.model.distances(neighbors.squared), neighbors.indices

    def _search(self, points: Floats, references: References, k: int) -> tuple[Floats, Ints]:
        """Rank a few more than k proposals of the index in the model's own precision."""
        proposed = min(k + SPARE_NEIGHBORS, len(references))
        _, found = self.index.search(np.ascontiguousarray(points, dtype=np.float32), proposed)
        measure = paired_squared_distances if self._parts.model.is_metric else paired_products
        values, indices = ranked(points, references, found, measure)
        return values[:, :k], indices[:, :k]

    def _rows(self, X: Any) -> Floats:
        """Rows as the estimator takes them."""
        piped = self._parts.piped
        return in_this_process(piped.prepared(X), piped.estimator, "an index of faiss")


def to_faiss(model: Any) -> FaissIndex:
    """Build an exact faiss index of a model's references, together with their labels.

    Its ``search`` finds what the model's ``kneighbors`` finds, except where distances tie within
    rounding: by distance alone, whatever bandwidths and weights the references have. The ``index``
    is a plain faiss index in float32, which can be written, sharded or moved to a GPU; ``queries``
    transforms rows into its space.

    Parameters
    ----------
    model : estimator of this package, or a Pipeline that ends in one
        Fitted. The index of a pipeline holds the references of its last step; ``search`` and
        ``queries`` let rows pass the steps before.

    Returns
    -------
    FaissIndex

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from latentmetric import MaPML
    >>> from latentmetric.export import to_faiss
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaPML(random_state=0).fit(X, y)
    >>> exported = to_faiss(model)
    >>> distances, indices = exported.search(X, k=3)
    >>> bool((indices == model.kneighbors(X, 3)[1]).all())
    True
    >>> exported.index.ntotal == len(model.latent_examples_)
    True
    """
    try:
        import faiss
    except ImportError as error:
        raise ImportError(f"to_faiss needs faiss: {pip_install('faiss')}") from error
    parts = Parts.of(model)
    rows = np.ascontiguousarray(parts.model.references.rows, dtype=np.float32)
    kind = faiss.IndexFlatL2 if parts.model.is_metric else faiss.IndexFlatIP
    index = kind(rows.shape[1])
    index.add(rows)
    return FaissIndex(index, parts.labels, parts)
