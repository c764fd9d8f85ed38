"""Latent examples of a class that is new or gains rows, with the metric held fixed.

Alg. 1 treats every class on its own, so nothing else changes. It runs on the rows under the metric,
where distances are Euclidean. Each latent example is a weighted mean of rows, and the same weights
give its place among the features. A latent example that already stands for c rows counts as c rows
at its place, so that it moves as the mean of all its rows does.

The mean of c rows lies off the place it estimates by a squared distance of E[D²(x, z)]/c in the
mean, and rows are farther from it by as much. Where rows join latent examples that stand for
others, this is subtracted before the nearest one is chosen. Otherwise latent examples of few rows
would gain hardly any, and those of many rows nearly all, the more so the more features there are.

The latent examples of a new class are then refined: they are shifted, all alike, to make the labels
of its rows likelier. The metric and the latent examples of other classes are held. The nearest of
these also stand in for the rows of their classes, which are not kept, so that the new ones do not
take over rows of others. Steps of each latent example on its own would take several times as long,
and suit the rows at hand more than others.

Time O(n·m·r) a pass for n rows, m latent examples and a metric of rank r; the refinement of a class
O(M·r + n·(m·(r + i) + r·i)) for M latent examples of others and i iterations. Memory: copies of the
rows, O(n·m) and O(M).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from latentmetric.core.classes import OneClass
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import (
    References,
    k_nearest,
    paired_squared_distances,
    search,
    squared_norms,
)
from latentmetric.core.latents import draw_starts, latents_near
from latentmetric.core.likelihood import leave_one_out_factors
from latentmetric.core.quasi_newton import lowest, squared_distances
from latentmetric.core.tuning import (
    FEWEST_REFINED_ROWS,
    LEAST_AWAY,
    MAX_REFINED_DISTANCES,
    MOST_STANDING,
    STAND_IN_SHARE,
    STAND_INS,
)
from latentmetric.core.types import Floats, Ints

SEEN_ROWS = 64
"""At least so many rows tell where the middle of a class is, or all."""

RANK_TOLERANCE = 1e-7
"""Gradients that differ by less than this share are equal within rounding."""


@dataclass(frozen=True)
class Growth:
    """The parameters of Alg. 1 for rows that arrive after a fit."""

    latent_reg: float
    max_passes: int
    forget: float = 1.0
    """What the rows so far are multiplied by: below 1, new rows weigh more than old ones."""
    n_iterations: int = 0
    """Of the refinement of a new class."""
    exponent: float = 0.0
    """The power of P(y | x) that weights the gradient of a row in it."""
    temperature: float = 0.0
    """Of the vote."""
    usual: float = 0.0
    """The mean squared distance of known rows to the nearest latent example."""

    @property
    def away(self) -> float:
        """How far known rows lie from latent examples, in units of T."""
        return self.usual / self.temperature if self.temperature > 0 else 0.0

    @property
    def stand_in_weight(self) -> float:
        """How many rows a stand-in counts as, of as many as its class has, in the loss.

        The farther rows lie from latent examples, in units of T, the fewer rows do these show.
        """
        return STAND_IN_SHARE * exp(min(self.away, log(MOST_STANDING / STAND_IN_SHARE)))


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
    rows: Floats, points: Floats, latents: ClassLatents, n_latents: int, growth: Growth,
    generator: np.random.Generator, weights: Floats | None = None,
) -> ClassLatents:  # fmt: skip
    """The latent examples of a class with these inner rows added, up to ``n_latents`` of them.

    ``points`` are the rows under the metric. A row with a weight counts as so many rows.
    """
    unit, order = Coordinates(np.zeros(points.shape[1]), 1.0), squared_norms(points)
    inside = OneClass(
        InnerRows(points, unit), np.arange(len(points)), np.argsort(order, kind="stable"),
        weights=weights,
    )  # fmt: skip
    drawn = _draw_new_latents(inside, points, latents, n_latents, generator)
    before = growth.forget * np.concatenate((latents.counts, np.zeros(len(drawn))))
    start = np.concatenate((latents.points, latents_near(inside, drawn)))
    assignment = _assign(points, weights, start, before, latents.spread, growth)
    counts = before + np.bincount(assignment, weights, minlength=len(start))
    places = np.concatenate((latents.positions, rows[drawn]))
    positions = _moved(places, rows, assignment, before, growth.latent_reg, weights)
    places = np.concatenate((latents.points, points[drawn]))
    there = _moved(places, points, assignment, before, growth.latent_reg, weights)
    squared = paired_squared_distances(points, there, assignment[:, None])[:, 0]
    spread = float(np.average(squared, weights=weights))
    old, new = float(growth.forget * latents.counts.sum()), inside.weight
    spread = (old * latents.spread + new * spread) / (old + new)
    # Where two equal rows found one each, the first of them gets both.
    kept = counts > 0
    return ClassLatents(positions[kept], there[kept], counts[kept], spread)


@dataclass(frozen=True)
class Standing:
    """Latent examples of classes other than a new one."""

    positions: Floats | InnerRows
    """In inner coordinates."""
    points: Floats
    """Under the metric."""
    votes: Floats
    """Their log bandwidths and log weights."""
    shares: Floats
    """Of the rows of its class that each of them stands for."""

    @classmethod
    def of(cls, latents: ClassLatents, votes: Floats) -> Standing:
        """Those of one class."""
        return cls(latents.positions, latents.points, votes, latents.counts / latents.counts.sum())

    def around(self, centre: Floats) -> Standing:
        """The same, with this point under the metric as the origin."""
        return replace(self, points=self.points - centre)


def refine_new(
    rows: Floats, points: Floats, latents: ClassLatents, votes: Floats, standing: list[Standing],
    growth: Growth, weights: Floats | None = None,
) -> ClassLatents:  # fmt: skip
    """The latent examples of a new class, all shifted alike to make its inner rows likelier.

    Those of others that are nearest vote, and stand in for their rows. ``points`` are the rows
    under the metric; ``votes`` are the log bandwidths and log weights of the new ones, which stay.
    So do the latent examples of a class of few rows, which say little about where it ends, or of
    too many for steps over all of them. And where rows are near in units of T, stand-ins say too
    little of where old classes end.
    """
    few, many = len(rows) < FEWEST_REFINED_ROWS, len(rows) * len(latents) > MAX_REFINED_DISTANCES
    if few or many or growth.away < LEAST_AWAY:
        return latents
    centre, inner_centre = _middle(points), _middle(rows)
    near = _nearest(standing, centre)
    loss = ShiftLoss(points - centre, latents.points - centre, near.around(centre), votes, growth,
                     weights)  # fmt: skip
    of_seen, of_latents = loss.shares(lowest(loss, np.zeros(len(centre)), growth.n_iterations))
    there = latents.points + (of_seen @ loss.seen - of_latents @ loss.latents)
    examples = np.concatenate((rows, near.positions[:])) - inner_centre
    moved = of_seen @ examples - of_latents @ (latents.positions - inner_centre)
    spread = float(np.average(squared_distances(points, there).min(axis=1), weights=weights))
    return ClassLatents(latents.positions + moved, there, latents.counts, spread)


class ShiftLoss:
    """The loss of the labels and its gradient, as functions of a shift of all latent examples.

    By a shift s, D²(x, z) changes by ‖s‖² − 2 s·(x − z): no distance is computed again. A row that
    is left out of its own latent example stays as much farther from it as it was before.
    """

    def __init__(
        self, points: Floats, latents: Floats, near: Standing, votes: Floats, growth: Growth,
        weights: Floats | None,
    ) -> None:  # fmt: skip
        n_rows, dtype = len(points), points.dtype
        self.seen, self.latents = np.concatenate((points, near.points)), latents
        squared = squared_distances(self.seen, latents)
        own = squared[:n_rows].argmin(axis=1)
        counts = np.bincount(own, weights, minlength=len(latents))
        factors = leave_one_out_factors(counts[own], 1 if weights is None else weights)
        squared[np.arange(n_rows), own] *= factors.astype(dtype)
        of_rows = np.ones(n_rows) if weights is None else weights
        # As if all classes had as many rows as the new one.
        of_rows = np.append(of_rows / of_rows.sum(), growth.stand_in_weight * near.shares)
        self._signs = np.repeat((1.0, -1.0), (n_rows, len(near.points)))
        self._weights, self._exponent = of_rows, growth.exponent
        self._scales = (np.exp(votes[0]) / growth.temperature).astype(dtype)
        self._exponents = votes[1].astype(dtype) - squared * self._scales
        scales = np.exp(near.votes[0]) / growth.temperature
        away = squared_distances(self.seen, near.points)
        self._others = logsumexp(near.votes[1] - away * scales, axis=1)
        self._pull = growth.latent_reg * len(latents) / (n_rows * growth.temperature)
        self._found: list[tuple[Floats, Floats]] = []

    def __call__(self, shift: Floats) -> tuple[float, Floats]:
        """The loss and its gradient at a shift."""
        by = shift.astype(self.seen.dtype)
        nearer = 2 * (self.seen @ by)[:, None] - (2 * (self.latents @ by) + by @ by)
        exponents = self._exponents + nearer * self._scales
        totals = logsumexp(exponents, axis=1)
        odds = self._signs * (totals - self._others)
        logs = -np.logaddexp(0, -odds)  # of P(y | x)
        trusted = np.exp(self._exponent * logs)
        losses = (1 - trusted) / self._exponent if self._exponent else -logs
        slopes = self._weights * self._signs * trusted * np.exp(-np.logaddexp(0, odds))
        shares = np.exp(exponents - totals[:, None])
        shares *= slopes.astype(shares.dtype)[:, None] * self._scales
        self._found.append((shares.sum(axis=1), shares.sum(axis=0)))
        of_seen, of_latents = self._found[-1]
        downhill = of_seen @ self.seen - of_latents @ self.latents - of_seen.sum() * by
        loss = float(self._weights @ losses) + self._pull * float(shift @ shift)
        return loss, 2 * (self._pull * shift - downhill)

    def shares(self, shift: Floats) -> tuple[Floats, Floats]:
        """A shift that steps along the gradients led to, as a sum of seen points less latents."""
        of_seen, of_latents = map(np.stack, zip(*self._found, strict=True))
        sums = (of_seen @ self.seen - of_latents @ self.latents).astype(np.float64)
        steps = np.linalg.lstsq(sums.T, shift, rcond=RANK_TOLERANCE)[0].astype(of_seen.dtype)
        return steps @ of_seen, steps @ of_latents


def _middle(rows: Floats) -> Floats:
    """The median of some of the rows: a row far away does not move it."""
    middle: Floats = np.median(rows[:: max(1, len(rows) // SEEN_ROWS)], axis=0)
    return middle


def _nearest(standing: list[Standing], centre: Floats) -> Standing:
    """Those that are nearest to the centre of a new class."""
    squared = [squared_distances(some.points, centre[None])[:, 0] for some in standing]
    order = np.argsort(np.concatenate(squared), kind="stable")[:STAND_INS]
    bounds = np.cumsum([0, *map(len, squared)])
    found = []
    for some, first, end in zip(standing, bounds, bounds[1:], strict=False):
        own = order[(order >= first) & (order < end)] - first
        found.append((some.positions[own], some.points[own], some.votes.T[own], some.shares[own]))
    positions, places, votes, shares = map(np.concatenate, zip(*found, strict=True))
    return Standing(positions, places, votes.T, shares)


def _assign(
    points: Floats, weights: Floats | None, start: Floats, before: Floats, spread: float,
    growth: Growth,
) -> Ints:  # fmt: skip
    """The latent example of each row that joins others: Alg. 1 with D²(x, z) less spread/c."""
    centre = start.mean(axis=0, dtype=np.float64).astype(start.dtype)
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
        positions = _moved(start, points, assignment, before, growth.latent_reg, weights)
    return assignment


def _draw_new_latents(
    inside: OneClass, points: Floats, latents: ClassLatents, n_latents: int,
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
        [start] = draw_starts(size, count, "random", generator, weights)
        return inside.drawing_order[start]
    squared = k_nearest(points, References.of(latents.points), 1)[0][:, 0].astype(np.float64)
    costs = inside.weighted(squared, slice(None))
    n_new = min(n_new, int(np.count_nonzero(costs > 0)))
    if not n_new:
        return np.empty(0, dtype=np.intp)
    return generator.choice(len(points), size=n_new, replace=False, p=costs / costs.sum())


def _moved(
    positions: Floats, rows: Floats, assignment: Ints, before: Floats, latent_reg: float,
    weights: Floats | None,
) -> Floats:  # fmt: skip
    """Eq. 6 among the features: each place and its new rows, as many as ``before`` and one each."""
    n_rows = len(rows)
    of_rows = np.ones(n_rows, rows.dtype) if weights is None else weights.astype(rows.dtype)
    belongs = csr_array((of_rows, assignment, np.arange(n_rows + 1)), (n_rows, len(positions)))
    sums: Floats = np.asarray(belongs.T @ rows)
    counts = np.bincount(assignment, weights, minlength=len(positions))
    gains = np.flatnonzero(counts)
    pull = (before[gains] + latent_reg)[:, None]
    moved = positions.copy()
    moved[gains] = (pull * positions[gains] + sums[gains]) / (pull + counts[gains, None])
    return moved
