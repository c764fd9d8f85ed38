"""A fitted model as an exact faiss index.

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
from latentmetric.validation.parameters import MAX_COUNT, Integer
from latentmetric.validation.rows import as_floats


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
        return np.ascontiguousarray(self._queries(X), dtype=np.float32)

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
        k, n_references = Integer(-MAX_COUNT).check("k", k), len(self.labels)
        if not 1 <= k <= n_references:
            raise ValueError(
                f"k is {k}, but must be from 1 to {n_references}, "
                "the number of references in the index"
            )
        queries = self._queries(X)
        proposed = min(k + SPARE_NEIGHBORS, n_references)
        single = np.ascontiguousarray(queries, dtype=np.float32)
        found = np.sort(self.index.search(single, proposed)[1], axis=1)
        model = self._parts.model
        if not model.is_metric:
            return self._most_similar(queries, found, k)
        squared, indices = ranked(queries, model.references, found)
        return model.distances(squared[:, :k]), indices[:, :k]

    def _queries(self, X: Any) -> Floats:
        refuse_remote("an index of faiss", "X.compute() if it fits into memory", X=X)
        rows = np.asarray(self._parts.piped.prepared(X))
        n_features = self._parts.model.n_features
        if rows.ndim != 2 or rows.shape[1] != n_features:
            raise ValueError(
                f"X has shape {rows.shape}, but the model was fitted with {n_features} features: "
                "expected (rows, features)"
            )
        if self._parts.piped.steps is not None:
            rows = as_floats(rows.astype(float) if rows.dtype.kind == "O" else rows)
        return self._parts.model.points(rows)

    def _most_similar(self, queries: Floats, found: Ints, k: int) -> tuple[Floats, Ints]:
        rows = self._parts.model.references.rows
        unlike = np.stack(
            [-np.einsum("ij,ij->i", queries, rows[column]) for column in found.T], axis=1
        )
        order = np.argsort(unlike, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(unlike, order, axis=1), np.take_along_axis(found, order, axis=1)


def to_faiss(model: Any) -> FaissIndex:
    """Build an exact faiss index of a model's references, together with their labels.

    Its ``search`` finds what the model's ``kneighbors`` finds, except where distances tie within
    rounding. The ``index`` is a plain faiss index in float32, which can be written, sharded or
    moved to a GPU; ``queries`` transforms rows into its space.

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
    faiss = import_faiss("to_faiss")
    parts = Parts.of(model)
    rows = np.ascontiguousarray(parts.model.references.rows, dtype=np.float32)
    flat = faiss.IndexFlatIP if not parts.model.is_metric else faiss.IndexFlatL2
    index = flat(rows.shape[1])
    index.add(rows)
    return FaissIndex(index, parts.labels, parts)
