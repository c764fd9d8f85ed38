"""Squared distances between rows and nearest-neighbour search, in blocks.

Time O(n·m·d) for n queries against m references, as one GEMM per block of queries and tile of
references. Memory: at most ``BLOCK_BYTES`` of distances per thread; an n×m array is never held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.parallel import lazy_property, parallel_map
from latentmetric.core.tuning import (
    BLOCK_BYTES,
    GROUPS_PER_NEIGHBOR,
    MANY_CANDIDATES,
    MAX_ARGMIN,
    MEASURED_BYTES,
    TILE_ROWS,
)
from latentmetric.core.types import Bools, Floats, Ints

ROUNDING_SLACK = 64
"""Error bound of an expanded square, in multiples of eps times the squared norms."""

TIE_SLACK = 4
"""Distances tie if they differ by at most this multiple of eps times the norm of the query."""

TIE_LIMIT = 1e-5
"""Distances that differ by more than this share tie only if they are 0 within rounding."""

LARGEST = float(np.finfo(np.float64).max)
"""Infinite distances fill up rows; they are larger than this, and do not tie."""

Mask = Callable[[Floats, slice, slice], None]
"""Sets to infinity the entries of a block of queries and references that must not be found."""


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int | None = None) -> Iterator[slice]:
    """Slices that cut ``n_rows`` into blocks of at most ``block_bytes``, at least one row each."""
    step = max(1, (block_bytes or BLOCK_BYTES) // max(1, row_bytes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def squared_norms(rows: Floats) -> Floats:
    """‖row‖² of every row, without a temporary array of the rows' size."""
    norms: Floats = np.einsum("ij,ij->i", rows, rows)
    return norms


@dataclass(frozen=True, eq=False)
class References:
    """Rows to search among, with their squared norms computed once."""

    rows: Floats
    norms: Floats
    factor: float = -2.0
    """Queries are multiplied by this: −2, or 1 if the rows already contain the −2."""

    @classmethod
    def of(cls, rows: Floats) -> References:
        """References for these rows, which are not copied."""
        return cls(rows, squared_norms(rows))

    @classmethod
    def under(cls, rows: Floats, metric: Floats) -> References:
        """References for queries not mapped by the metric M: they store −2 Mr instead of r."""
        turned = rows @ metric
        norms: Floats = np.einsum("ij,ij->i", turned, rows)
        turned *= turned.dtype.type(-2)
        return cls(turned, norms, factor=1.0)

    def __len__(self) -> int:
        return len(self.rows)

    @lazy_property
    def in_double(self) -> References:
        """These references for queries in float64; the rows are not copied."""
        norms: Floats = np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64)
        return References(self.rows, norms, self.factor)

    @lazy_property
    def largest(self) -> float:
        """The largest ‖r‖² of the stored rows."""
        return float(squared_norms(self.rows).max(initial=0))

    def some(self, which: Ints) -> References:
        """The references with these indices."""
        return References(self.rows[which], self.norms[which], self.factor)

    def comparable(
        self, queries: Floats, tile: slice = slice(None), out: Floats | None = None
    ) -> Floats:
        """‖r‖² − 2 q·r: the squared distance less ‖q‖², which does not affect a query's ranking."""
        if self.factor != 1:
            queries = queries * queries.dtype.type(self.factor)
        block: Floats = np.matmul(queries, self.rows[tile].T, out=out)
        block += self.norms[tile]
        return block


def paired_squared_distances(left: Floats, right: Floats, right_index: Ints) -> Floats:
    """‖left[i] − right[right_index[i, j]]‖² by differences, exact even for close rows."""
    distances = np.empty(right_index.shape, dtype=left.dtype)
    for rows in _measured_blocks(left, right_index):
        differences = right.take(right_index[rows], axis=0)
        differences -= left[rows, None]
        np.einsum("ijk,ijk->ij", differences, differences, out=distances[rows])
    return distances


def paired_products(left: Floats, right: Floats, right_index: Ints) -> Floats:
    """−2 times the inner product of left[i] and right[right_index[i, j]]."""
    products = np.empty(right_index.shape, dtype=left.dtype)
    for rows in _measured_blocks(left, right_index):
        chosen = right.take(right_index[rows], axis=0)
        np.einsum("ik,ijk->ij", left[rows], chosen, out=products[rows])
    products *= products.dtype.type(-2)
    return products


def _measured_blocks(left: Floats, right_index: Ints) -> Iterator[slice]:
    row_bytes = right_index.shape[1] * left.shape[1] * left.itemsize
    return row_blocks(len(left), row_bytes, MEASURED_BYTES)


Measure = Callable[[Floats, Floats, Ints], Floats]
"""Compares pairs of rows exactly: ``paired_squared_distances`` or ``paired_products``."""


