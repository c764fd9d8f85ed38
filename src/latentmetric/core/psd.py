"""Projection to the cone of PSD matrices: of one matrix, or of one that is updated many times.

``project_psd`` and ``psd_factor`` project once, by a full eigendecomposition; ``reduce_rank`` and
``most_discriminating`` go on to a lower rank, in O(m·r² + r³) for m latent examples under a metric
of rank r. ``PSDMatrix`` stays in the cone while each update removes a few directions from it.

The exact projection of a d×d matrix is a full eigendecomposition. But subtracting b rank-one parts
from a PSD matrix A gives N = A − V Vᵀ with at most b negative eigenvalues, and only these have to
be found. One Cholesky factor of A + εI shows how many there are, because N + εI has as many
negative eigenvalues as Vᵀ (A + εI)⁻¹ V has eigenvalues above 1. Their vectors solve
(A + |λ|) x = V c, so they are in the Krylov space of (A + εI)⁻¹ started from V, of which a few
blocks are enough. The count proves that none was missed.

Time O(d³/3 + d²·b) per update instead of about 10·d³, and O(d²·b) while a bound on the smallest
eigenvalue shows that the matrix is still in the cone; 4/3·d³ if the removed part is so large that
the Krylov space does not converge. Memory: one more d×d matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, qr

from latentmetric.core.tuning import OVERALL_SHARE, RIDGE, UNSTRUCTURED_SHARE, UPDATES_AHEAD
from latentmetric.core.types import Floats, Ints

NEGLIGIBLE = 1e-10
"""Eigenvalues above minus this share of the matrix's norm do not count as negative."""

RESIDUAL = 1e-7
"""The error allowed in the negative part, as a share of the matrix's norm."""

FEWEST_BLOCKS, MOST_BLOCKS = 5, 9
"""Blocks of the Krylov space before the first check, and before giving up."""

PROMISING = 1e-4
"""The error at a check, as a share of the matrix's norm, above which more blocks would not help."""


def project_psd(symmetric: Floats) -> tuple[Floats, Floats]:
    """The nearest PSD matrix: its positive eigenvalues, largest first, and vectors in rows."""
    values, vectors = eigh(symmetric, driver="evd", check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1].T
    kept = values > max(values[0], 0) * np.finfo(values.dtype).eps * len(values)
    return values[kept], vectors[kept]


def psd_factor(matrix: Floats) -> Floats:
    """L with LᵀL the PSD matrix nearest to ``matrix``, symmetric or not; one row per rank.

    A matrix without positive eigenvalues gives one row of zeros.
    """
    values, directions = project_psd((matrix + matrix.T) / 2)
    if not len(values):
        return np.zeros((1, len(matrix)), dtype=matrix.dtype)
    return np.sqrt(values)[:, None] * directions


def reduce_rank(components: Floats, latents: Floats, n_components: int | None) -> Floats:
    """The metric of this rank that keeps the latent examples' distances best.

    Where the latent examples leave a direction undecided, a small share of what structureless
    rows would add decides.
    """
    if n_components is None or n_components >= len(components):
        return components
    points = latents @ components.T
    points -= points.mean(axis=0)
    scatter, any_rows = points.T @ points, components @ components.T
    share = UNSTRUCTURED_SHARE * max(float(np.trace(scatter)), 1e-3) / float(np.trace(any_rows))
    _, directions = project_psd(scatter + scatter.dtype.type(share) * any_rows)
    return directions[:n_components] @ components


def most_discriminating(
    components: Floats, latents: Floats, class_starts: Ints, counts: Floats,
    rank: int | None,
) -> Floats:  # fmt: skip
    """The factor of a metric of at most this rank, for the refinement; None means no limit.

    Directions are ordered by how far the means of the classes are from each other relative to the
    spread within classes, as in linear discriminant analysis. C classes decide C − 1 directions;
    the overall spread decides the others. Latent examples are in the coordinates of the factor,
    class by class; ``counts`` are their rows.
    """
    if rank is None or rank >= len(components):
        return components
    points = (latents @ components.T).astype(np.float64)
    weights = np.where(counts > 0, counts, 1)
    weights = weights / weights.sum()
    of_class = np.add.reduceat(weights, class_starts[:-1])
    means = np.add.reduceat(points * weights[:, None], class_starts[:-1]) / of_class[:, None]
    away = points - np.repeat(means, np.diff(class_starts), axis=0)
    rounding = 8 * np.finfo(np.float64).eps * np.abs(points).max()
    away[np.abs(away) <= rounding] = 0  # as of a class with one latent example
    means -= of_class @ means
    within = (away * weights[:, None]).T @ away
    between = (means * of_class[:, None]).T @ means
    between += OVERALL_SHARE * (between + within)
    ridge = RIDGE * float(np.trace(within)) or float(np.trace(between)) or 1.0
    within[np.diag_indices_from(within)] += ridge / len(within)
    last = len(within) - 1
    _, directions = eigh(between, within, subset_by_index=(len(within) - rank, last))
    directions /= np.linalg.norm(directions, axis=0)
    chosen: Floats = directions[:, ::-1].T.astype(components.dtype) @ components
    return chosen


