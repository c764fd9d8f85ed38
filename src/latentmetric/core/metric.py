"""Alg. 2 of the paper: learn the metric from active triplets, with the latent examples held fixed.

Stochastic gradient descent, one triplet per step, exactly as in the paper, but computed in blocks
of B steps at the speed of matrix products. Time O(S·d² + S·B·d) for S steps; memory a few d×d
matrices and B×B blocks. The caller projects the result to the PSD cone once, in O(d³).

Why blocks are exact: with M₀ the metric of the round before and A = Δq Δqᵀ − Δp Δpᵀ a triplet's
matrix, a step and its clip are

    M ← c · ((1 − 1/s) M + (1/s) M₀ + (1/(λ s)) [active] A),

so inside a block M = a·M₀ + b·N + Σ wᵢ Aᵢ with N fixed at the start of the block. A step needs
only ⟨A, M₀⟩, ⟨A, N⟩ and ⟨Aᵢ, Aⱼ⟩. For a whole block these come from a few products with the 2B
difference vectors; what remains for each step is arithmetic on the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt

import numpy as np
from scipy.linalg import lapack

from latentmetric.core.blas import add_squares, times_triangle
from latentmetric.core.parallel import background_thread, lazy_property
from latentmetric.core.triplets import DrawnTriplets, MeasuredTriplets
from latentmetric.core.tuning import STEPS_PER_BLOCK
from latentmetric.core.types import Floats

SMALLEST_SCALE = 1e-4
"""Below this scale, weights are rescaled: differences of sums in such units would lose digits."""


@dataclass(frozen=True)
class Metric:
    """M = componentsᵀ · components, with M itself cached in the forms that are used often."""

    components: Floats

    @lazy_property
    def matrix(self) -> Floats:
        """M."""
        return self.components.T @ self.components

    @lazy_property
    def packed(self) -> Floats:
        """M's triangle with off-diagonal entries doubled, for products with a packed matrix."""
        twice = 2 * self.matrix.astype(np.float64)
        np.fill_diagonal(twice, np.diagonal(self.matrix))
        return pack(twice)

    def squared_lengths(self, rows: Floats) -> Floats:
        """xᵀMx of every row."""
        lengths: Floats = np.einsum("ij,ij->i", rows @ self.matrix, rows)
        return np.maximum(lengths, 0, out=lengths)


def pack(symmetric: Floats) -> Floats:
    """One triangle of a symmetric matrix, as a vector."""
    to_packed = lapack.strttp if symmetric.dtype == np.float32 else lapack.dtrttp
    packed: Floats = to_packed(symmetric)[0]
    return packed


def learn_metric(
    latents: Floats,
    components: Floats,
    triplets: MeasuredTriplets | DrawnTriplets,
    metric_reg: float,
    max_norm: float,
    steps_per_block: int = STEPS_PER_BLOCK,
    n_threads: int = 1,
) -> Floats:
    """The average of the second half of Alg. 2's steps, before the projection to the PSD cone.

    ``triplets`` are those of the S steps, in order and with repeats, and their gaps are those
    under the metric of the round before, M₀ = componentsᵀ components. What does not depend on the
    metric learned so far, the next block and the average, is left to another thread if there is
    one; the result is the same, bit for bit.
    """
    n_steps, half = len(triplets), len(triplets) // 2
    start = components.T @ components
    start_norm = float(np.vdot(start, start))
    # M = start_share·M₀ + learned; the sum of the second half has three such parts, too.
    learned, start_share = _Triangle(np.zeros_like(start, order="F")), 1.0
    sum_of_triplets, sum_of_learned = (np.zeros_like(start, order="F") for _ in range(2))
    suffix, sum_of_start = _Triangle(sum_of_triplets), 0.0

    with background_thread(n_threads) as executor:
        upcoming = executor.submit(_Block.of, triplets, 0, steps_per_block, latents)
        adding = executor.submit(lambda: None)
        for first in range(0, n_steps, steps_per_block):
            block = upcoming.result()
            end = first + len(block.margins)
            if end < n_steps:
                upcoming = executor.submit(_Block.of, triplets, end, steps_per_block, latents)
            coefficients = _Coefficients(start_share, start_norm)
            on_learned, steps = learned.gaps(block.vectors), range(first + 1, end + 1)
            kept = first / end  # the product of all 1 − 1/s
            if max_norm < inf or kept < SMALLEST_SCALE:
                if max_norm < inf:
                    coefficients.measure(learned, start)
                coefficients.run(steps, half, block, on_learned.tolist(), metric_reg, max_norm)
            else:
                coefficients.run_unbounded(steps, half, block, on_learned, metric_reg)
            if end > half:
                adding.result()  # one block at a time, so that memory is bounded
                adding = executor.submit(
                    suffix.update, 1.0, coefficients.suffix_weights, block.vectors
                )
                sum_of_learned += start.dtype.type(coefficients.suffix_learned) * learned.entries
                sum_of_start += coefficients.suffix_start
            learned.update(coefficients.learned, coefficients.weights, block.vectors)
            start_share = coefficients.start
        adding.result()
    sum_of_triplets += sum_of_learned
    # The triangle that BLAS does not touch is stored as 0.
    average: Floats = sum_of_triplets + sum_of_triplets.T
    np.fill_diagonal(average, np.diagonal(sum_of_triplets))
    average = average + start.dtype.type(sum_of_start) * start
    average /= average.dtype.type(n_steps - half)
    return average


