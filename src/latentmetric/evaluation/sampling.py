"""Samples of rows: stratified, held out, and drawn from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.types import Floats, Ints


def sample(codes: Ints, n_rows: int, generator: np.random.Generator) -> Ints:
    """A stratified sample of at most ``n_rows`` rows, with each class at least once if possible."""
    return np.argsort(_ranks(codes, generator), kind="stable")[:n_rows]


def hold_out(codes: Ints, max_queries: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """A quarter of the rows as queries, the rest as references; no class loses all its rows."""
    ranks = _ranks(codes, generator)
    sizes = np.bincount(codes)[codes]
    ranks[ranks * sizes > sizes - 1.5] = np.inf  # the last row of its class
    n_queries = min(max_queries, max(1, len(codes) // 4), int(np.isfinite(ranks).sum()))
    if not n_queries:
        return np.arange(len(codes))[:max_queries], np.empty(0, dtype=np.intp)
    queries = np.sort(np.argsort(ranks, kind="stable")[:n_queries])
    return queries, np.setdiff1d(np.arange(len(codes)), queries)


def _ranks(codes: Ints, generator: np.random.Generator) -> Floats:
    """A random rank for each row within its class, from 0 to less than 1."""
    shuffled = generator.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    sizes = np.bincount(codes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    ranks = np.empty(len(codes))
    ranks[by_class] = (np.arange(len(codes)) - starts) / np.repeat(sizes, sizes)
    return ranks


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