@dataclass
class PSDMatrix:
    """A symmetric matrix in float64 that every update leaves without negative eigenvalues."""

    matrix: Floats
    """PSD; updates change it in place."""
    floor: float = 0.0
    """A lower bound on the eigenvalues; below 0 it says nothing."""
    updates_ahead: int = UPDATES_AHEAD
    """How many updates the next bound should last; 0 means that no more are computed."""

    def update(self, added: Floats, removed: Floats) -> None:
        """Project M + addedᵀ added − removedᵀ removed to the cone; the vectors are rows."""
        signed = np.concatenate((added, -removed))
        self.matrix += signed.T @ np.concatenate((added, removed))
        if self._stays_inside(float(np.linalg.norm(removed @ removed.T, 2))):
            return
        values, vectors = negative_part(self.matrix, removed)
        self.matrix -= (vectors.T * values) @ vectors

    def update_by(self, added: Floats, removed: Floats) -> None:
        """Project M + added − removed to the cone, for PSD matrices of any rank."""
        self.matrix += added
        self.matrix -= removed
        if not self._stays_inside(float(np.linalg.norm(removed, 2))):
            values, vectors = all_negative(self.matrix)
            self.matrix -= (vectors.T * values) @ vectors

    def _stays_inside(self, drop: float) -> bool:
        """Whether no eigenvalue can be below 0 after an update that lowers none more than ``drop``.

        A used-up bound is replaced by a new one, which lasts for fewer updates the nearer the
        boundary is. A matrix that has reached the boundary seldom leaves it, so in the end no
        more bounds are computed.
        """
        self.floor -= drop
        while self.floor < 0 and self.updates_ahead:
            if _is_above(self.matrix, self.updates_ahead * drop):
                self.floor = self.updates_ahead * drop
            else:
                self.updates_ahead //= 4
        return self.floor >= 0


def negative_part(matrix: Floats, removed: Floats) -> tuple[Floats, Floats]:
    """The negative eigenvalues of A − removedᵀ removed and their vectors in rows, for a PSD A.

    ``matrix`` is the difference. If the Krylov space would not be small, or does not contain as
    many as the count says, ``eigh`` computes all negative eigenvalues.
    """
    norm = float(np.linalg.norm(matrix))
    found = None
    if len(removed) * MOST_BLOCKS < len(matrix):
        found = _few_negative(matrix, removed, norm)
    return all_negative(matrix) if found is None else found


def all_negative(matrix: Floats) -> tuple[Floats, Floats]:
    """The negative eigenvalues of a symmetric matrix and their vectors in rows, by ``eigh``."""
    limits = (-np.inf, -NEGLIGIBLE * float(np.linalg.norm(matrix)))
    values, vectors = eigh(matrix, driver="evr", subset_by_value=limits, check_finite=False)
    return values, vectors.T


def _few_negative(matrix: Floats, removed: Floats, norm: float) -> tuple[Floats, Floats] | None:
    """The negative part from a Krylov space; None if the space does not contain all of it."""
    before = removed.T @ removed
    before += matrix
    before.flat[:: len(before) + 1] += NEGLIGIBLE * norm
    try:
        factor = cho_factor(before.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    blocks = [removed.T]
    solved = cho_solve(factor, blocks[0], check_finite=False)
    n_negative = int((np.linalg.eigvalsh(removed @ solved) > 1).sum())
    if n_negative == 0:
        return np.empty(0), np.empty((0, len(matrix)))
    while len(blocks) < MOST_BLOCKS:
        blocks.append(qr(solved, mode="economic", check_finite=False)[0])
        if len(blocks) >= FEWEST_BLOCKS:
            values, vectors, error = _negative_within(matrix, np.hstack(blocks), norm)
            if len(values) == n_negative and error <= RESIDUAL * norm:
                return values, vectors
            if error > PROMISING * norm:
                return None
        solved = cho_solve(factor, blocks[-1], check_finite=False)
    return None


def _negative_within(matrix: Floats, spanning: Floats, norm: float) -> tuple[Floats, Floats, float]:
    """The negative eigenpairs of the matrix restricted to a space, and a bound on their error.

    The pairs are exact for a matrix that differs by this bound in the Frobenius norm, and the
    projections of two matrices to the cone differ by no more than the matrices.
    """
    basis = qr(spanning, mode="economic", check_finite=False)[0]
    image = matrix @ basis
    values, rotation = np.linalg.eigh(basis.T @ image)
    rotation = rotation[:, values < -NEGLIGIBLE * norm]
    values = values[: rotation.shape[1]]
    vectors = basis @ rotation
    residual = image @ rotation - vectors * values
    return values, vectors.T, float(np.sqrt(2) * np.linalg.norm(residual))


def _is_above(matrix: Floats, bound: float) -> bool:
    """Whether all eigenvalues are greater than ``bound``."""
    shifted = matrix.copy()
    shifted.flat[:: len(shifted) + 1] -= bound
    try:
        cho_factor(shifted.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
