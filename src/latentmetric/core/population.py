"""What the algorithms do with the rows, in this process or wherever the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from latentmetric.core.classes import ClassRows, OneClass
from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import row_blocks
from latentmetric.core.latents import first_rows, near_rows, settle
from latentmetric.core.lazy import lazy_property
from latentmetric.core.metric import Metric
from latentmetric.core.nearby import Landscape, Nearby, nearby_of
from latentmetric.core.parallel import for_each
from latentmetric.core.refinement import Batch, Gradient, gradient
from latentmetric.core.starts import Start
from latentmetric.core.tuning import CHUNKED_NUMBERS, CHUNKS
from latentmetric.core.types import Floats, Ints


@dataclass(frozen=True)
class Moved:
    """The latent examples of some classes after Alg. 1."""

    latents: Floats
    spreads: Floats
    """E[D²(x, z)] of every class under the metric."""
    counts: Floats
    """Rows of every latent example, or their weight."""
    passes: int
    """The largest number of passes that a class took."""
    lineage: object = None
    """Where the population keeps these latent examples for its next call; None if it does not."""


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
        self, starts: Sequence[Ints | int], class_starts: Ints, n_threads: int
    ) -> Moved:
        """Place the latent examples at their starts; ``starts`` come from ``draw_starts``."""

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int, lineage: object = None,
    ) -> Moved:  # fmt: skip
        """Alg. 1 for every class; ``lineage`` comes from the call that returned ``latents``."""

    def sample(self, numbers: Ints) -> Floats:
        """Inner rows by their drawing numbers: class by class, in each in its drawing order."""

    def nearby(self, land: Landscape, n_threads: int) -> Nearby:
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


class LocalPopulation(ClassRows):
    """Rows that this process can read."""

    def first_latents(
        self, starts: Sequence[Ints | int], class_starts: Ints, n_threads: int
    ) -> Moved:
        """See ``Population``."""
        latents = first_latents_of(self.classes, starts, class_starts, n_threads)
        return Moved(latents, np.zeros(len(self)), np.zeros(len(latents)), passes=0)

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int, lineage: object = None,
    ) -> Moved:  # fmt: skip
        """See ``Population``."""
        return move_latents_of(
            self.classes, latents, class_starts, metric, latent_reg, max_passes, n_threads
        )

    @lazy_property
    def _drawn(self) -> Ints:
        """The row of every drawing number."""
        return np.concatenate(
            [
                members[rows.drawing_order]
                for members, rows in zip(self.members, self.classes, strict=True)
            ]
        )

    @lazy_property
    def weights(self) -> Floats | None:
        """See ``Population``."""
        return None if self.row_weights is None else self.row_weights[self._drawn]

    def sample(self, numbers: Ints) -> Floats:
        """See ``Population``."""
        return self.inner[self._drawn[numbers]]

    def nearby(self, land: Landscape, n_threads: int) -> Nearby:
        """See ``Population``."""
        return nearby_of_classes(self.classes, range(len(self)), land, n_threads)

    def gradient(self, numbers: Ints, batch: Batch, start: Start, n_threads: int) -> Gradient:
        """See ``Population``; the rows are divided in the same way whatever the threads."""
        n_chunks = CHUNKS if len(numbers) * self.n_features >= CHUNKED_NUMBERS else 1
        chunks = list(row_blocks(len(numbers), 1, -(-len(numbers) // n_chunks)))

        def of_chunk(chunk: slice) -> Gradient:
            return gradient(start.into(self.sample(numbers[chunk])), batch.part(chunk))

        return reduce(add, for_each(of_chunk, chunks, n_threads))


def nearby_of_classes(
    classes: Sequence[OneClass], positions: Sequence[int], land: Landscape, n_threads: int
) -> Nearby:
    """The latent examples near the rows of these classes, one class after the other."""
    order = largest_first(classes)
    found = for_each(
        lambda index: nearby_of(classes[index], positions[index], land), order, n_threads
    )
    parts = dict(zip(order, found, strict=True))
    return Nearby.together([parts[index] for index in range(len(classes))])


def largest_first(classes: Sequence[OneClass]) -> list[int]:
    """The order in which threads take classes, so that none is left alone with a large one."""
    order: list[int] = np.argsort([-len(rows) for rows in classes], kind="stable").tolist()
    return order


def first_latents_of(
    classes: Sequence[OneClass], starts: Sequence[Ints | int], class_starts: Ints, n_threads: int
) -> Floats:
    """The first latent examples of these classes, one class after the other."""

    def first_latents(index: int) -> Floats:
        count = int(class_starts[index + 1] - class_starts[index])
        return near_rows(classes[index], first_rows(classes[index], count, starts[index]))

    return np.concatenate(for_each(first_latents, range(len(classes)), n_threads))


def move_latents_of(
    classes: Sequence[OneClass], latents: Floats, class_starts: Ints, metric: Metric,
    latent_reg: float, max_passes: int, n_threads: int,
) -> Moved:  # fmt: skip
    """Alg. 1 for these classes, one thread per class, the largest first."""
    moved = np.empty_like(latents)
    spreads = np.empty(len(classes))
    passes = np.empty(len(classes), dtype=np.intp)
    counts = np.empty(len(latents))

    def move(position: int) -> None:
        own = slice(class_starts[position], class_starts[position + 1])
        of_class = classes[position]
        with of_class.cached():
            settled = settle(of_class, latents[own], metric, latent_reg, max_passes)
        moved[own], counts[own] = settled.latents, settled.counts
        spreads[position], passes[position] = settled.spread, settled.passes

    for_each(move, largest_first(classes), n_threads)
    return Moved(moved, spreads, counts, int(passes.max()))