def search(
    queries: Floats, references: References, k: int, mask: Mask | None = None, n_threads: int = 1
) -> tuple[Floats, Ints]:
    """The k nearest references of every query, nearest first; ties go to the smaller index.

    Returns their comparable distances (see ``References.comparable``) and their indices.
    """
    dtype = np.result_type(queries, references.rows)
    values = np.full((len(queries), k), np.inf, dtype=dtype)
    indices = np.zeros((len(queries), k), dtype=np.intp)
    tiles = list(row_blocks(len(references), 1, TILE_ROWS))

    def search_block(rows: slice) -> None:
        for tile in tiles:
            block = references.comparable(queries[rows], tile)
            if mask is not None:
                mask(block, rows, tile)
            some = slice(rows.start, rows.stop)
            if k > 1 and tile.start:  # most queries find nothing nearer in the later tiles
                candidates = np.flatnonzero(block.min(axis=1) < values[rows, -1])
                block, some = block[candidates], rows.start + candidates
            more, columns = smallest(block, min(k, block.shape[1]))
            if tile.start:  # merge; on ties the earlier tile comes first
                more = np.concatenate((values[some], more), axis=1)
                columns = np.concatenate((indices[some], tile.start + columns), axis=1)
                order = np.arange(len(more))[:, None], more.argsort(axis=1, kind="stable")[:, :k]
                more, columns = more[order], columns[order]
            values[some, : more.shape[1]] = more
            indices[some, : more.shape[1]] = np.where(more < np.inf, columns, 0)

    tile_bytes = tiles[0].stop * dtype.itemsize
    parallel_map(search_block, list(row_blocks(len(queries), tile_bytes)), n_threads)
    return values, indices


def k_nearest(
    queries: Floats, references: References, k: int, measure: Measure = paired_squared_distances
) -> tuple[Floats, Ints]:
    """Squared distances and indices of each query's k nearest references, nearest first.

    The search ranks by the expanded square; the k distances returned are computed from
    differences and sorted again, so that a query that is itself a reference has distance 0. Ties
    go to the smaller index. Where the next reference is as near within the rounding error of the
    expanded square, all that are as near are compared by differences.
    """
    values, found = search(queries, references, min(k + 1, len(references)))
    nearest, indices = ranked(queries, references, found[:, :k], measure)
    if k == len(references):
        return nearest, indices
    rounding = _rounding(queries, references, queries.dtype)
    unsure = np.flatnonzero(values[:, k] <= values[:, k - 1] + rounding)
    for block in row_blocks(len(unsure), 4 * 8 * len(references)):
        some = unsure[block]
        nearest[some], indices[some] = _k_nearest_exactly(queries[some], references, k, measure)
    return nearest, indices


def ranked(
    queries: Floats, references: References, found: Ints,
    measure: Measure = paired_squared_distances,
) -> tuple[Floats, Ints]:  # fmt: skip
    """Sort the references that a search found by distances computed from differences."""
    found = np.sort(found, axis=1)
    exact = measure(queries, references.rows, found)
    return _sorted_by_distance(queries, exact, found, measure, found.shape[1])


def _rounding(queries: Floats, references: References, dtype: Any) -> Floats:
    """The error bound of each query's expanded squares."""
    error: float = ROUNDING_SLACK * np.finfo(dtype).eps
    bounds: Floats = error * (squared_norms(queries) + references.largest)
    return bounds


def _k_nearest_exactly(
    queries: Floats, references: References, k: int, measure: Measure
) -> tuple[Floats, Ints]:
    """The k nearest by differences, of all references that may be among them."""
    of, to = np.nonzero(_candidates(queries, references, k, measure))
    rank = np.arange(len(of)) - np.searchsorted(of, of)
    shape = len(queries), 1 + rank.max()
    exact, found = np.full(shape, np.inf, queries.dtype), np.zeros(shape, np.intp)
    found[of, rank] = to
    for pairs in row_blocks(len(of), queries.shape[1] * queries.itemsize):
        values = measure(queries[of[pairs]], references.rows, to[pairs, None])
        exact[of[pairs], rank[pairs]] = values[:, 0]
    return _sorted_by_distance(queries, exact, found, measure, k)


def _candidates(queries: Floats, references: References, k: int, measure: Measure) -> Bools:
    """Which references may be among each query's k nearest.

    float32 cannot tell the references apart if they are near each other, but far from the centre;
    then float64 can.
    """
    block = references.comparable(queries)
    limits = np.partition(block, k - 1, axis=1)[:, k - 1]
    limits += _rounding(queries, references, queries.dtype)
    near: Bools = block <= limits[:, None]
    many = np.count_nonzero(near) > len(queries) * (k + MANY_CANDIDATES)
    if not many or queries.dtype != np.float32 or measure is not paired_squared_distances:
        return near
    wide = queries.astype(np.float64)
    norms, block = squared_norms(wide), references.in_double.comparable(wide)
    limits = np.partition(block, k - 1, axis=1)[:, k - 1] + norms
    reach = _tied_until(np.sqrt(np.maximum(limits, 0)), norms, queries.dtype)
    limits = (1 + 2 * ROUNDING_SLACK * np.finfo(queries.dtype).eps) * reach**2 - norms
    limits += _rounding(wide, references, np.float64)
    near &= block <= limits[:, None]
    return near


