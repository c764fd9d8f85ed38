"""A fitted model as an exact index of faiss.

Time O(m·d·r) to build it for m references and a metric of rank r; memory 4·m·r bytes beside the
model's own arrays, which it shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.distances import ranked
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.admission import refuse_remote
from latentmetric.estimators.index import import_faiss
from latentmetric.export.parts import SPARE_NEIGHBORS, Parts


@dataclass(frozen=True)
class FaissIndex:
    """References of a model in an index of faiss, their labels, and the way of queries into it.

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
        """Rows in the index's space, for ``index.search`` and other indexes of faiss.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, rank of the metric), float32
        """
        return np.ascontiguousarray(self._queries(X), dtype=np.float32)

    def search(self, X: Any, k: int) -> tuple[Floats, Ints]:
        """The k nearest references of each row, as the model's ``kneighbors`` finds them.

        The index proposes some more than k, which are ranked again in the model's own precision.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        k : int

        Returns
        -------
        distances : ndarray of shape (n_samples, k)
            In the units of the features; similarities with their sign changed where the model
            compares by these.
        indices : ndarray of shape (n_samples, k)
        """
        n_references = len(self.labels)
        if not 1 <= k <= n_references:
            raise ValueError(f"k is {k}, but the index holds {n_references} references; 1 to these")
        queries = self._queries(X)
        proposed = min(k + SPARE_NEIGHBORS, n_references)
        asked = np.ascontiguousarray(queries, dtype=np.float32)
        found = np.sort(self.index.search(asked, proposed)[1], axis=1)
        model = self._parts.model
        if not model.is_metric:
            return self._most_similar(queries, found, k)
        squared, indices = ranked(queries, model.references, found)
        return model.distances(squared[:, :k]), indices[:, :k]

    def _queries(self, X: Any) -> Floats:
        refuse_remote("an index of faiss", "X.compute() if it fits into memory", X=X)
        X, n_features = np.asarray(X), self._parts.model.n_features
        if X.ndim != 2 or X.shape[1] != n_features:
            raise ValueError(
                f"X has shape {X.shape}, but the model was fitted with {n_features} features: "
                "(rows, features) is expected"
            )
        return self._parts.model.points(X)

    def _most_similar(self, queries: Floats, found: Ints, k: int) -> tuple[Floats, Ints]:
        rows = self._parts.model.references.rows
        unlike = np.stack(
            [-np.einsum("ij,ij->i", queries, rows[column]) for column in found.T], axis=1
        )
        order = np.argsort(unlike, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(unlike, order, axis=1), np.take_along_axis(found, order, axis=1)


def to_faiss(model: Any) -> FaissIndex:
    """An exact index of faiss over a model's references, with their labels beside it.

    Its ``search`` finds what the model's ``kneighbors`` finds, but where distances tie within
    rounding. The ``index`` is a plain one of faiss, in float32, to be written, sharded or put on a
    GPU; ``queries`` brings rows into its space.

    Parameters
    ----------
    model : estimator of this package
        Fitted.

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
    faiss = import_faiss("to_faiss")
    parts = Parts.of(model)
    rows = np.ascontiguousarray(parts.model.references.rows, dtype=np.float32)
    flat = faiss.IndexFlatIP if not parts.model.is_metric else faiss.IndexFlatL2
    index = flat(rows.shape[1])
    index.add(rows)
    return FaissIndex(index, parts.labels, parts)
