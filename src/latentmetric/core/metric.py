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
from math import sqrt

import numpy as np
from scipy.linalg import get_blas_funcs, lapack

from latentmetric.core.distances import squared_norms
from latentmetric.core.lazy import lazy_property
from latentmetric.core.triplets import DrawnTriplets, Triplets
from latentmetric.core.types import Floats

STEPS_PER_BLOCK = 192

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
    points: Floats,
    components: Floats,
    triplets: Triplets | DrawnTriplets,
    metric_reg: float,
    max_norm: float,
    steps_per_block: int = STEPS_PER_BLOCK,
) -> Floats:
    """The average of the second half of Alg. 2's steps, before the projection to the PSD cone.

    ``triplets`` are those of the S steps, in order and with repeats. ``components`` is the factor
    of the metric of the round before, M₀ = componentsᵀ components, and ``points`` are the latent
    examples under it.
    """
    n_steps = len(triplets)
    start = components.T @ components
    start_norm = float(np.vdot(start, start))
    learned, suffix = _Triangle(start), _Triangle(start)
    start_share, suffix_start_share = 1.0, 0.0
    for first in range(0, n_steps, steps_per_block):
        block = triplets[first : first + steps_per_block]
        vectors = np.concatenate(block.differences(latents))
        cross = learned.inner(start)
        mixture = _Mixture(
            start_share,
            squared_norm=start_share * (start_share * start_norm + 2 * cross)
            + learned.squared_norm(),
            with_start=start_share * start_norm + cross,
            start_norm=start_norm,
        )
        mixture.run(
            range(first + 1, first + len(block) + 1),
            suffix_after=n_steps // 2,
            margins=block.margins.tolist(),
            on_start=gaps(*block.differences(points)).tolist(),
            on_learned=learned.gaps(vectors).tolist(),
            products=_triplet_products(vectors),
            metric_reg=metric_reg,
            max_norm=max_norm,
        )
        if first + len(block) > n_steps // 2:
            suffix.add(learned, mixture.suffix_learned)
            suffix.update(1.0, mixture.suffix_weights, vectors)
        learned.update(mixture.learned, mixture.weights, vectors)
        start_share = mixture.start
        suffix_start_share += mixture.suffix_start
    average: Floats = suffix.whole() + start.dtype.type(suffix_start_share) * start
    average /= average.dtype.type(n_steps - n_steps // 2)
    return average


@dataclass
class _Mixture:
    """M = start·M₀ + learned·N + Σ weightsᵢ Aᵢ through one block, and its sum over the suffix."""

    start: float
    squared_norm: float
    with_start: float
    start_norm: float
    learned: float = 1.0
    suffix_start: float = 0.0
    suffix_learned: float = 0.0
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    suffix_weights: Floats = field(default_factory=lambda: np.zeros(0))

    def run(
        self,
        steps: range,
        suffix_after: int,
        margins: list[float],
        on_start: list[float],
        on_learned: list[float],
        products: Floats,
        metric_reg: float,
        max_norm: float,
    ) -> None:
        """Alg. 2's loop, step by step, on the coefficients.

        A step shrinks all earlier weights by the same factor. So they are stored in units of the
        product of these factors, ``scale``; ``shrunk`` is the sum of ``scale`` over the suffix.
        """
        weights, since = np.zeros(len(steps)), np.zeros(len(steps))
        self.suffix_weights = np.zeros(len(steps))
        squared = np.diagonal(products).tolist()
        scale, shrunk = 1.0, 0.0
        for j, step in enumerate(steps):
            gap = self.start * on_start[j] + self.learned * on_learned[j]
            gap += scale * float(products[j, :j] @ weights[:j])
            rate = 1 / (metric_reg * step) if gap < margins[j] else 0.0
            keep, clip = self._move(1 / step, rate, gap, on_start[j], squared[j], max_norm)
            scale *= clip * keep
            if scale < SMALLEST_SCALE:
                self.suffix_weights += weights * (shrunk - since)
                weights *= scale
                since[:] = shrunk = 0.0
                scale = 1.0
            weights[j], since[j] = clip * rate / scale, shrunk
            if step > suffix_after:
                self.suffix_start += self.start
                self.suffix_learned += self.learned
                shrunk += scale
        self.suffix_weights += weights * (shrunk - since)
        self.weights = scale * weights

    def _move(
        self, pull: float, rate: float, gap: float, on_start: float, squared: float, max_norm: float
    ) -> tuple[float, float]:
        """One step; returns the factors by which the step and its clip shrink earlier weights."""
        keep = 1 - pull
        norm = keep * keep * self.squared_norm + pull * pull * self.start_norm
        norm += 2 * keep * pull * self.with_start
        norm += rate * (rate * squared + 2 * keep * gap + 2 * pull * on_start)
        clip = max_norm / sqrt(norm) if norm > max_norm * max_norm else 1.0
        self.squared_norm = norm * clip * clip
        self.with_start = clip * (keep * self.with_start + pull * self.start_norm + rate * on_start)
        self.start = clip * (keep * self.start + pull)
        self.learned *= clip * keep
        return keep, clip


def gaps(impostor: Floats, target: Floats) -> Floats:
    """⟨A, M⟩ = D²(o, q) − D²(o, p) from differences already under the metric."""
    return squared_norms(impostor) - squared_norms(target)


def _triplet_products(vectors: Floats) -> Floats:
    """⟨Aᵢ, Aⱼ⟩ for i ≥ j of a block, in float64, from the squared inner products of its vectors.

    The first half of ``vectors`` leads to the impostors, the second half to the targets. Do not
    read the other triangle of the result.
    """
    n = len(vectors) // 2
    (syrk,) = get_blas_funcs(("syrk",), (vectors,))
    inner = syrk(1.0, vectors.T, trans=True).T
    squares = np.square(inner, out=inner)
    crossed = squares[n:, :n]
    products = squares[:n, :n] + squares[n:, n:]
    products -= crossed
    products -= crossed.T
    in_double: Floats = products.astype(np.float64, copy=False)
    return in_double


class _Triangle:
    """N = Σ wᵢ Aᵢ, a symmetric matrix of which BLAS reads and writes one triangle."""

    def __init__(self, matrix: Floats) -> None:
        """Start with zeros, in the size and dtype of this matrix."""
        self._entries: Floats = np.zeros_like(matrix, order="F")
        self._syrk, self._symm = get_blas_funcs(("syrk", "symm"), (self._entries,))

    def gaps(self, vectors: Floats) -> Floats:
        """⟨A, N⟩ for every triplet of a block."""
        lengths = np.einsum("ij,ij->i", self._symm(1.0, self._entries, vectors.T).T, vectors)
        far, near = np.split(lengths, 2)
        difference: Floats = far - near
        return difference

    def update(self, share: float, weights: Floats, vectors: Floats) -> None:
        """N ← share·N + Σ wᵢ Aᵢ, from the triplets with positive weight."""
        carrying = np.flatnonzero(weights > 0)
        if not len(carrying):
            self._entries *= self._entries.dtype.type(share)
            return
        roots = np.sqrt(weights[carrying]).astype(vectors.dtype)[:, None]
        far, near = vectors[carrying] * roots, vectors[len(weights) + carrying] * roots
        self._entries = self._syrk(1.0, far.T, beta=share, c=self._entries, overwrite_c=True)
        self._entries = self._syrk(-1.0, near.T, beta=1.0, c=self._entries, overwrite_c=True)

    def add(self, other: _Triangle, share: float) -> None:
        """N ← N + share·other."""
        self._entries += other._entries.dtype.type(share) * other._entries

    def inner(self, symmetric: Floats) -> float:
        """⟨N, symmetric⟩."""
        on_diagonal = float(np.vdot(np.diagonal(self._entries), np.diagonal(symmetric)))
        return 2 * float(np.vdot(self._entries.T, symmetric)) - on_diagonal

    def squared_norm(self) -> float:
        """⟨N, N⟩."""
        return self.inner(self._entries.T)

    def whole(self) -> Floats:
        """The full matrix; the triangle that BLAS does not touch is stored as 0."""
        whole: Floats = self._entries + self._entries.T
        np.fill_diagonal(whole, np.diagonal(self._entries))
        return whole