def zero_until(norms: Floats, dtype: Any) -> Floats:
    """The largest distances that are 0 within rounding, for queries with these squared norms."""
    distances: Floats = TIE_SLACK * float(np.finfo(dtype).eps) * np.sqrt(norms, dtype=np.float64)
    return distances


def _tied_until(lengths: Floats, norms: Floats, dtype: Any) -> Floats:
    """The largest distances that tie with these, for queries with these squared norms."""
    zero = zero_until(norms, dtype)
    rounding = zero + TIE_SLACK * float(np.finfo(dtype).eps) * lengths
    reach: Floats = np.maximum(lengths + np.minimum(rounding, TIE_LIMIT * lengths), zero)
    return reach


def _sorted_by_distance(
    queries: Floats, squared: Floats, found: Ints, measure: Measure, k: int
) -> tuple[Floats, Ints]:
    """The first k in ascending order; ``found`` is ascending, so that equals keep their order.

    Distances that tie within rounding are sorted by index, and become the least of them.
    """
    order = np.arange(len(squared))[:, None], squared.argsort(axis=1, kind="stable")
    squared, found = squared[order], found[order]
    if measure is not paired_squared_distances:
        return squared[:, :k], found[:, :k]
    # Bounds that are cheaper than ``_tied_until`` rule out most rows.
    norms = squared_norms(queries)
    zero = (2 * TIE_SLACK * float(np.finfo(squared.dtype).eps)) ** 2
    limits = squared[:, :-1] * squared.dtype.type(1 + 4 * TIE_LIMIT)
    limits = np.maximum(limits, np.multiply(norms, zero, dtype=np.float64)[:, None])
    tied = np.flatnonzero((squared[:, 1:] <= np.minimum(limits, LARGEST)).any(axis=1))
    if not len(tied):
        return squared[:, :k], found[:, :k]
    lengths = np.sqrt(squared[tied], dtype=np.float64)
    reach = _tied_until(lengths, norms[tied, None], squared.dtype)
    surely = (lengths[:, 1:] <= np.minimum(reach[:, :-1], LARGEST)).any(axis=1)
    if surely.any():
        tied, lengths, reach = tied[surely], lengths[surely], reach[surely]
        firsts, until = squared[tied], reach[:, 0]
        for rank in range(1, k):
            apart = lengths[:, rank] > until
            firsts[:, rank] = np.where(apart, firsts[:, rank], firsts[:, rank - 1])
            until = np.where(apart, reach[:, rank], until)
        beyond = lengths[:, k:] > until[:, None]
        firsts[:, k:] = np.where(beyond, firsts[:, k:], firsts[:, k - 1 : k])
        ranks = np.lexsort((found[tied], firsts), axis=1)
        squared[tied] = np.take_along_axis(firsts, ranks, axis=1)
        found[tied] = np.take_along_axis(found[tied], ranks, axis=1)
    return squared[:, :k], found[:, :k]


def smallest(block: Floats, k: int) -> tuple[Floats, Ints]:
    """The k smallest entries of every row and their columns, ascending. Overwrites ``block``.

    Of equal entries the first are taken; the columns of infinite ones are arbitrary. Up to a few, k
    passes of argmin are fastest. Beyond, entries below a bound are sorted.
    """
    if k <= MAX_ARGMIN:
        columns = np.empty((len(block), k), dtype=np.intp)
        values = np.empty((len(block), k), dtype=block.dtype)
        rows = np.arange(len(block))
        for rank in range(k):
            columns[:, rank] = block.argmin(axis=1)
            values[:, rank] = block[rows, columns[:, rank]]
            block[rows, columns[:, rank]] = np.inf
        return values, columns
    bounds = np.minimum(_bounds(block, k), np.finfo(block.dtype).max)  # hidden entries stay out
    inside = np.flatnonzero(block <= bounds[:, None])
    ends = np.searchsorted(inside, block.shape[1] * np.arange(len(block) + 1))
    starts, ends = ends[:-1, None], ends[1:, None]
    at = starts + np.arange(max(k, (ends - starts).max(initial=0)))
    inside = np.append(inside, 0)[np.minimum(at, len(inside))]
    values = np.where(at < ends, block.ravel()[inside], np.inf)
    order = np.argsort(values, axis=1, kind="stable")[:, :k]
    columns = np.take_along_axis(inside, order, axis=1) % block.shape[1]
    return np.take_along_axis(values, order, axis=1), columns


def _bounds(block: Floats, k: int) -> Floats:
    """Bounds that at least k entries of each row do not exceed, and few more than k.

    The k-th smallest of the minima of groups: that takes one pass instead of several.
    """
    size = max(1, block.shape[1] // (GROUPS_PER_NEIGHBOR * k))
    n_groups = block.shape[1] // size  # the few entries that are left bound nothing
    minima = block[:, : size * n_groups].reshape(len(block), size, n_groups).min(axis=1)
    minima.partition(k - 1, axis=1)
    bounds: Floats = minima[:, k - 1]
    return bounds
