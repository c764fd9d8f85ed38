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

Time per pass O(n·d·r) to map the n rows it visits and for the gradient of the factor, O(n·K·r)
for their K near latent examples. Memory O(m·r + r·d), and K numbers per row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, pi, sqrt

import numpy as np
from scipy.sparse import csr_array

from latentmetric.core.distances import row_blocks, squared_norms
from latentmetric.core.nearby import Visit, responsibilities
from latentmetric.core.steps import check_arrays
from latentmetric.core.types import Bools, Floats, Ints

BATCH, SMALLEST_BATCH, BATCHES = 256, 16, 20
"""Rows per step: at most the first, at least the second, and in between one of so many batches."""

FEWEST_STEPS, MOST_STEPS = 134, 1_000
"""Steps of a pass: at least the first number, so it goes over few rows several times; at most the
second, so of very many rows it visits a part."""

FACTOR_RATE, POINT_RATE = 1e-2, 2e-2
"""Length of the first steps: of the factor, relative to its norm; of a point, for each of its
numbers, relative to how much the factor stretches in the mean."""

USUAL_ROWS = 10
"""Rows per latent example up to which points make steps of this length. Latent examples that stand
for more rows have farther to go: steps are longer by the root of the number, and more."""

FIRST_DECAY, SECOND_DECAY, TINY = 0.9, 0.999, 1e-30
"""Decay of the moments of gradients, and a bound for divisions."""

QUIET = 1e-3
"""Points whose gradients are below this share of the usual ones move less. Without this, gradients
whose squares are too small for float32 would be followed by steps without bound."""

CERTAIN = 0.99
"""Rows whose label is at least this likely at the start of a pass take no part in it."""

CACHED_BYTES = 2**18
"""Bytes of points that are moved at a time: few enough to stay in the cache of a core."""

PREIMAGE_RIDGE = 1e-4
"""Share of the mean eigenvalue of LLᵀ that is added to it when points are mapped back."""


@dataclass(frozen=True)
class Batch:
    """What the gradient of some rows needs, apart from the rows."""

    components: Floats
    points: Floats
    """The latent examples under the metric that are near one of the rows."""
    near: Ints
    """The near latent examples of every row, as numbers of ``points``."""
    same: Bools
    """Which of them have the label of the row."""
    stretch: Floats
    """Factors of the squared distances that leave the row out of its own latent example."""
    temperature: float
    exponent: float
    """The power of P(y | x) that weights the gradient of a row: 0 unless labels may be wrong."""
    weights: Floats | None = None
    """The weight of every row; None if each counts as one."""

    def part(self, which: Ints | slice) -> Batch:
        """The same points for some of the rows."""
        weights = None if self.weights is None else self.weights[which]
        return replace(
            self, near=self.near[which], same=self.same[which], stretch=self.stretch[which],
            weights=weights,
        )  # fmt: skip


@dataclass(frozen=True)
class Gradient:
    """The gradient of the sum of −log P(y | x) over some rows."""

    components: Floats
    points: Floats

    def __add__(self, other: Gradient) -> Gradient:
        return Gradient(self.components + other.components, self.points + other.points)


def gradient(rows: Floats, batch: Batch) -> Gradient:
    """The gradient of some rows, which are in the coordinates of the factor."""
    mapped, near = rows @ batch.components.T, batch.near
    squared = np.empty(near.shape, dtype=rows.dtype)
    for rank in range(near.shape[1]):
        away = batch.points[near[:, rank]]
        away -= mapped
        squared[:, rank] = squared_norms(away)
    p, q, likelihood = responsibilities(squared * batch.stretch, batch.same, batch.temperature)
    trust = 2 * likelihood**batch.exponent / batch.temperature
    if batch.weights is not None:
        trust = trust * batch.weights
    weights = (q - p) * batch.stretch * trust[:, None].astype(rows.dtype)
    starts = np.arange(0, near.size + 1, near.shape[1])
    sparse = csr_array((weights.ravel(), near.ravel(), starts), (len(rows), len(batch.points)))
    of_rows = weights.sum(axis=1)[:, None] * mapped - sparse @ batch.points
    of_points = sparse.sum(axis=0)[:, None] * batch.points
    of_points -= np.asarray(sparse.T @ mapped)
    return Gradient(of_rows.T @ rows, of_points)


