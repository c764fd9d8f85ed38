"""Samples of rows in which every class has its share."""

from __future__ import annotations

import numpy as np

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
