"""One pass of the refinement over the rows, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from latentmetric.core.likelihood import stretches
from latentmetric.core.nearby import Landscape, list_neighbors
from latentmetric.core.parallel import blas_threads
from latentmetric.core.population import Population
from latentmetric.core.refinement import (
    CERTAIN,
    Adam,
    Batch,
    Gradient,
    Moments,
    cosine,
    draw_batches,
    preimages,
    visit_of,
)
from latentmetric.core.starts import Start
from latentmetric.core.types import Floats, Ints

STRONGEST_PULL = 1e9
"""A stronger pull would hold the points no better, and its square overflows in float32."""


@dataclass(frozen=True)
class Plan:
    """The parameters of the refinement."""

    n_passes: int
    latent_reg: float
    """Pull of every point towards where the pass found it, as a number of rows."""
    exponent: float
    """The power of P(y | x) that weights the gradient of a row."""
    n_threads: int


@dataclass(frozen=True)
class Refined:
    """The result of a pass."""

    components: Floats
    """The factor of the metric, in the coordinates of the start."""
    latents: Floats
    spreads: Floats
    """E[D²(x, z)] of every class, before the pass."""
    counts: Floats
    """Rows of each latent example, before the pass."""
    moments: Moments
    active_share: float
    """The share of rows whose labels were not certain."""


def refine(
    rows: Population, start: Start, components: Floats, latents: Floats, class_starts: Ints,
    counts: Floats, temperature: float, moments: Moments, done: int, plan: Plan,
    generator: np.random.Generator,
) -> Refined:  # fmt: skip
    """One pass over the rows, in batches, after ``done`` passes.

    ``counts`` are the rows of every latent example, before.
    """
    inner = start.fold(components)
    points = latents @ inner.T
    lists = list_neighbors(points, class_starts, plan.n_threads)
    visit = visit_of(int(rows.sizes.sum()), done)
    land = Landscape(inner, points, class_starts, lists, counts, temperature, visit)
    batches = _Batches(rows, land, plan)
    nearby, adam = batches.nearby, Adam(components, points, moments)
    del inner, points, lists, land
    steps = draw_batches(len(nearby.own), moments.reach, generator)
    with blas_threads(1):  # steps are many and short: threads of BLAS would wait for each other
        for number, drawn in enumerate(steps):
            active = drawn[nearby.likelihood[drawn] < CERTAIN]
            if not len(active):
                continue
            numbers, which, batch = batches.of(active, adam)
            found = rows.gradient(numbers, batch, start, plan.n_threads)
            pulled = batches.pull(found.points, adam.points, which, len(drawn))
            mean = Gradient(found.components / len(drawn), pulled / len(drawn))
            adam.step(mean, which, cosine((done + number / len(steps)) / plan.n_passes))
    return Refined(
        adam.components, _moved(latents, start, adam), nearby.spreads, batches.counts,
        adam.moments, float(np.mean(nearby.likelihood < CERTAIN)),
    )  # fmt: skip


def _moved(latents: Floats, start: Start, adam: Adam) -> Floats:
    """The latent examples that lie at the points.

    They are found in the coordinates of the start, where units do not matter, so that no direction
    is neglected.
    """
    inside = start.into(latents)
    moves = preimages(inside, adam.components, adam.points)
    moves -= inside
    del inside
    moved = start.out_of(moves)
    moved += latents
    return moved


def shortened(refined: Refined, temperature: float, factor: float) -> tuple[Refined, float]:
    """The same with distances multiplied by a number; no vote of the kernel changes."""
    if factor == 1:
        return refined, temperature
    same = refined.components.dtype.type(factor)
    moments = refined.moments.scaled(float(same))
    components = refined.components * same
    return replace(refined, components=components, moments=moments), temperature * float(same) ** 2


class _Batches:
    """Builds the batches of one pass."""

    def __init__(self, rows: Population, land: Landscape, plan: Plan) -> None:
        self._plan, self._temperature = plan, land.temperature
        self._class_starts = land.class_starts
        self._points = land.points if plan.latent_reg else None
        self._ends = np.cumsum(rows.sizes)
        self.nearby, self.counts = rows.nearby(land, plan.n_threads), land.counts
        self._numbers = land.visit.numbers(rows.sizes)
        self._weights = None if rows.weights is None else rows.weights[self._numbers]
        if land.visit.stride == 1:
            own = self.nearby.own
            counts = np.bincount(own, self._weights, minlength=len(land.points))
            self.counts = counts.astype(np.float64)

    def of(self, visited: Ints, adam: Adam) -> tuple[Ints, Ints, Batch]:
        """The drawing numbers of these rows, the latent examples near them, and the batch."""
        numbers = self._numbers[visited]
        near, own = self.nearby.near[visited], self.nearby.own[visited]
        positions = np.searchsorted(self._ends, numbers, side="right")
        first, end = self._class_starts[positions], self._class_starts[positions + 1]
        same = (near >= first[:, None]) & (near < end[:, None])
        weights = None if self._weights is None else self._weights[visited]
        left_out = stretches(self.counts[own], 1 if weights is None else weights)
        own_stretch = left_out.astype(self.nearby.likelihood.dtype)[:, None]
        stretch = np.where(near == own[:, None], own_stretch, own_stretch.dtype.type(1))
        which, places = np.unique(near, return_inverse=True)
        return numbers, which, Batch(
            adam.components, adam.points[which], places.reshape(near.shape), same, stretch,
            self._temperature, self._plan.exponent, weights,
        )  # fmt: skip

    def pull(self, slopes: Floats, points: Floats, which: Ints, n_rows: int) -> Floats:
        """Add the pull towards the start of the pass to the slopes of some of the points."""
        if self._points is None:
            return slopes
        share = 2 * self._plan.latent_reg * n_rows / len(self._numbers) / self._temperature
        pull = slopes.dtype.type(min(share, STRONGEST_PULL))
        return slopes + pull * (points[which] - self._points[which])