def batch_size(n_rows: int, reach: float) -> int:
    """Rows per step; for ``reach`` see ``Moments``."""
    most = max(int(BATCH / reach), SMALLEST_BATCH, -(-n_rows // MOST_STEPS))
    return min(max(n_rows // BATCHES, SMALLEST_BATCH), most, n_rows)


def visit_of(n_rows: int, done: int) -> Visit:
    """The rows of the next pass: all, or of very many a part; the next part after each pass."""
    stride = -(-n_rows // (BATCH * MOST_STEPS))
    return Visit(stride, done % stride)


def draw_batches(n_rows: int, reach: float, generator: np.random.Generator) -> list[Ints]:
    """The rows of each step of a pass: permutations of all rows, one after the other."""
    size = batch_size(n_rows, reach)
    n_steps = max(-(-n_rows // size), FEWEST_STEPS)
    n_orders = -(-size * n_steps // n_rows)
    order = np.concatenate([generator.permutation(n_rows) for _ in range(n_orders)])
    return [order[step * size : (step + 1) * size] for step in range(n_steps)]


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
    """What the rates are multiplied by: how much the factor stretches, in the mean.

    A factor of low rank has fewer numbers to learn, and farther to go.
    """
    reach: float
    """What the rate of points is also multiplied by, and rows per step are divided by."""

    @classmethod
    def none(cls) -> Moments:
        """Before the refinement."""
        empty = np.empty((0, 0))
        return cls(empty, 0.0, empty, empty[:, :0].ravel(), np.empty(0, np.intp), 0, 1.0, 1.0)

    @classmethod
    def zero(cls, components: Floats, points: Floats, n_rows: int) -> Moments:
        """Before the first step of a refinement over so many rows."""
        n_points, dtype = len(points), points.dtype
        rank, n_features = components.shape
        unit = float(np.linalg.norm(components)) / sqrt(rank) * (n_features / rank) ** 0.25
        reach = sqrt(max(n_rows / n_points / USUAL_ROWS, 1.0))
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

    def check(self, shape: tuple[int, ...], n_points: int) -> None:
        """Raise ``ValueError`` unless they can belong to a factor of this shape and points."""
        check_arrays(shape, self.factor)
        check_arrays((n_points, shape[0]), self.points)
        check_arrays((n_points,), self.points_square, self.points_steps)
        if self.n_steps < 0 or (self.points_steps < 0).any():
            raise ValueError("its refinement made fewer than no steps")


class Adam:
    """Steps of gradient descent from some moments on, in copies of the factor and the points."""

    def __init__(self, components: Floats, points: Floats, moments: Moments) -> None:
        self.components, self.points = components.copy(), points.copy()
        self._factor, self._points = moments.factor.copy(), moments.points.copy()
        self._factor_square = moments.factor_square
        self._points_square = moments.points_square.copy()
        self._points_steps = moments.points_steps.copy()
        self._n_steps, self._unit, self._reach = moments.n_steps, moments.unit, moments.reach

    @property
    def moments(self) -> Moments:
        """The moments after the steps so far."""
        return Moments(
            self._factor, self._factor_square, self._points, self._points_square,
            self._points_steps, self._n_steps, self._unit, self._reach,
        )  # fmt: skip

    def step(self, found: Gradient, which: Ints, share: float) -> None:
        """Move the factor and these points; ``share`` is what is left of the rates."""
        length = sqrt(len(self.components)) * self._unit
        self._move_factor(found.components, FACTOR_RATE * share * length)
        self._move_points(found.points, which, POINT_RATE * share * self._unit * self._reach)

    def _move_factor(self, slope: Floats, rate: float) -> None:
        dtype = slope.dtype
        self._n_steps += 1
        self._factor *= dtype.type(FIRST_DECAY)
        self._factor += dtype.type(1 - FIRST_DECAY) * slope
        square = float(np.vdot(slope, slope))
        self._factor_square += (1 - SECOND_DECAY) * (square - self._factor_square)
        root = sqrt(self._factor_square / (1 - SECOND_DECAY**self._n_steps)) + TINY
        length = rate / (1 - FIRST_DECAY**self._n_steps) / root
        self.components -= dtype.type(length) * self._factor

    def _move_points(self, slopes: Floats, which: Ints, rate: float) -> None:
        """Points that are near no row of the batch stay, and so do their moments."""
        dtype = slopes.dtype
        self._points_steps[which] += 1
        steps, square = self._points_steps[which], self._points_square[which]
        mean = squared_norms(slopes) / dtype.type(slopes.shape[1])
        square += dtype.type(1 - SECOND_DECAY) * (mean - square)
        self._points_square[which] = square
        root = np.sqrt(square / (1 - SECOND_DECAY**steps)) + TINY
        root = np.maximum(root, QUIET * root.mean())
        length = (rate / (1 - FIRST_DECAY**steps) / root).astype(dtype)
        for block in row_blocks(len(which), slopes[:1].nbytes, CACHED_BYTES):
            some = which[block]
            first = self._points[some]
            change = slopes[block] - first
            change *= dtype.type(1 - FIRST_DECAY)
            first += change
            self._points[some] = first
            first *= length[block, None]
            self.points[some] -= first


def cosine(done: float) -> float:
    """The share of the rates that is left when this share of all steps is done."""
    return (1 + cos(pi * done)) / 2


def preimages(latents: Floats, components: Floats, points: Floats) -> Floats:
    """The latent examples moved as little as possible so that they lie at these points."""
    gram = components.astype(np.float64) @ components.T
    gram += PREIMAGE_RIDGE * (np.trace(gram) / len(gram)) * np.eye(len(gram))
    back: Floats = np.linalg.solve(gram, components).astype(latents.dtype)
    away = latents @ components.T
    np.subtract(points, away, out=away)
    moved: Floats = away @ back
    moved += latents
    return moved
