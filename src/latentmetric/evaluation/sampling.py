"""Samples of rows: stratified, and drawn from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.types import Ints


def sample(codes: Ints, n_rows: int, generator: np.random.Generator) -> Ints:
    """A stratified sample of at most ``n_rows`` rows, with each class at least once if possible."""
    shuffled = generator.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    sizes = np.bincount(codes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    ranks = np.empty(len(codes))  # of each row within its class, from 0 to less than 1
    ranks[by_class] = (np.arange(len(codes)) - starts) / np.repeat(sizes, sizes)
    return np.argsort(ranks, kind="stable")[:n_rows]


def sample_rows(
    X: Any, y: np.ndarray[Any, Any], n_rows: int, random_state: int = 0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """At most ``n_rows`` rows with their labels, drawn at random, in the order of ``X``.

    Rows in a file are read block by block.
    """
    if len(y) <= n_rows:
        return np.asarray(X), y
    drawn = np.random.default_rng(random_state).choice(len(y), n_rows, replace=False)
    drawn.sort()
    parts = []
    for block in row_blocks(len(y), X.shape[1] * X.dtype.itemsize):
        first, last = np.searchsorted(drawn, (block.start, block.stop))
        if first < last:
            parts.append(X[block][drawn[first:last] - block.start])
    return np.concatenate(parts), y[drawn]
