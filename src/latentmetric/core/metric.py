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

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from scipy.linalg import blas, lapack

from latentmetric.core.distances import row_blocks
from latentmetric.core.parallel import lazy_property
from latentmetric.core.triplets import Triplets
from latentmetric.core.tuning import STEPS_PER_BLOCK
from latentmetric.core.types import Floats, Ints

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

    @lazy_property
    def in_double(self) -> Metric:
        """The same metric in float64."""
        return Metric(self.components.astype(np.float64))

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
    latents: Floats, components: Floats, triplets: Triplets, gaps: Floats, drawn: Ints,
    metric_reg: float, max_norm: float, steps_per_block: int = STEPS_PER_BLOCK,
) -> Floats:  # fmt: skip
    """The average of the second half of Alg. 2's steps, before the projection to the PSD cone.

    ``gaps`` are those of the triplets under the metric of the round before, M₀ = componentsᵀ
    components. ``drawn`` has the triplet of each of the S steps.
    """
    n_steps, half = len(drawn), len(drawn) // 2
    start = components.T @ components
    start_norm = float(np.vdot(start, start))
    # M = start_share·M₀ + learned; the sum of the second half has three such parts, too.
    learned, sum_of_triplets, sum_of_learned = (np.zeros_like(start, order="F") for _ in range(3))
    start_share, sum_of_start = 1.0, 0.0
    for steps in row_blocks(n_steps, 1, steps_per_block):
        block, on_start = triplets[drawn[steps]], gaps[drawn[steps]].astype(np.float64)
        vectors = np.concatenate(block.differences(latents))  # to the impostors, to the targets
        norms = 0.0, 0.0, start_norm  # ⟨M, M⟩, ⟨M, M₀⟩ and ⟨M₀, M₀⟩; only a bound needs them
        if max_norm < inf:
            cross, of_start = _inner(learned, start), start_share * start_norm
            squared = start_share * (of_start + 2 * cross) + _inner(learned, learned.T)
            norms = squared, of_start + cross, start_norm
        now, suffix = _take_steps(
            _products(vectors), on_start.tolist(), _gaps(learned, vectors).tolist(),
            block.margins.tolist(), start_share, steps.start + 1, half, metric_reg, max_norm,
            *norms,
        )  # fmt: skip
        if steps.stop > half:
            _add(sum_of_triplets, 1.0, suffix.weights, vectors)
            sum_of_learned += start.dtype.type(suffix.learned) * learned
            sum_of_start += suffix.start
        _add(learned, now.learned, now.weights, vectors)
        start_share = now.start
    sum_of_triplets += sum_of_learned
    # The triangle that BLAS does not touch is stored as 0.
    average: Floats = sum_of_triplets + sum_of_triplets.T
    np.fill_diagonal(average, np.diagonal(sum_of_triplets))
    average = average + start.dtype.type(sum_of_start) * start
    average /= average.dtype.type(n_steps - half)
    return average


def _gaps(triangle: Floats, vectors: Floats) -> Floats:
    """⟨A, N⟩ for every triplet of a block; N is symmetric, and only its upper triangle is stored.

    xᵀNx is 2 xᵀTx if T has half of N's diagonal, and a triangle takes half the work of a product.
    """
    trmm = blas.get_blas_funcs("trmm", (triangle,))
    diagonal: Floats = np.einsum("ii->i", triangle)
    diagonal *= 0.5
    lengths = np.einsum("ij,ij->i", trmm(1.0, triangle, vectors.T).T, vectors)
    diagonal *= 2
    far, near = np.split(2 * lengths, 2)
    difference: Floats = far - near
    return difference


def _add(triangle: Floats, share: float, weights: Floats, vectors: Floats) -> None:
    """N ← share·N + Σ wᵢ Aᵢ in place, from the triplets with positive weight."""
    syrk = blas.get_blas_funcs("syrk", (triangle,))
    carrying = np.flatnonzero(weights > 0)
    roots = np.sqrt(weights[carrying]).astype(vectors.dtype)[:, None]
    far, near = vectors[carrying] * roots, vectors[len(weights) + carrying] * roots
    syrk(1.0, far.T, share, triangle, overwrite_c=True)
    syrk(-1.0, near.T, 1.0, triangle, overwrite_c=True)


def _inner(triangle: Floats, symmetric: Floats) -> float:
    """⟨N, symmetric⟩."""
    on_diagonal = float(np.vdot(np.diagonal(triangle), np.diagonal(symmetric)))
    return 2 * float(np.vdot(triangle.T, symmetric)) - on_diagonal


def _products(vectors: Floats) -> Floats:
    """⟨Aᵢ, Aⱼ⟩ of the triplets of a block, in float64."""
    inner, n = vectors @ vectors.T, len(vectors) // 2
    squares = np.square(inner, out=inner)
    products: Floats = squares[:n, :n] + squares[n:, n:]
    products -= squares[n:, :n]
    products -= squares[:n, n:]
    return products.astype(np.float64, copy=False)


@dataclass(frozen=True)
class _Coefficients:
    """M = start·M₀ + learned·N + Σ weightsᵢ Aᵢ, with N fixed at the start of a block."""

    start: float
    learned: float
    weights: Floats


def _take_steps(
    products: Floats, all_on_start: list[float], on_learned: list[float], margins: list[float],
    start: float, first: int, suffix_after: int, metric_reg: float, max_norm: float,
    norm: float, with_start: float, start_norm: float,
) -> tuple[_Coefficients, _Coefficients]:  # fmt: skip
    """Alg. 2's loop on the coefficients of M, and of its sum over the suffix, through one block.

    A step shrinks all earlier weights by the same factor. So they are stored in units of the
    product of these factors, ``scale``; ``shrunk`` is the sum of ``scale`` over the suffix.
    Nothing here gives up Python's lock: taking it back takes longer than a step.
    """
    weights, since, suffix_weights, on_block = np.zeros((4, len(margins)))
    rows_of_products, squared = list(products), np.diagonal(products).tolist()
    learned, suffix_start, suffix_learned = 1.0, 0.0, 0.0
    scale, shrunk, largest = 1.0, 0.0, max_norm * max_norm
    for j, on_start in enumerate(all_on_start):
        step = first + j
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
            on_block += (rate / scale) * rows_of_products[j]
        if step > suffix_after:
            suffix_start += start
            suffix_learned += learned
            shrunk += scale
    suffix_weights += weights * (shrunk - since)
    now = _Coefficients(start, learned, scale * weights)
    return now, _Coefficients(suffix_start, suffix_learned, suffix_weights)