@dataclass(frozen=True)
class _Block:
    """What the steps of a block need to know of its triplets, whatever the metric has learned."""

    vectors: Floats
    """The differences to the impostors, then those to the targets."""
    margins: Floats
    on_start: Floats
    """⟨A, M₀⟩ of every triplet."""
    products: Floats
    """⟨Aᵢ, Aⱼ⟩, in float64."""

    @classmethod
    def of(
        cls, triplets: MeasuredTriplets | DrawnTriplets, first: int, size: int, latents: Floats
    ) -> _Block:
        block = triplets[first : first + size]
        n, vectors = len(block), np.concatenate(block.differences(latents))
        inner = vectors @ vectors.T
        squares = np.square(inner, out=inner)
        products: Floats = squares[:n, :n] + squares[n:, n:]
        products -= squares[n:, :n]
        products -= squares[:n, n:]
        margins, on_start = block.margins.astype(np.float64), block.gaps.astype(np.float64)
        return cls(vectors, margins, on_start, products.astype(np.float64, copy=False))


@dataclass
class _Coefficients:
    """M = start·M₀ + learned·N + Σ weightsᵢ Aᵢ through one block, and its sum over the suffix."""

    start: float
    start_norm: float
    """⟨M₀, M₀⟩."""
    squared_norm: float = 0.0
    with_start: float = 0.0
    """⟨M, M⟩ and ⟨M, M₀⟩; only a bound on the norm needs them."""
    learned: float = 1.0
    suffix_start: float = 0.0
    suffix_learned: float = 0.0
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    suffix_weights: Floats = field(default_factory=lambda: np.zeros(0))

    def measure(self, learned: _Triangle, start: Floats) -> None:
        """Set the inner products of M = start·M₀ + N, at the beginning of a block."""
        cross = learned.inner(start)
        of_start = self.start * self.start_norm
        self.squared_norm = self.start * (of_start + 2 * cross) + learned.squared_norm()
        self.with_start = of_start + cross

    def run(
        self, steps: range, suffix_after: int, block: _Block, on_learned: list[float],
        metric_reg: float, max_norm: float,
    ) -> None:  # fmt: skip
        """Alg. 2's loop on the coefficients, for the steps of a block, one after the other.

        A step shrinks all earlier weights by the same factor. So they are stored in units of the
        product of these factors, ``scale``; ``shrunk`` is the sum of ``scale`` over the suffix.
        Nothing here gives up Python's lock: taking it back takes longer than a step.
        """
        weights, since, suffix_weights, on_block = np.zeros((4, len(steps)))
        products, squared = list(block.products), np.diagonal(block.products).tolist()
        all_on_start, margins = block.on_start.tolist(), block.margins.tolist()
        start, learned, suffix_start, suffix_learned = self.start, self.learned, 0.0, 0.0
        norm, with_start, start_norm = self.squared_norm, self.with_start, self.start_norm
        scale, shrunk, largest = 1.0, 0.0, max_norm * max_norm
        for j, step in enumerate(steps):
            on_start = all_on_start[j]
            gap = start * on_start + learned * on_learned[j] + scale * on_block.item(j)
            pull, keep, rate = 1 / step, 1 - 1 / step, 0.0
            norm = keep * keep * norm + pull * (pull * start_norm + 2 * keep * with_start)
            with_start = keep * with_start + pull * start_norm
            start = keep * start + pull
            if gap < margins[j]:
                rate = 1 / (metric_reg * step)
                norm += rate * (rate * squared[j] + 2 * keep * gap + 2 * pull * on_start)
                with_start += rate * on_start
            if norm > largest:
                clip = max_norm / sqrt(norm)
                norm *= clip * clip
                with_start, start = clip * with_start, clip * start
                keep, rate = clip * keep, clip * rate
            learned *= keep
            scale *= keep
            if scale < SMALLEST_SCALE:
                suffix_weights += weights * (shrunk - since)
                weights *= scale
                on_block *= scale
                since[:] = shrunk = 0.0
                scale = 1.0
            if rate:
                weights[j], since[j] = rate / scale, shrunk
                on_block += (rate / scale) * products[j]
            if step > suffix_after:
                suffix_start += start
                suffix_learned += learned
                shrunk += scale
        self.start, self.learned = start, learned
        self.suffix_start, self.suffix_learned = suffix_start, suffix_learned
        self.suffix_weights = suffix_weights + weights * (shrunk - since)
        self.weights = scale * weights

    def run_unbounded(
        self, steps: range, suffix_after: int, block: _Block, on_learned: Floats, metric_reg: float
    ) -> None:
        """The same for all steps at once: no clip depends on what they learn.

        Only which triplets are active is unknown. Given that of the earlier triplets, the gap of
        each is known. So a guess is corrected until it agrees with the gaps it leads to: every time
        at least the first triplet where it was wrong is right from then on.
        """
        step = np.arange(steps.start, steps.stop, dtype=np.float64)
        keeps, start, suffix_start = 1 - 1 / step, self.start, 0.0
        shares: list[float] = []
        for number in steps:
            shares.append(start)
            start = (1 - 1 / number) * start + 1 / number
            suffix_start += start if number > suffix_after else 0.0
        scales = np.cumprod(keeps)
        before = np.concatenate(([1.0], scales[:-1]))
        full = 1 / (metric_reg * step) / scales
        alone = np.array(shares) * block.on_start + self.learned * before * on_learned
        among = before[:, None] * np.tril(block.products, -1)
        active = alone < block.margins
        while True:
            found = alone + among @ np.where(active, full, 0.0) < block.margins
            if np.array_equal(found, active):
                break
            active = found
        shrunk = np.cumsum(np.where(step > suffix_after, scales, 0.0))
        weights, since = np.where(active, full, 0.0), np.concatenate(([0.0], shrunk[:-1]))
        self.suffix_weights = weights * (shrunk[-1] - since)
        self.weights = scales[-1] * weights
        self.suffix_start, self.suffix_learned = suffix_start, self.learned * float(shrunk[-1])
        self.start, self.learned = start, self.learned * float(scales[-1])


