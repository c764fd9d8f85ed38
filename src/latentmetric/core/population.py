"""What the algorithms do with the rows, in this process or wherever the rows are.

Sorting n rows of d features by class takes O(n·d) once, to measure their distances from the centre.
Memory: O(n); the caller's rows are not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import Any, Protocol, Self

import numpy as np

from latentmetric.core.classes import OneClass, classes_of
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import row_blocks
from latentmetric.core.latents import latents_near, settle
from latentmetric.core.metric import Metric
from latentmetric.core.nearby import LatentPoints, Nearby, nearby_of
from latentmetric.core.parallel import lazy_property, parallel_map
from latentmetric.core.refinement import Batch, Gradient, gradient
from latentmetric.core.starts import Start
from latentmetric.core.tuning import CHUNKED_NUMBERS, CHUNKS, DISTORTION
from latentmetric.core.types import Floats, Ints


@dataclass(frozen=True)
class LatentsUpdate:
    """The latent examples of some classes after Alg. 1."""

    latents: Floats
    spreads: Floats
    """E[D²(x, z)] of every class under the metric."""
    counts: Floats
    """Rows of every latent example, or their weight."""
    passes: int
    """The largest number of passes that a class took."""


class Population(Protocol):
    """What the rounds need to know about the rows, which they never read themselves."""

    coordinates: Coordinates
    codes: Ints
    """The code of the class at each position."""

    def __len__(self) -> int: ...

    sizes: Ints
    """Rows of the class at each position."""
    n_features: int
    dtype: np.dtype[np.floating[Any]]
    """The dtype that everything is computed in."""

    @property
    def weights(self) -> Floats | None:
        """The weight of every row, by its drawing number; None if each counts as one."""

    def fingerprint_parts(self) -> Sequence[Floats | Ints]:
        """Numbers that identify these rows and classes."""

    def first_latents(
        self, starts: Sequence[Ints], class_starts: Ints, n_threads: int
    ) -> LatentsUpdate:
        """Place the latent examples at their starts; ``starts`` come from ``draw_starts``."""

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int,
    ) -> LatentsUpdate:  # fmt: skip
        """Alg. 1 for every class."""

    def sample(self, numbers: Ints) -> Floats:
        """Inner rows by their drawing numbers: class by class, in each in its drawing order."""

    def nearby(self, latent_points: LatentPoints, n_threads: int) -> Nearby:
        """The latent examples near the rows visited, in the order of their drawing numbers."""

    def gradient(self, numbers: Ints, batch: Batch, start: Start, n_threads: int) -> Gradient:
        """The sum of the gradients of the rows with these drawing numbers."""


def positions_of(rows: Population, numbers: Ints) -> Ints:
    """The positions of the classes of rows with these drawing numbers."""
    return np.searchsorted(np.cumsum(rows.sizes), numbers, side="right")


def weights_of(rows: Population, numbers: Ints) -> Floats | None:
    """The weights of rows with these drawing numbers; None if each row counts as one."""
    return None if rows.weights is None else rows.weights[numbers]


def weights_by_class(rows: Population) -> Ints | Floats:
    """The weight of the rows of the class at each position; their number if each counts as one."""
    if rows.weights is None:
        return rows.sizes
    totals: Floats = np.add.reduceat(rows.weights, np.cumsum(rows.sizes) - rows.sizes)
    return totals


def draw_numbers(rows: Population, most: int, generator: np.random.Generator) -> Ints:
    """The drawing numbers of all rows, or of a sample of a bounded number, ascending."""
    n_rows = int(rows.sizes.sum())
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(generator.choice(n_rows, size=most, replace=False))


class LocalPopulation:
    """Rows that this process can read, and an order of them that depends on the rows alone.

    Random draws refer to rows of a class ordered by their distance from the centre, and to
    classes ordered by the mean of these distances. So neither the order of the caller's rows nor
    the names of the classes nor a rotation of the features changes what is drawn.
    """

    def __init__(
        self, rows: Any, coordinates: Coordinates, codes: Ints, members: list[Ints],
        radii: Floats, row_weights: Floats | None = None,
    ) -> None:  # fmt: skip
        self.coordinates = coordinates
        self.codes = codes
        """The code of the class at each position."""
        self.members = members
        """The row numbers of the class at each position."""
        self.sizes = np.fromiter(map(len, members), dtype=np.intp)
        """Rows of the class at each position."""
        self.n_features = int(rows.shape[1])
        self.dtype: np.dtype[np.floating[Any]] = rows.dtype
        """The dtype that everything is computed in."""
        self._rows = rows
        self.radii = radii
        """‖x‖² of all rows in inner coordinates."""
        self.row_weights = row_weights
        """The weight of every row; None if each counts as one."""
        self.inner = InnerRows(rows, coordinates)
        """All rows, those of other populations included."""
        self.classes = classes_of(self.inner, members, radii, row_weights)

    @classmethod
    def of(cls, rows: Any, codes: Ints, n_threads: int = 1, weights: Floats | None = None) -> Self:
        """Sort the rows by class; ``codes`` has one code per row, and each of 0 … C − 1 occurs.

        Rows of weight 0 belong to no class; each class has others.
        """
        coordinates, radii = Coordinates.with_radii(rows, n_threads, weights)
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        if weights is not None:
            members = [rows_of[weights[rows_of] > 0] for rows_of in members]
        # Summed in an order that depends on the rows alone.
        ascending = [of_class[np.argsort(radii[of_class], kind="stable")] for of_class in members]
        means = [
            np.average(radii[of_class], weights=None if weights is None else weights[of_class])
            for of_class in ascending
        ]
        order = np.argsort(means, kind="stable")
        return cls(rows, coordinates, order, [members[code] for code in order], radii, weights)

    def __len__(self) -> int:
        return len(self.members)

    def fingerprint_parts(self) -> list[Floats | Ints]:
        """Numbers that identify these rows and classes; computing them reads all rows."""
        checksums = np.array([rows.checksum() for rows in self.classes])
        weights = [] if self.row_weights is None else [self.row_weights]
        return [self.radii, checksums, self.codes, self.sizes, *self.members, *weights]

    def hold_out(self, fraction: float, generator: np.random.Generator) -> tuple[Self, Ints]:
        """Hold out a share of every class, never all of it: what remains, and the held-out rows."""
        kept, held_out = [], []
        for members, rows in zip(self.members, self.classes, strict=True):
            n_out = min(len(members) - 1, round(fraction * len(members)))
            out = np.zeros(len(members), dtype=bool)
            out[rows.drawing_order[generator.choice(len(members), size=n_out, replace=False)]] = (
                True
            )
            kept.append(members[~out])
            held_out.append(members[out])
        remaining = type(self)(
            self._rows, self.coordinates, self.codes, kept, self.radii, self.row_weights
        )
        return remaining, np.concatenate(held_out)

    def first_latents(
        self, starts: Sequence[Ints], class_starts: Ints, n_threads: int
    ) -> LatentsUpdate:
        """See ``Population``."""
        found = parallel_map(
            lambda given: latents_near(given[0], given[0].drawing_order[given[1]]),
            list(zip(self.classes, starts, strict=True)),
            n_threads,
        )
        latents = np.concatenate(found)
        return LatentsUpdate(latents, np.zeros(len(self)), np.zeros(len(latents)), passes=0)

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int,
    ) -> LatentsUpdate:  # fmt: skip
        """See ``Population``; one thread per class, the largest first."""
        moved, counts = np.empty_like(latents), np.empty(len(latents))
        spreads, passes = np.empty(len(self)), np.empty(len(self), dtype=np.intp)

        def move(position: int) -> None:
            own = slice(class_starts[position], class_starts[position + 1])
            of_class = self.classes[position]
            with of_class.cached():
                settled = settle(of_class, latents[own], metric, latent_reg, max_passes)
            moved[own], counts[own] = settled.latents, settled.counts
            spreads[position], passes[position] = settled.spread, settled.passes

        parallel_map(move, _largest_first(self.classes), n_threads)
        return LatentsUpdate(moved, spreads, counts, int(passes.max()))

    @lazy_property
    def _drawn(self) -> Ints:
        """The row of every drawing number."""
        each = zip(self.members, self.classes, strict=True)
        return np.concatenate([members[rows.drawing_order] for members, rows in each])

    @lazy_property
    def weights(self) -> Floats | None:
        """See ``Population``."""
        return None if self.row_weights is None else self.row_weights[self._drawn]

    def sample(self, numbers: Ints) -> Floats:
        """See ``Population``."""
        return self.inner[self._drawn[numbers]]

    def nearby(self, latent_points: LatentPoints, n_threads: int) -> Nearby:
        """See ``Population``."""
        return nearby_of_classes(self.classes, range(len(self)), latent_points, n_threads)

    def gradient(self, numbers: Ints, batch: Batch, start: Start, n_threads: int) -> Gradient:
        """See ``Population``; the rows are divided in the same way whatever the threads."""
        n_chunks = CHUNKS if len(numbers) * self.n_features >= CHUNKED_NUMBERS else 1
        chunks = list(row_blocks(len(numbers), 1, -(-len(numbers) // n_chunks)))

        def of_chunk(chunk: slice) -> Gradient:
            part = batch.part(chunk)
            return gradient(start.transform(self._moved(numbers[chunk], part)), part)

        return reduce(add, parallel_map(of_chunk, chunks, n_threads))

    def _moved(self, numbers: Ints, batch: Batch) -> Floats:
        """Inner rows, each moved by a part of the difference of its siblings."""
        rows = self.sample(numbers)
        if batch.siblings is None:
            return rows
        first, second = (numbers[:, None] + batch.siblings).T
        apart = self.sample(first)
        apart -= self.sample(second)
        apart *= rows.dtype.type(DISTORTION)
        apart += rows
        return apart


def nearby_of_classes(
    classes: Sequence[OneClass],
    positions: Sequence[int],
    latent_points: LatentPoints,
    n_threads: int,
) -> Nearby:
    """The latent examples near the rows of these classes, one class after the other."""
    order = _largest_first(classes)
    found = parallel_map(
        lambda index: nearby_of(classes[index], positions[index], latent_points), order, n_threads
    )
    parts = [part for _, part in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]
    return Nearby(
        *(np.concatenate([getattr(part, of.name) for part in parts]) for of in fields(Nearby))
    )


def _largest_first(classes: Sequence[OneClass]) -> list[int]:
    """The order in which threads take classes, so that none is left alone with a large one."""
    return sorted(range(len(classes)), key=lambda index: -len(classes[index]))
