"""The ranks at which queries find references of their own class, a block of queries at a time.

The rank of a reference is 1 plus the number of nearer references: those of its own class, which
are sorted, and those of other classes, which are only counted, as long as the rank matters.

Time O(n·m·d) for n queries and m references, and a sort of the distances up to the farthest rank
that matters. Memory: ``WORKING_BYTES`` in all, whatever n, m and the sizes of the classes are, as
long as one query with its class fits; nothing of n×m.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References, squared_norms
from latentmetric.core.types import Floats, Ints

WORKING_BYTES = 256 * 2**20
"""Bytes that the blocks of all threads take together."""

BLOCK_QUERIES = 512
"""Queries in a block at most; more would not make the matrix products faster."""

TILE_ROWS = 4096
"""References compared at a time."""

TILE_ARRAYS, CLASS_ARRAYS = 4, 6
"""Arrays of 8 bytes a query that are held at once: as wide as a tile, as wide as a class."""

REL_TOL = 1e-12
"""Squared distances tie if they differ by at most this share of the squared norms."""


class Gallery:
    """Labelled references, sorted by class, to be searched by labelled queries."""

    def __init__(self, rows: Floats, codes: Ints, n_classes: int) -> None:
        self._rows = rows
        self._coordinates = Coordinates.of(rows)
        self._order = np.argsort(codes, kind="stable")
        self._class_starts = np.searchsorted(codes[self._order], np.arange(n_classes + 1))
        self.class_sizes: Ints = np.diff(self._class_starts)
        """References of each class."""

    def ranks(self, queries: Floats, codes: Ints, own: Ints | None, depth: int) -> Floats:
        """The ranks of all references of each query's class, ascending, padded with infinity.

        The first is exact, the others as far as they are at most ``depth``. ``own`` are the indices
        of the queries among the references, which they do not find. Queries are sorted by class.
        """
        queries = self._centred(queries)
        groups = list(self._groups(codes))
        right = self._right_distances(queries, groups, own)
        ranks = np.where(np.isfinite(right), np.arange(1.0, right.shape[1] + 1), np.inf)
        for tile in _tiles(0, len(self._rows)):
            distances = self._references(tile).comparable(queries)
            for members, start, stop in groups:
                if start < tile.stop and stop > tile.start:
                    own_class = slice(max(start - tile.start, 0), stop - tile.start)
                    distances[members, own_class] = np.inf
            n_relevant = np.maximum((ranks <= depth).sum(axis=1), 1)
            for row, n in enumerate(n_relevant):
                near = distances[row, distances[row] <= right[row, n - 1]]
                near.sort()
                ranks[row, :n] += np.searchsorted(near, right[row, :n], side="right")
        return ranks

    def _groups(self, codes: Ints) -> Iterator[tuple[slice, int, int]]:
        """The queries of each class, with the first and last of its references."""
        classes, firsts = np.unique(codes, return_index=True)
        for code, first, last in zip(classes, firsts, [*firsts[1:], len(codes)], strict=True):
            start, stop = self._class_starts[code : code + 2]
            yield slice(int(first), int(last)), int(start), int(stop)

    def _right_distances(
        self, queries: Floats, groups: list[tuple[slice, int, int]], own: Ints | None
    ) -> Floats:
        """Sorted distances to the other references of each query's class, padded with infinity."""
        right = np.full((len(queries), max(stop - start for _, start, stop in groups)), np.inf)
        for members, start, stop in groups:
            some = queries[members]
            for tile in _tiles(start, stop):
                references = self._references(tile)
                # In a tie, references of other classes count as nearer.
                tolerance = REL_TOL * (squared_norms(some)[:, None] + references.norms)
                block = references.comparable(some) + tolerance
                if own is not None:
                    block[own[members, None] == self._order[tile]] = np.inf
                right[members, tile.start - start : tile.stop - start] = block
        right.sort(axis=1)
        return right

    def _references(self, tile: slice) -> References:
        return References.of(self._centred(self._rows[self._order[tile]]))

    def _centred(self, rows: Floats) -> Floats:
        """Centred rows in float64, so that the expanded square loses little precision."""
        inside = rows.astype(np.float64)
        return self._coordinates.into(inside, out=inside)


def blocks(depths: Ints, codes: Ints, n_bytes: int) -> Iterator[Ints]:
    """The indices of all queries in blocks that take at most ``n_bytes``, or one query each.

    ``depths`` bound the width of a query's arrays. The widest come first, so that a block's first
    query bounds the memory of the others; within a block, queries are sorted by class.
    """
    order = np.lexsort((codes, -depths))
    start = 0
    while start < len(order):
        query_bytes = 8 * (TILE_ARRAYS * TILE_ROWS + CLASS_ARRAYS * int(depths[order[start]]))
        stop = start + int(np.clip(n_bytes // query_bytes, 1, BLOCK_QUERIES))
        chosen = order[start:stop]
        yield chosen[np.argsort(codes[chosen], kind="stable")]
        start = stop


def _tiles(start: int, stop: int) -> Iterator[slice]:
    for at in range(start, stop, TILE_ROWS):
        yield slice(at, min(at + TILE_ROWS, stop))
