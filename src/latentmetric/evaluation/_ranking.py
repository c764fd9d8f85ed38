"""Which of the nearest references of a block of queries are of the query's class.

Time O(n·m·d) for n queries and m references, and a sort of as many of the distances as matter.
Memory: ``ARRAYS`` numbers for each pair of a query and a reference, which bounds the block.
"""

from __future__ import annotations

import numpy as np

from latentmetric.core.distances import References, squared_norms
from latentmetric.core.types import Bools, Floats, Ints

WORKING_BYTES = 256 * 2**20
"""Bytes that the blocks of all threads take together, as long as one query each fits."""

ARRAYS = 7
"""Arrays of 8 bytes a query and reference that are held at once."""

REL_TOL = 1e-12
"""Squared distances tie if they differ by at most this share of the squared norms."""


def nearest_hits(
    queries: Floats, references: References, right: Bools, own: Ints | None, depth: int
) -> tuple[Bools, Ints]:
    """Whether each of the nearest ``depth`` references is right, and the rank of the first right.

    ``right`` (n, m) says which references are of the query's class, ``own`` which one is the query
    itself, which it does not find. In a tie, references of other classes are nearer.
    """
    distances = references.comparable(queries)
    norms = squared_norms(queries)[:, None] + references.norms
    distances += right * (REL_TOL * norms + np.finfo(np.float64).tiny)
    if own is not None:
        itself = np.arange(len(own)), own
        right[itself], distances[itself] = False, np.inf
    first = np.where(right, distances, np.inf).min(axis=1, keepdims=True)
    first_rank = 1 + (distances < first).sum(axis=1)
    nearest = np.argpartition(distances, depth - 1, axis=1)[:, :depth]
    order = np.take_along_axis(distances, nearest, axis=1).argsort(axis=1)
    return np.take_along_axis(right, np.take_along_axis(nearest, order, axis=1), 1), first_rank


def search_scores(hits: Bools, first_rank: Ints, n_right: Ints, ks: list[int]) -> dict[str, Floats]:
    """The scores of each query; ``n_right`` references are of its class."""
    ranks = np.arange(1, hits.shape[1] + 1)
    up_to_r = hits & (ranks <= n_right[:, None])
    precisions = np.where(up_to_r, hits.cumsum(axis=1), 0) / ranks
    return {
        **{f"recall@{k}": hits[:, :k].any(axis=1) for k in ks},
        **{f"precision@{k}": hits[:, :k].sum(axis=1) / k for k in ks},
        "map@r": precisions.sum(axis=1) / n_right,
        "r_precision": up_to_r.sum(axis=1) / n_right,
        "mrr": 1 / first_rank,
    }
