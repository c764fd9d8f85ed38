"""Random triplets of rows, and the algorithms that learn from them: OASIS and HR-SGD.

A triplet takes time O(1), after O(n log n) once to sort n rows by class.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.steps import Record, Steps
from latentmetric.core.triplets import Triplets
from latentmetric.core.tuning import DRAWN_AT_ONCE
from latentmetric.core.types import Floats, Ints

Learn = Callable[[Any, InnerRows, Triplets, np.random.Generator], tuple[Floats, int]]
"""Changes a state by some triplets; returns the loss of each iteration, and how many moved it."""


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
        self._ranks = np.empty_like(self._by_class)
        self._ranks[self._by_class] = np.arange(len(codes))

    def draw(self, n_triplets: int, generator: np.random.Generator) -> Triplets:
        """Draw triplets independently of each other, with a margin of 1."""
        anchors = generator.integers(len(self._codes), size=n_triplets)
        classes = self._codes[anchors]
        sizes, starts = self._sizes[classes], self._starts[classes]
        # Draw among all but the excluded positions, then skip over these.
        own = generator.integers(np.maximum(sizes - 1, 1))
        own += (sizes > 1) & (own >= self._ranks[anchors] - starts)
        other = generator.integers(len(self._codes) - sizes)
        other += np.where(other >= starts, sizes, 0)
        return Triplets(
            anchors, self._by_class[starts + own], self._by_class[other], np.ones(n_triplets)
        )


def first_record() -> Record:
    """The record of the start."""
    return {"round": 0, "iterations": 0, "seconds": {}}


def steps_of(
    learn: Learn, start: Any, matrix_of: Callable[[Any], Floats], rows: InnerRows, codes: Ints,
    n_triplets: int, n_parts: int, batch_size: int = 1,
) -> Steps[Any]:  # fmt: skip
    """An algorithm on whole batches of random triplets, in ``n_parts`` steps of nearly equal size.

    It sees the rows with a mean squared norm of 1 instead of d, so that a margin of 1 means
    something. ``matrix_of`` gives what a state has learned.
    """
    centre, scale = rows.coordinates.centre, rows.coordinates.scale
    unit_rows = InnerRows(rows.rows, Coordinates(centre, scale * sqrt(rows.n_features)))
    draw = RandomTriplets(codes).draw
    ends = np.linspace(0, n_triplets // batch_size, n_parts + 1).astype(int).tolist()
    at_once = max(1, DRAWN_AT_ONCE // batch_size)

    def next_step(before: Any, generator: np.random.Generator) -> Any:
        since, number = perf_counter(), before.record["round"]
        state, total, n_active = deepcopy(before), 0.0, 0
        first, end = ends[number], ends[number + 1]
        for done in range(first, end, at_once):
            triplets = draw(min(at_once, end - done) * batch_size, generator)
            losses, active = learn(state, unit_rows, triplets, generator)
            total += float(losses.sum())
            n_active += active
        state.record = {
            "round": number + 1,
            "iterations": end,
            "objective": total / (end - first),
            "active_share": n_active / (end - first),
            "norm": float(np.linalg.norm(matrix_of(state))),
            "seconds": {"metric": perf_counter() - since},
        }
        return state

    return Steps(lambda generator: start, next_step, n_parts, type(start))
