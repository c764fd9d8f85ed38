"""The ranks at which queries find references of their own class, a block of queries at a time.

The rank of a reference is the number of nearer references, of its own class and of others. So
only the smallest distances to other classes are kept, as values without indices, and only as many
as the ranks that are needed: R of a class, or the largest k.

Time O(n·m·d) for n queries and m references. Memory: ``WORKING_BYTES`` in all, whatever n, m and
the sizes of the classes are, as long as one query with its class fits; nothing of n×m.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References, squared_norms
from latentmetric.core.types import Bools, Floats, Ints

WORKING_BYTES = 256 * 2**20
"""Bytes that the blocks of all threads take together."""

BLOCK_QUERIES = 512
"""Queries in a block at most; more would not make the matrix products faster."""

TILE_ROWS = 4096
"""References compared at a time."""

ARRAYS_OF_A_TILE = 8
ARRAYS_OF_RANKS = 12
"""Arrays of 8 bytes a query that are held at once: as wide as a tile, as wide as the ranks."""

TIE = 1e-12
"""Squared distances tie if they differ by at most this share of the squared norms."""


@dataclass(frozen=True)
class Block:
    """Queries, and how many ranks of each are needed."""

    queries: Ints
    depth: int


@dataclass(frozen=True)
class Ranks:
    """What a block of queries found."""

    hits: Bools
    """Whether the reference at each rank, nearest first, is of the query's class."""
    first: Ints
    """The rank of the nearest reference of the query's class, however far it is."""


class Gallery:
    """Labelled references to be searched by labelled queries.

    References are visited class by class, so that those of a query's own class are a slice.
    """

    def __init__(self, rows: Floats, codes: Ints, n_classes: int) -> None:
        self._rows = rows
        self._coordinates = Coordinates.of(rows)
        self._order = np.argsort(codes, kind="stable")
        self._class_starts = np.searchsorted(codes[self._order], np.arange(n_classes + 1))
        self.class_sizes: Ints = np.diff(self._class_starts)
        """References of each class."""
        self._places = np.empty_like(self._order)
        self._places[self._order] = np.arange(len(codes))

    def __len__(self) -> int:
        return len(self._rows)

    def ranks(self, queries: Floats, codes: Ints, own: Ints | None, depth: int) -> Ranks:
        """Ranks down to ``depth``; ``own`` are the indices of the queries among the references.

        Queries must be sorted by class.
        """
        inside = self._into(queries)
        groups = list(_groups(codes))
        own_class = self._class_starts[np.array([(code, code + 1) for code, _ in groups])]
        right = self._right_distances(inside, groups, own)
        nearest_wrong = _NearestWrong(right, depth)
        for tile in _tiles(0, len(self)):
            distances = self._references(tile).comparable(inside)
            firsts, lasts = np.clip(own_class, tile.start, tile.stop).T - tile.start
            for group in np.flatnonzero(firsts < lasts):
                distances[groups[group][1], firsts[group] : lasts[group]] = np.inf
            nearest_wrong.add(distances)
        return Ranks(_merged(nearest_wrong.sorted(), right, depth), 1 + nearest_wrong.before_first)

    def _right_distances(
        self, queries: Floats, groups: list[tuple[int, slice]], own: Ints | None
    ) -> Floats:
        """Sorted distances to the other references of each query's class, padded with infinity."""
        right = np.full((len(queries), max(self.class_sizes[code] for code, _ in groups)), np.inf)
        for code, rows in groups:
            start, stop = self._class_starts[code : code + 2]
            for tile in _tiles(start, stop):
                references = self._references(tile)
                block = references.comparable(queries[rows])
                block += _rounding(queries[rows], references)
                right[rows, tile.start - start : tile.stop - start] = block
            if own is not None:
                every_row = np.arange(rows.start, rows.stop)
                right[every_row, self._places[own[rows]] - start] = np.inf
        right.sort(axis=1)
        return right

    def _references(self, places: slice) -> References:
        return References.of(self._into(self._rows[self._order[places]]))

    def _into(self, rows: Floats) -> Floats:
        """Centre rows, so that the expanded square loses little precision."""
        inside = rows.astype(np.float64)
        return self._coordinates.into(inside, out=inside)


