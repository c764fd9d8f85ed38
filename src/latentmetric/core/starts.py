"""Where the metric starts: coordinates in which the first metric is Euclidean.

The paper starts from M = I, so the unit of each feature matters. A start is a linear map A of the
inner coordinates; the rounds begin with the Euclidean distance after it, M = AᵀA. Everything that
is learned is learned in these coordinates, and A is folded into the metric at the end.

"euclidean"     A = I, as in the paper.
"standardized"  A divides each feature by its standard deviation.
"within"        AᵀA is the inverse of the covariance within the classes, shrunk halfway to its
                diagonal.
"denoised"      A multiplies each principal direction by the root of its share of signal; see
                ``denoising``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.denoising import centred_rows, denoising, group_means, weighed
from latentmetric.core.types import Floats, Ints

STARTS = ("euclidean", "standardized", "within", "denoised")
"""The names of the starts, the simplest first."""

SHRINKAGE = 0.5
"""How far the covariance within classes is moved towards its diagonal."""

CONSTANT_SHARE = 1e-20
"""A variance below this share of a larger one counts as none: the rest is rounding."""


@dataclass(frozen=True)
class Start:
    """A linear map x → Ax of inner coordinates."""

    name: str
    factor: Floats
    """A: a number for each feature, or a d×d matrix."""
    gap: float = 1.0
    """How much farther new rows are from latent examples than left-out ones; see ``race.Trial``."""

    @classmethod
    def euclidean(cls, n_features: int, dtype: np.dtype[np.floating]) -> Start:
        """The map that changes nothing."""
        return cls("euclidean", np.ones(n_features, dtype=dtype))

    def into(self, rows: Floats) -> Floats:
        """Inner rows in the coordinates of the start; the array itself if nothing changes."""
        if self.name == "euclidean":
            return rows
        return rows * self.factor if self.factor.ndim == 1 else rows @ self.factor.T

    def out_of(self, rows: Floats) -> Floats:
        """What ``into`` was given."""
        if self.name == "euclidean":
            return rows
        if self.factor.ndim == 1:
            return rows / self.factor
        solved = np.linalg.solve(self.factor.astype(np.float64), rows.T)
        return solved.T.astype(rows.dtype)

    def fold(self, components: Floats) -> Floats:
        """The factor of a metric in the start's coordinates, for inner rows."""
        return components * self.factor if self.factor.ndim == 1 else components @ self.factor


def start_from(name: str, rows: Floats, positions: Ints, weights: Floats | None = None) -> Start:
    """The start of this name, estimated from some inner rows and the positions of their classes.

    It is scaled so that the rows keep their mean squared norm.
    """
    factors = feature_factors(name, rows, positions, weights)
    found = turn_of(name, rows * factors, positions, rows.shape[1], weights)
    return Start(name, factors if found is None else found[0] * factors)


def turn_of(
    name: str, rows: Floats, positions: Ints, n_features: int, weights: Floats | None = None
) -> tuple[Floats, float] | None:
    """The matrix that combines the features under a start, and the metric outside the rows' basis.

    None if the start combines no features. Features have been multiplied by their factors. The
    rows may be written in a basis of fewer dimensions than features; outside of it the metric is a
    multiple of the identity. Both are scaled so that the rows keep their mean squared norm.
    """
    if name == "within":
        return decorrelation(rows, positions, n_features, weights)
    return denoising(rows, positions, weights) if name == "denoised" else None


def feature_factors(
    name: str, rows: Floats, positions: Ints, weights: Floats | None = None
) -> Floats:
    """The factor of each feature under a start, before features are combined."""
    if name in ("euclidean", "denoised"):
        return np.ones(rows.shape[1], dtype=rows.dtype)
    centred = centred_rows(rows, weights)
    total = len(rows) if weights is None else weights.sum()
    whole = np.einsum("ij,ij->j", weighed(centred, weights), centred) / total
    varies = whole > CONSTANT_SHARE * whole.mean()
    variances = np.where(varies, whole, 1)
    if name == "within":
        away = _from_means(centred, positions, weights)
        inside = np.einsum("ij,ij->j", weighed(away, weights), away) / total
        variances = np.where(varies & (inside > CONSTANT_SHARE * whole), inside, variances)
    norm = float(np.sum(whole / variances))
    scale = np.sqrt(float(whole.sum()) / norm) if norm > 0 else 1.0
    factors: Floats = (scale / np.sqrt(variances)).astype(rows.dtype)
    return factors


def decorrelation(
    rows: Floats, positions: Ints, n_features: int, weights: Floats | None = None
) -> tuple[Floats, float]:
    """The matrix whose square is the inverse of the shrunk covariance within classes.

    Features have been divided by their deviations within classes, so the diagonal that the
    covariance is shrunk to is a multiple of the identity. See ``turn_of``.
    """
    centred = centred_rows(rows, weights)
    away = _from_means(centred, positions, weights)
    covariance = away.T @ weighed(away, weights)
    total = float(np.vdot(weighed(centred, weights), centred))
    if not np.trace(covariance) > CONSTANT_SHARE * total:  # the rows of a class are all equal
        return np.eye(rows.shape[1], dtype=rows.dtype), 1.0
    least = SHRINKAGE * float(np.trace(covariance)) / n_features
    values, vectors = np.linalg.eigh((1 - SHRINKAGE) * covariance)
    turn: Floats = (vectors / np.sqrt(np.maximum(values, 0) + least)) @ vectors.T
    mapped = centred @ turn
    scale = total / float(np.vdot(weighed(mapped, weights), mapped))
    return (turn * np.sqrt(scale)).astype(rows.dtype), scale / least


def _from_means(centred: Floats, positions: Ints, weights: Floats | None) -> Floats:
    """The rows less the means of their classes."""
    present, codes = np.unique(positions, return_inverse=True)
    away: Floats = centred - group_means(centred, codes, len(present), weights)[codes]
    return away