@dataclass(frozen=True)
class _Triangle:
    """N = Σ wᵢ Aᵢ, a symmetric matrix of which only the triangle above the diagonal is stored."""

    entries: Floats
    """In Fortran's order."""

    def gaps(self, vectors: Floats) -> Floats:
        """⟨A, N⟩ for every triplet of a block; xᵀNx is 2 xᵀTx if T has half of N's diagonal."""
        diagonal: Floats = np.einsum("ii->i", self.entries)
        diagonal *= 0.5
        lengths = np.einsum("ij,ij->i", times_triangle(self.entries, vectors), vectors)
        diagonal *= 2
        far, near = np.split(2 * lengths, 2)
        difference: Floats = far - near
        return difference

    def update(self, share: float, weights: Floats, vectors: Floats) -> None:
        """N ← share·N + Σ wᵢ Aᵢ, from the triplets with positive weight."""
        carrying = np.flatnonzero(weights > 0)
        roots = np.sqrt(weights[carrying]).astype(vectors.dtype)[:, None]
        far, near = vectors[carrying] * roots, vectors[len(weights) + carrying] * roots
        add_squares(self.entries, far, 1.0, share)
        add_squares(self.entries, near, -1.0)

    def inner(self, symmetric: Floats) -> float:
        """⟨N, symmetric⟩."""
        on_diagonal = float(np.vdot(np.diagonal(self.entries), np.diagonal(symmetric)))
        return 2 * float(np.vdot(self.entries.T, symmetric)) - on_diagonal

    def squared_norm(self) -> float:
        """⟨N, N⟩."""
        return self.inner(self.entries.T)