class _NearestWrong:
    """Collects the smallest distances to references of other classes.

    A distance is kept only if its rank can matter: if it is no farther than the farthest reference
    of the right class, and among the ``depth`` smallest.
    """

    def __init__(self, right: Floats, depth: int) -> None:
        n_queries = len(right)
        n_right = np.isfinite(right).sum(axis=1)
        self._nearest_right = right[:, 0]
        self._limits = right[np.arange(n_queries), n_right - 1]
        self._depth = depth
        self._taken = np.full((n_queries, depth + max(depth, TILE_ROWS)), np.inf)
        self._n_taken = np.zeros(n_queries, dtype=np.intp)
        self.before_first = np.zeros(n_queries, dtype=np.intp)
        """How many are at most as far as the nearest reference of the right class."""

    def add(self, distances: Floats) -> None:
        """Add distances to further references; those of the query's own class are infinite."""
        flat = np.flatnonzero(distances <= self._limits[:, None])
        rows = flat // distances.shape[1]
        values = distances.ravel()[flat]
        before = rows[values <= self._nearest_right[rows]]
        self.before_first += np.bincount(before, minlength=len(self.before_first))
        counts = np.bincount(rows, minlength=len(self._taken))
        if (self._n_taken + counts).max() > self._taken.shape[1]:
            self._drop_farther()
        starts = np.cumsum(counts) - counts
        self._taken[rows, self._n_taken[rows] + np.arange(len(rows)) - starts[rows]] = values
        self._n_taken += counts

    def _drop_farther(self) -> None:
        self._taken.partition(self._depth - 1, axis=1)
        # Free places must come last: a partition may leave infinities among the values it keeps.
        self._taken[:, : self._depth].sort(axis=1)
        self._taken[:, self._depth :] = np.inf
        self._n_taken.clip(max=self._depth, out=self._n_taken)
        farthest = np.minimum(self._limits, self._taken[:, self._depth - 1])
        self._limits = np.maximum(farthest, self._nearest_right)

    def sorted(self) -> Floats:
        """The ``depth`` smallest."""
        self._drop_farther()
        return self._taken[:, : self._depth]


def blocks(need: Ints, codes: Ints, n_bytes: int) -> Iterator[Block]:
    """All queries, cut so that a block takes at most ``n_bytes``, but at least one query.

    ``need`` is the number of ranks needed for each query. Those with the greatest need come
    first, so that a block's first query bounds the memory of all its queries.
    """
    order = np.lexsort((codes, -need))
    start = 0
    while start < len(order):
        depth = int(need[order[start]])
        query_bytes = 8 * (ARRAYS_OF_A_TILE * TILE_ROWS + ARRAYS_OF_RANKS * depth)
        stop = start + int(np.clip(n_bytes // query_bytes, 1, BLOCK_QUERIES))
        chosen = order[start:stop]
        yield Block(chosen[np.argsort(codes[chosen], kind="stable")], depth)
        start = stop


def _tiles(start: int, stop: int) -> Iterator[slice]:
    for at in range(start, stop, TILE_ROWS):
        yield slice(at, min(at + TILE_ROWS, stop))


def _groups(codes: Ints) -> Iterator[tuple[int, slice]]:
    """Each class of sorted codes, and its rows."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(codes)], strict=True):
        yield int(codes[start]), slice(int(start), int(stop))


def _rounding(queries: Floats, references: References) -> Floats:
    """The difference up to which two of these squared distances count as equal."""
    return TIE * (squared_norms(queries)[:, None] + references.norms)


def _merged(wrong: Floats, right: Floats, depth: int) -> Bools:
    """Whether the reference at each rank is a right one; in a tie the wrong ones come first."""
    both = np.concatenate((wrong, right), axis=1)
    order = np.argsort(both, axis=1, kind="stable")[:, :depth]
    hits: Bools = order >= wrong.shape[1]
    hits &= np.isfinite(np.take_along_axis(both, order, axis=1))
    return hits
