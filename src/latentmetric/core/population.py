"""Alg. 1 for all classes, in this process or wherever their rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from latentmetric.core.classes import ClassRows, OneClass
from latentmetric.core.coordinates import Coordinates
from latentmetric.core.latents import first_latents, settle
from latentmetric.core.metric import Metric
from latentmetric.core.parallel import for_each
from latentmetric.core.types import Floats, Ints


@dataclass(frozen=True)
class Moved:
    """The latent examples of some classes after Alg. 1."""

    latents: Floats
    spreads: Floats
    """E[D²(x, z)] of every class under the metric."""
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


class LocalPopulation(ClassRows):
    """Rows that this process can read."""

    def first_latents(
        self, starts: Sequence[Ints | int], class_starts: Ints, n_threads: int
    ) -> Moved:
        """See ``Population``."""
        latents = first_latents_of(self.classes, starts, class_starts, n_threads)
        return Moved(latents, np.zeros(len(self)), passes=0)

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int, lineage: object = None,
    ) -> Moved:  # fmt: skip
        """See ``Population``."""
        return move_latents_of(
            self.classes, latents, class_starts, metric, latent_reg, max_passes, n_threads
        )


def first_latents_of(
    classes: Sequence[OneClass], starts: Sequence[Ints | int], class_starts: Ints, n_threads: int
) -> Floats:
    """The first latent examples of these classes, one class after the other."""
    places: list[Floats] = [np.empty(0)] * len(classes)

    def start(position: int) -> None:
        count = int(class_starts[position + 1] - class_starts[position])
        places[position] = first_latents(classes[position], count, starts[position])

    for_each(start, range(len(classes)), n_threads)
    return np.concatenate(places)


def move_latents_of(
    classes: Sequence[OneClass], latents: Floats, class_starts: Ints, metric: Metric,
    latent_reg: float, max_passes: int, n_threads: int,
) -> Moved:  # fmt: skip
    """Alg. 1 for these classes, one thread per class, the largest first."""
    moved = np.empty_like(latents)
    spreads = np.empty(len(classes))
    passes = np.empty(len(classes), dtype=np.intp)

    def move(position: int) -> None:
        own = slice(class_starts[position], class_starts[position + 1])
        of_class = classes[position]
        with of_class.cached():
            settled = settle(of_class, latents[own], metric, latent_reg, max_passes)
        moved[own] = settled.latents
        spreads[position], passes[position] = settled.spread, settled.passes

    largest_first = np.argsort([-len(of_class) for of_class in classes], kind="stable")
    for_each(move, largest_first.tolist(), n_threads)
    return Moved(moved, spreads, int(passes.max()))
