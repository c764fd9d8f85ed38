"""Triplets drawn at random from labelled rows: what OASIS and HR-SGD learn from.

Time and memory O(1) per triplet drawn at once, after O(n log n) once to sort the rows by class.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.triplets import Triplets
from latentmetric.core.types import Ints

DRAWN_AT_ONCE = 1_000_000
"""Triplets in memory at most; a mini-batch may not have more."""


def of_unit_norm(rows: InnerRows) -> InnerRows:
    """The rows with a mean squared norm of 1 instead of d, so that a margin of 1 is meaningful."""
    centre, scale = rows.coordinates.centre, rows.coordinates.scale
    return InnerRows(rows.rows, Coordinates(centre, scale * sqrt(rows.n_features)))


class RandomTriplets:
    """Draws (o, p, q): o any row, p another row of its class, q a row of another class.

    Each is drawn uniformly. In a class of one row, p is o itself.
    """

    def __init__(self, codes: Ints) -> None:
        """``codes`` has one of 0 … C − 1 per row, and at least two classes."""
        self._codes = codes
        self._by_class = np.argsort(codes, kind="stable")
        self._sizes = np.bincount(codes)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._places = np.empty_like(self._by_class)
        self._places[self._by_class] = np.arange(len(codes))

    def draw(self, n_triplets: int, generator: np.random.Generator) -> Triplets:
        """Draw triplets independently of each other, with a margin of 1."""
        anchors = generator.integers(len(self._codes), size=n_triplets)
        classes = self._codes[anchors]
        sizes, starts = self._sizes[classes], self._starts[classes]
        # Draw among all but the excluded positions, then skip over these.
        own = generator.integers(np.maximum(sizes - 1, 1))
        own += (sizes > 1) & (own >= self._places[anchors] - starts)
        other = generator.integers(len(self._codes) - sizes)
        other += np.where(other >= starts, sizes, 0)
        return Triplets(
            anchors, self._by_class[starts + own], self._by_class[other], np.ones(n_triplets)
        )


def part_sizes(n_triplets: int, n_parts: int, batch_size: int = 1) -> list[int]:
    """Divide the whole batches in ``n_triplets`` into parts of nearly equal size."""
    ends = np.linspace(0, n_triplets // batch_size, n_parts + 1).astype(int)
    return [n_batches * batch_size for n_batches in np.diff(ends).tolist()]


def block_sizes(n_triplets: int, batch_size: int = 1) -> Iterator[int]:
    """Divide triplets that are whole batches into blocks to draw one after the other."""
    most = max(1, DRAWN_AT_ONCE // batch_size) * batch_size
    for done in range(0, n_triplets, most):
        yield min(most, n_triplets - done)
