"""Where the metric starts: coordinates in which the first metric is Euclidean.

The paper starts from M = I, so the unit of each feature matters. A start is a linear map A of the
inner coordinates; the rounds begin with the Euclidean distance after it, M = AᵀA. Everything that
is learned is learned in these coordinates, and A is folded into the metric at the end.

"euclidean"     A = I, as in the paper.
"standardized"  A divides each feature by its standard deviation.
"within"        AᵀA is the inverse of the covariance within the classes, shrunk halfway to its
                diagonal.
"denoised"      A multiplies each principal direction by the root of its share of signal. Rows are
                latent examples plus distortion. Rows of a class are divided into groups of about
                ten that are near each other; the means of the groups stand for latent examples.
                Along a direction, let t be the variance of the rows and w that of their differences
                from the means of their groups. The share 1 − w/t is the signal, what a Wiener
                filter would keep. So noise that is equal in all directions no longer hides the few
                in which rows resemble each other.

Time O(n·d² + d³) for n rows, and O(n·d·n/10C) for the groups of C classes. Memory O(n·d + d²).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from latentmetric.core.distances import References, search
from latentmetric.core.tuning import GROUP_PASSES, GROUP_ROWS, MIN_SIGNAL, SHRINKAGE
from latentmetric.core.types import Floats, Ints

STARTS = ("euclidean", "standardized", "within", "denoised")
"""The names of the starts, the simplest first."""

DIFFERENT_SPREADS = 10.0
"""Columns whose deviations differ by more than this factor hardly have one unit."""

CONSTANT_SHARE = 1e-20
"""A variance below this share of a larger one counts as none: the rest is rounding."""

LEAST_SHARE = 1e-38
"""A variance below this share of the largest counts as none: in its unit, squared distances along
other columns overflow float32. Encoders of text have such columns, with values about 1e-33."""

NO_VARIANCE = 1e-10
"""Principal directions with less than this share of the largest variance are rounding."""


def ordered_starts(rows: Floats) -> tuple[str, ...]:
    """The names of the starts, the simplest first: without a common unit, not the Euclidean one."""
    spreads = np.std(rows, axis=0, dtype=np.float64)
    spreads = spreads[spreads > 0]
    if len(spreads) and spreads.max() > DIFFERENT_SPREADS * spreads.min():
        return (*STARTS[1:], STARTS[0])
    return STARTS


@dataclass(frozen=True)
class Start:
    """A linear map x → Ax of inner coordinates."""

    name: str
    factor: Floats
    """A: a number for each feature, or a d×d matrix."""

    @classmethod
    def euclidean(cls, n_features: int, dtype: np.dtype[np.floating]) -> Start:
        """The map that changes nothing."""
        return cls("euclidean", np.ones(n_features, dtype=dtype))

    def transform(self, rows: Floats) -> Floats:
        """Inner rows in the coordinates of the start; the array itself if nothing changes."""
        if self.name == "euclidean":
            return rows
        return rows * self.factor if self.factor.ndim == 1 else rows @ self.factor.T

    def inverse_transform(self, rows: Floats) -> Floats:
        """What ``transform`` was given."""
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
    found = combining_matrix(name, rows * factors, positions, rows.shape[1], weights)
    return Start(name, factors if found is None else found[0] * factors)


def combining_matrix(
    name: str, rows: Floats, positions: Ints, n_features: int, weights: Floats | None = None
) -> tuple[Floats, float] | None:
    """The matrix that combines the features under a start, and the metric outside the rows' basis.

    None if the start combines no features. Features have been multiplied by their factors. The
    rows may be written in a basis of fewer dimensions than features; outside of it the metric is a
    multiple of the identity. Both are scaled so that the rows keep their mean squared norm.
    """
    if name == "within":
        return whitening_matrix(rows, positions, n_features, weights)
    return denoising_matrix(rows, positions, weights) if name == "denoised" else None


def feature_factors(
    name: str, rows: Floats, positions: Ints, weights: Floats | None = None
) -> Floats:
    """The factor of each feature under a start, before features are combined."""
    if name in ("euclidean", "denoised"):
        return np.ones(rows.shape[1], dtype=rows.dtype)
    centred = centred_rows(rows, weights)
    total = len(rows) if weights is None else weights.sum()
    whole = np.einsum("ij,ij->j", weighted(centred, weights), centred) / total
    # A column is compared with itself: beside one of large numbers, all others look constant.
    varies = whole > CONSTANT_SHARE * np.square(rows, dtype=np.float64).max(axis=0)
    varies &= whole > LEAST_SHARE * whole.max()
    variances = np.where(varies, whole, 1)
    if name == "within":
        away = _centred_by_class(centred, positions, weights)
        inside = np.einsum("ij,ij->j", weighted(away, weights), away) / total
        variances = np.where(varies & (inside > CONSTANT_SHARE * whole), inside, variances)
    norm = float(np.sum(whole / variances))
    scale = np.sqrt(float(whole.sum()) / norm) if norm > 0 else 1.0
    factors: Floats = (scale / np.sqrt(variances)).astype(rows.dtype)
    return factors


def whitening_matrix(
    rows: Floats, positions: Ints, n_features: int, weights: Floats | None = None
) -> tuple[Floats, float]:
    """The matrix whose square is the inverse of the shrunk covariance within classes.

    Features have been divided by their deviations within classes, so the diagonal that the
    covariance is shrunk to is a multiple of the identity. See ``combining_matrix``.
    """
    centred = centred_rows(rows, weights)
    away = _centred_by_class(centred, positions, weights)
    covariance = away.T @ weighted(away, weights)
    total = float(np.vdot(weighted(centred, weights), centred))
    if not np.trace(covariance) > CONSTANT_SHARE * total:  # the rows of a class are all equal
        return np.eye(rows.shape[1], dtype=rows.dtype), 1.0
    least = SHRINKAGE * float(np.trace(covariance)) / n_features
    values, vectors = np.linalg.eigh((1 - SHRINKAGE) * covariance)
    turn: Floats = (vectors / np.sqrt(np.maximum(values, 0) + least)) @ vectors.T
    mapped = centred @ turn
    scale = total / float(np.vdot(weighted(mapped, weights), mapped))
    return (turn * np.sqrt(scale)).astype(rows.dtype), scale / least


def _centred_by_class(centred: Floats, positions: Ints, weights: Floats | None) -> Floats:
    """The rows less the means of their classes."""
    present, codes = np.unique(positions, return_inverse=True)
    away: Floats = centred - group_means(centred, codes, len(present), weights)[codes]
    return away


def weighted(rows: Floats, weights: Floats | None) -> Floats:
    """The rows multiplied by their weights; the array itself if each counts as one."""
    return rows if weights is None else rows * weights[:, None]


def centred_rows(rows: Floats, weights: Floats | None) -> Floats:
    """The rows less their mean, in float64."""
    if weights is None:
        mean = rows.mean(axis=0, dtype=np.float64)
    else:
        mean = weights @ rows / weights.sum()
    centred: Floats = rows.astype(np.float64) - mean
    return centred


def group_rows(rows: Floats, positions: Ints, weights: Floats | None = None) -> Ints:
    """The number of each row's group: k-means in every class, from evenly spaced rows."""
    groups: Ints = np.empty(len(rows), dtype=np.intp)
    n_groups = 0
    for position in np.unique(positions):
        members = np.flatnonzero(positions == position)
        of_class, of_members = rows[members], None if weights is None else weights[members]
        n_means = max(len(members) // GROUP_ROWS, 1)
        means = of_class[np.arange(n_means) * len(members) // n_means]
        nearest: Ints = np.zeros(len(members), dtype=np.intp)
        for _ in range(GROUP_PASSES if n_means > 1 else 0):
            nearest = search(of_class, References.of(means), 1)[1][:, 0]
            filled = np.unique(nearest)
            means[filled] = group_means(of_class, nearest, n_means, of_members)[filled]
        groups[members] = n_groups + nearest
        n_groups += len(members)
    return groups


def group_means(rows: Floats, groups: Ints, n_groups: int, weights: Floats | None = None) -> Floats:
    """The mean of the rows of every group, 0 for a group without rows."""
    counts = np.bincount(groups, weights, minlength=n_groups)
    of_rows = np.ones(len(rows), rows.dtype) if weights is None else weights.astype(rows.dtype)
    members = csr_array((of_rows, (groups, np.arange(len(rows)))), (n_groups, len(rows)))
    whole = np.where(counts > 0, counts, 1).astype(rows.dtype)
    means: Floats = (members @ rows) / whole[:, None]
    return means


def denoising_matrix(
    rows: Floats, positions: Ints, weights: Floats | None = None
) -> tuple[Floats, float]:
    """The matrix that multiplies each principal direction by the root of its share of signal.

    The rows may be written in a basis of fewer dimensions than features; the second result is the
    metric outside of it. Both are scaled so that the rows keep their mean squared norm.
    """
    centred = centred_rows(rows, weights)
    total = len(rows) if weights is None else float(weights.sum())
    groups = group_rows(rows, positions, weights)
    freedom = len(rows) - len(np.unique(groups))
    variances, directions = np.linalg.eigh(centred.T @ weighted(centred, weights) / total)
    varies = variances > NO_VARIANCE * variances[-1]
    equal = len(rows) * variances[-1] <= CONSTANT_SHARE * float(np.vdot(rows, rows))
    if equal or not freedom:  # without freedom, no group has two rows
        return np.eye(rows.shape[1], dtype=rows.dtype), 1.0
    means = group_means(centred, groups, int(groups.max()) + 1, weights)
    away = (centred - means[groups]) @ directions
    noise = np.einsum("ij,ij->j", weighted(away, weights), away) / (freedom * total / len(rows))
    share = np.where(varies, 1 - noise / np.where(varies, variances, 1), MIN_SIGNAL)
    share = np.clip(share, MIN_SIGNAL, 1)
    share *= variances[varies].sum() / (share * variances)[varies].sum()
    turn: Floats = (directions * np.sqrt(share)) @ directions.T
    return turn.astype(rows.dtype), float(share.min())
