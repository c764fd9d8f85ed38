"""Latent examples of a class that is new or gains rows, with the metric held fixed.

Alg. 1 treats every class on its own, so nothing else changes. It runs on the rows under the metric,
where distances are Euclidean. Each latent example is a weighted mean of rows, and the same weights
give its place among the features. A latent example that already stands for c rows counts as c rows
at its place, so that it moves as the mean of all its rows does.

The mean of c rows lies off the place it estimates by a squared distance of E[D²(x, z)]/c in the
mean, and rows are farther from it by as much. Where rows join latent examples that stand for
others, this is subtracted before the nearest one is chosen. Otherwise latent examples of few rows
would gain hardly any, and those of many rows nearly all, the more so the more features there are.

Time O(n·m·r) a pass for n rows, m latent examples and a metric of rank r. Memory: copies of the
rows and of the latent examples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from latentmetric.core.classes import OneClass
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import (
    References,
    k_nearest,
    paired_squared_distances,
    search,
    squared_norms,
)
from latentmetric.core.latents import draw_starts, latents_near, rows_to_start_at, settle
from latentmetric.core.metric import Metric
from latentmetric.core.types import Floats, Ints


@dataclass(frozen=True)
class Growth:
    """The parameters of Alg. 1 for rows that arrive after a fit."""

    init: str
    """How the latent examples of a new class are placed first."""
    latent_reg: float
    max_passes: int
    forget: float = 1.0
    """What the rows so far are multiplied by: below 1, new rows weigh more than old ones."""


@dataclass(frozen=True)
class ClassLatents:
    """The latent examples of one class."""

    positions: Floats
    """In inner coordinates."""
    points: Floats
    """Under the metric."""
    counts: Floats
    """The rows that each of them stands for."""
    spread: float
    """E[D²(x, z)] of these rows."""

    @classmethod
    def none(cls, components: Floats) -> ClassLatents:
        """A class that has none yet."""
        rank, n_features = components.shape
        empty = np.empty((0, n_features), components.dtype), np.empty((0, rank), components.dtype)
        return cls(*empty, np.empty(0), 0.0)

    def __len__(self) -> int:
        return len(self.positions)


def grow(
    rows: Floats, components: Floats, latents: ClassLatents, n_latents: int, growth: Growth,
    generator: np.random.Generator, weights: Floats | None = None,
) -> ClassLatents:  # fmt: skip
    """The latent examples of a class with these inner rows added, up to ``n_latents`` of them.

    A row with a weight counts as so many rows.
    """
    points = rows @ components.T
    # Rows under the metric, as Alg. 1 takes them.
    unit, order = Coordinates(np.zeros(points.shape[1]), 1.0), squared_norms(points)
    inside = OneClass(
        InnerRows(points, unit), np.arange(len(points)), np.argsort(order, kind="stable"),
        weights=weights,
    )  # fmt: skip
    drawn = _draw_new_latents(inside, points, latents, n_latents, growth.init, generator)
    start = np.concatenate((latents.points, latents_near(inside, drawn)))
    before = growth.forget * np.concatenate((latents.counts, np.zeros(len(drawn))))
    if len(latents):
        assignment = _assign(points, weights, start, before, latents.spread, growth)
    else:
        identity = Metric(np.eye(points.shape[1], dtype=points.dtype))
        settled = settle(inside, start, identity, growth.latent_reg, growth.max_passes)
        assignment = settled.assignment
    counts = before + np.bincount(assignment, weights, minlength=len(start))
    positions = np.concatenate((latents.positions, rows[drawn]))
    _move(positions, rows, assignment, before, growth.latent_reg, weights)
    there = positions @ components.T
    squared = paired_squared_distances(points, there, assignment[:, None])[:, 0]
    spread = float(np.average(squared, weights=weights))
    old, new = float(growth.forget * latents.counts.sum()), inside.weight
    spread = (old * latents.spread + new * spread) / (old + new)
    # Where two equal rows found one each, the first of them gets both.
    kept = counts > 0 if len(latents) else slice(None)
    return ClassLatents(positions[kept], there[kept], counts[kept], spread)


def _assign(
    points: Floats, weights: Floats | None, start: Floats, before: Floats, spread: float,
    growth: Growth,
) -> Ints:  # fmt: skip
    """The latent example of each row that joins others: Alg. 1 with D²(x, z) less spread/c."""
    centre = start.mean(axis=0, dtype=np.float64)
    points, start = points - centre, start - centre
    positions, counts = start, before
    assignment = np.full(len(points), -1)
    for _ in range(growth.max_passes):
        norms = squared_norms(positions) - spread / np.maximum(counts, 1)
        nearest = search(points, References(positions, norms), 1)[1][:, 0]
        if np.array_equal(nearest, assignment):
            break
        assignment = nearest
        counts = before + np.bincount(assignment, weights, minlength=len(positions))
        positions = start.copy()
        _move(positions, points, assignment, before, growth.latent_reg, weights)
    return assignment


def _draw_new_latents(
    inside: OneClass, points: Floats, latents: ClassLatents, n_latents: int, init: str,
    generator: np.random.Generator,
) -> Ints:  # fmt: skip
    """The rows at which new latent examples are placed.

    In a class that has latent examples, a row is drawn in proportion to its squared distance from
    the nearest of them, and to its weight.
    """
    n_new = max(0, min(n_latents - len(latents), len(points)))
    if not len(latents):
        weights = None if inside.weights is None else inside.weights[inside.drawing_order]
        size, count = np.array([len(points)]), np.array([n_new])
        [start] = draw_starts(size, count, init, generator, weights)
        return rows_to_start_at(inside, n_new, start)
    squared = k_nearest(points, References.of(latents.points), 1)[0][:, 0].astype(np.float64)
    costs = inside.weighted(squared, slice(None))
    n_new = min(n_new, int(np.count_nonzero(costs > 0)))
    if not n_new:
        return np.empty(0, dtype=np.intp)
    return generator.choice(len(points), size=n_new, replace=False, p=costs / costs.sum())


def _move(
    positions: Floats, rows: Floats, assignment: Ints, before: Floats, latent_reg: float,
    weights: Floats | None,
) -> None:  # fmt: skip
    """Eq. 6 among the features: each place and its new rows, as many as ``before`` and one each."""
    n_rows = len(rows)
    of_rows = np.ones(n_rows, rows.dtype) if weights is None else weights.astype(rows.dtype)
    belongs = csr_array((of_rows, assignment, np.arange(n_rows + 1)), (n_rows, len(positions)))
    sums: Floats = np.asarray(belongs.T @ rows)
    counts = np.bincount(assignment, weights, minlength=len(positions))
    gains = np.flatnonzero(counts)
    pull = (before[gains] + latent_reg)[:, None]
    moved = (pull * positions[gains] + sums[gains]) / (pull + counts[gains, None])
    positions[gains] = moved.astype(positions.dtype)
