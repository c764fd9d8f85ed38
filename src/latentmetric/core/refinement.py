"""Refinement: make the labels of the rows likelier under the kernel vote of the latent examples.

The paper's model, rows that are latent examples plus distortion, is a mixture: with Gaussian
distortion of covariance proportional to M⁻¹, the classes of a row x are distributed as the kernel
vote says,

    P(c | x) ∝ Σ exp(−D²(x, z) / T) over the latent examples z of class c.

The rounds of Alg. 3 place z and M by margins between latent examples. Refinement starts from there
and minimises the mean of −log P(y | x) over the rows, in the factor L of the metric and in the
points u = Lz together. All that the gradient needs is W = ∂(−log P)/∂D² = (q − p)/T, where p are
the responsibilities of all latent examples for a row, and q those among its class:

    ∂/∂Lx = 2 Σ_z W (Lx − u),   ∂/∂u = −2 Σ_x W (Lx − u),   ∂/∂L = Σ_x (∂/∂Lx) xᵀ.

Because points are learned, not latent examples, a step maps only the rows of its batch. At the
end of a pass, each latent example moves as little as it must to lie at its point.

A row is left out of its own latent example, which as a mean that contains the row is too near. The
steps do not depend on the axes: Adam with one second moment for the factor and one for each point.
Only latent examples near a row take part, and only rows whose label is not yet certain.

Latent examples may be in several sets. Each set then classifies the rows alone, and the losses are
added up; the factor and the rows of a step are the same for all.

In each step, a row is moved by a part of the difference of two other rows of its class that share
a latent example: a distortion as the rows show it. So neither the factor nor the points can suit
single rows, and T can be lower.

Time per pass O(n·d·r) to map the n rows it visits and for the gradient of the factor, O(n·K·r)
for their K near latent examples. Memory O(m·r + r·d), and K numbers per row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from latentmetric.core.distances import paired_squared_distances, row_blocks, squared_norms
from latentmetric.core.likelihood import leave_one_out_factors
from latentmetric.core.nearby import (
    LatentPoints,
    RowSubset,
    list_neighbors,
    responsibilities,
    rows_of_latents,
)
from latentmetric.core.starts import Start
from latentmetric.core.tuning import (
    BATCH,
    BATCHES,
    CACHED_BYTES,
    CERTAIN_LIKELIHOOD,
    FACTOR_RATE,
    FEWEST_STEPS,
    FIRST_DECAY,
    MIN_GRADIENT_SHARE,
    MOST_STEPS,
    POINT_RATE,
    PREIMAGE_RIDGE,
    SECOND_DECAY,
    SMALLEST_BATCH,
    USUAL_ROWS,
)
from latentmetric.core.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from latentmetric.core.population import Population

TINY = 1e-30
"""A bound for divisions."""

MAX_PULL = 1e9
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
    dense: bool = False
    """Whether all rows are refined at once; see ``quasi_newton``. Passes are then iterations."""
    ridge: float = 0.0
    """Holds the factor and the points where they started, if all rows are refined at once."""
    bandwidth: str = "shared"
    """Whose bandwidths are learned then; see ``quasi_newton.BANDWIDTHS``."""
    n_sets: int = 1
    """Sets of latent examples that are learned side by side; see ``sets``."""


@dataclass(frozen=True)
class Batch:
    """What the gradient of some rows needs, apart from the rows."""

    components: Floats
    points: Floats
    """The latent examples under the metric that are near one of the rows."""
    near: Ints
    """The near latent examples of every row, set by set, as numbers of ``points``."""
    same: Bools
    """Which of them have the label of the row."""
    stretch: Floats
    """Factors of the squared distances that leave the row out of its own latent example."""
    temperature: float
    exponent: float
    """The power of P(y | x) that weights the gradient of a row: 0 unless labels may be wrong."""
    weights: Floats | None = None
    """The weight of every row; None if each counts as one."""
    siblings: Ints | None = None
    """Two other rows of each row's class, as differences of drawing numbers, (n, 2).

    The row is moved by a part of their difference; None if rows stay as they are.
    """

    def part(self, which: Ints | slice) -> Batch:
        """The same points for some of the rows."""
        weights = None if self.weights is None else self.weights[which]
        siblings = None if self.siblings is None else self.siblings[which]
        return replace(
            self, near=self.near[which], same=self.same[which], stretch=self.stretch[which],
            weights=weights, siblings=siblings,
        )  # fmt: skip


@dataclass(frozen=True)
class Gradient:
    """The gradient of the sum of −log P(y | x) over some rows."""

    components: Floats
    points: Floats

    def __add__(self, other: Gradient) -> Gradient:
        return Gradient(self.components + other.components, self.points + other.points)


def gradient(rows: Floats, batch: Batch) -> Gradient:
    """The gradient of some rows, which are in the coordinates of the factor, summed over sets."""
    mapped, points = rows @ batch.components.T, batch.points
    near = batch.near.reshape(len(rows), -1)
    squared = paired_squared_distances(mapped, points, near).reshape(batch.near.shape)
    p, q, likelihood = responsibilities(squared * batch.stretch, batch.same, batch.temperature)
    trust = 2 * likelihood**batch.exponent / batch.temperature
    if batch.weights is not None:
        trust = trust * batch.weights[:, None]
    weights = (q - p) * batch.stretch * trust[:, :, None].astype(rows.dtype)
    weights = weights.reshape(near.shape)
    starts = np.arange(0, near.size + 1, near.shape[1])
    sparse = csr_array((weights.ravel(), near.ravel(), starts), (len(rows), len(points)))
    of_rows = weights.sum(axis=1)[:, None] * mapped - sparse @ points
    of_points: Floats = np.asarray(sparse.T @ mapped)
    sums: Floats = sparse.sum(axis=0)[:, None]
    for block in row_blocks(len(points), points[:1].nbytes, CACHED_BYTES):
        np.subtract(sums[block] * points[block], of_points[block], out=of_points[block])
    return Gradient(of_rows.T @ rows, of_points)


@dataclass(frozen=True)
class Moments:
    """Adam's moments of the gradients of the factor and of the points, and the steps so far."""

    factor: Floats
    factor_square: float
    points: Floats
    points_square: Floats
    points_steps: Ints
    n_steps: int
    unit: float
    """What the rates are multiplied by: how much the factor stretches rows, in the mean.

    A factor of low rank has fewer numbers to learn, and farther to go.
    """
    reach: float
    """What the rate of points is also multiplied by, and rows per step are divided by."""

    @classmethod
    def none(cls) -> Moments:
        """Before the refinement."""
        empty = np.empty((0, 0))
        return cls(empty, 0.0, empty, np.empty(0), np.empty(0, np.intp), 0, 1.0, 1.0)

    @classmethod
    def zero(cls, components: Floats, points: Floats, n_rows: int, n_sets: int = 1) -> Moments:
        """Before the first step of a refinement over so many rows."""
        n_points, dtype = len(points), points.dtype
        rank, n_features = components.shape
        unit = float(np.linalg.norm(components)) / sqrt(rank) * (n_features / rank) ** 0.25
        reach = sqrt(max(n_rows * n_sets / n_points / USUAL_ROWS, 1.0))
        return cls(
            np.zeros_like(components), 0.0, np.zeros_like(points), np.zeros(n_points, dtype),
            np.zeros(n_points, dtype=np.intp), 0, unit, reach,
        )  # fmt: skip

    def scaled(self, factor: float) -> Moments:
        """The moments if the factor of the metric is multiplied by a number."""
        return replace(
            self, factor=self.factor / factor, factor_square=self.factor_square / factor**2,
            points=self.points / factor, points_square=self.points_square / factor**2,
            unit=self.unit * factor,
        )  # fmt: skip


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
    generator: np.random.Generator, kept_out: Ints | None = None,
) -> Refined:  # fmt: skip
    """One pass over the rows, in batches, after ``done`` passes.

    ``counts`` are the rows of every latent example, before. Of very many rows a pass visits a part,
    and the next pass the next part. Rows with the drawing numbers ``kept_out`` teach nothing.
    """
    inner = start.fold(components)
    points = latents @ inner.T
    stride = -(-int(rows.sizes.sum()) // (BATCH * MOST_STEPS))
    lists = list_neighbors(points, class_starts, plan.n_threads, plan.n_sets)
    visit = RowSubset(stride, done % stride)
    latent_points = LatentPoints(
        inner, points, class_starts, lists, counts, temperature, visit, plan.n_sets
    )
    batches = _Batches(rows, latent_points, plan, generator)
    adam = Adam(components, points, moments)
    found = points if plan.latent_reg else None
    del inner, points, lists, latent_points
    likelihood = batches.nearby.likelihood
    if kept_out is not None:
        likelihood[np.isin(batches.numbers, kept_out)] = 1  # as if their labels were certain
    steps = draw_batches(len(likelihood), moments.reach, generator)
    for number, drawn in enumerate(steps):
        active = drawn[likelihood[drawn] < CERTAIN_LIKELIHOOD]
        if not len(active):
            continue
        numbers, which, batch = batches.of(active, adam)
        total = rows.gradient(numbers, batch, start, plan.n_threads)
        slopes, n_rows = total.points, len(drawn)
        if found is not None:
            share = 2 * plan.latent_reg * n_rows / len(likelihood) / temperature
            pull = slopes.dtype.type(min(share, MAX_PULL))
            slopes = slopes + pull * (adam.points[which] - found[which])
        rate = (1 + cos(pi * ((done + number / len(steps)) / plan.n_passes))) / 2
        adam.step(Gradient(total.components, slopes), which, rate, n_rows)
    moved = preimages(latents, start, adam.components, adam.points)
    return Refined(
        adam.components, moved, batches.nearby.spreads, batches.counts, adam.moments,
        float(np.mean(likelihood < CERTAIN_LIKELIHOOD)),
    )  # fmt: skip


def draw_batches(n_rows: int, reach: float, generator: np.random.Generator) -> list[Ints]:
    """The rows of each step of a pass: permutations of all rows, one after the other."""
    most = max(int(BATCH / reach), SMALLEST_BATCH, -(-n_rows // MOST_STEPS))
    size = min(max(n_rows // BATCHES, SMALLEST_BATCH), most, n_rows)
    n_steps = max(-(-n_rows // size), FEWEST_STEPS)
    n_orders = -(-size * n_steps // n_rows)
    order = np.concatenate([generator.permutation(n_rows) for _ in range(n_orders)])
    return [order[step * size : (step + 1) * size] for step in range(n_steps)]


class _Batches:
    """Builds the batches of one pass."""

    def __init__(
        self, rows: Population, latent_points: LatentPoints, plan: Plan,
        generator: np.random.Generator,
    ) -> None:  # fmt: skip
        self.nearby, self.counts = rows.nearby(latent_points, plan.n_threads), latent_points.counts
        self._temperature, self._exponent = latent_points.temperature, plan.exponent
        self._class_starts, self._ends = latent_points.class_starts, np.cumsum(rows.sizes)
        self.numbers = latent_points.visit.numbers(rows.sizes)
        self._weights = None if rows.weights is None else rows.weights[self.numbers]
        if latent_points.visit.stride == 1:
            self.counts = rows_of_latents(self.nearby.own, self._weights, len(self.counts))
        self._bounds = np.searchsorted(self.numbers, np.append(0, self._ends))
        self._pairs = self.numbers[pairs_of_latents(self.nearby.own[:, 0], generator)]
        self._generator = generator

    def of(self, visited: Ints, adam: Adam) -> tuple[Ints, Ints, Batch]:
        """The drawing numbers of these rows, the latent examples near them, and the batch."""
        numbers = self.numbers[visited]
        near, own = self.nearby.near[visited], self.nearby.own[visited]
        positions = np.searchsorted(self._ends, numbers, side="right")
        first, end = self._class_starts[positions], self._class_starts[positions + 1]
        same = (near >= first[:, None, None]) & (near < end[:, None, None])
        weights = None if self._weights is None else self._weights[visited]
        of_rows = 1 if weights is None else weights[:, None]
        left_out = leave_one_out_factors(self.counts[own], of_rows)[:, :, None]
        own_stretch = left_out.astype(self.nearby.likelihood.dtype)
        stretch = np.where(near == own[:, :, None], own_stretch, own_stretch.dtype.type(1))
        which, among = np.unique(near, return_inverse=True)
        begin, sizes = self._bounds[positions], np.diff(self._bounds)[positions]
        pairs = self._pairs[begin + self._generator.integers(sizes)]
        return numbers, which, Batch(
            adam.components, adam.points[which], among.reshape(near.shape), same, stretch,
            self._temperature, self._exponent, weights, pairs - numbers[:, None],
        )  # fmt: skip


def pairs_of_latents(own: Ints, generator: np.random.Generator) -> Ints:
    """Each row with another one of the same latent example, or itself if it is the only one.

    They are sorted by latent example, so that those of a class stand together.
    """
    order = np.lexsort((generator.random(len(own)), own))
    ascending = own[order]
    after = np.arange(1, len(own) + 1)
    last = np.flatnonzero(np.diff(ascending, append=-1))
    after[last] = np.searchsorted(ascending, ascending[last])
    return np.stack((order, order[after]), axis=1)


class Adam:
    """Steps of gradient descent from some moments on, in copies of the factor and the points."""

    def __init__(self, components: Floats, points: Floats, moments: Moments) -> None:
        self.components, self.points = components.copy(), points.copy()
        self.moments = replace(
            moments, factor=moments.factor.copy(), points=moments.points.copy(),
            points_square=moments.points_square.copy(), points_steps=moments.points_steps.copy(),
        )  # fmt: skip

    def step(self, found: Gradient, which: Ints, share: float, n_rows: int = 1) -> None:
        """Move the factor and these points by the slopes of some rows, at a share of the rates."""
        before, slope, dtype = self.moments, found.components, found.components.dtype
        n_steps, moment, of_slopes = before.n_steps + 1, before.factor, (1 - FIRST_DECAY) / n_rows
        moment *= dtype.type(FIRST_DECAY)
        moment += dtype.type(of_slopes) * slope
        square = before.factor_square
        square += (1 - SECOND_DECAY) * (float(np.vdot(slope, slope)) / n_rows**2 - square)
        root = sqrt(square / (1 - SECOND_DECAY**n_steps)) + TINY
        rate = FACTOR_RATE * share * (sqrt(len(self.components)) * before.unit)
        self.components -= dtype.type(rate / (1 - FIRST_DECAY**n_steps) / root) * moment
        moments = self.moments = replace(before, factor_square=square, n_steps=n_steps)
        # Points that are near no row of the batch stay, and so do their moments.
        slopes, rate = found.points, POINT_RATE * share * before.unit * before.reach
        moments.points_steps[which] += 1
        steps, squares = moments.points_steps[which], moments.points_square[which]
        mean = squared_norms(slopes) / dtype.type(slopes.shape[1] * n_rows**2)
        squares += dtype.type(1 - SECOND_DECAY) * (mean - squares)
        moments.points_square[which] = squares
        roots = np.sqrt(squares / (1 - SECOND_DECAY**steps)) + TINY
        roots = np.maximum(roots, MIN_GRADIENT_SHARE * roots.mean())
        length = (rate / (1 - FIRST_DECAY**steps) / roots).astype(dtype)
        for block in row_blocks(len(which), slopes[:1].nbytes, CACHED_BYTES):
            some = which[block]
            first = moments.points[some]
            first *= dtype.type(FIRST_DECAY)
            first += dtype.type(of_slopes) * slopes[block]
            moments.points[some] = first
            first *= length[block, None]
            self.points[some] -= first


def preimages(latents: Floats, start: Start, components: Floats, points: Floats) -> Floats:
    """The latent examples moved as little as possible so that they lie at these points."""
    # In the coordinates of the start units do not matter, so that no direction is neglected.
    gram = components.astype(np.float64) @ components.T
    gram += PREIMAGE_RIDGE * (np.trace(gram) / len(gram)) * np.eye(len(gram))
    back = start.inverse_transform(np.linalg.solve(gram, components)).astype(latents.dtype)
    away = latents @ start.fold(components).T
    np.subtract(points, away, out=away)
    moved: Floats = away @ back
    moved += latents
    return moved
