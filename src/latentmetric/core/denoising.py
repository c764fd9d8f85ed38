"""A start for noisy rows: keep of each direction what groups of similar rows have in common.

Rows are latent examples plus distortion. Rows of a class are divided into groups of about ten that
are near each other; the means of the groups stand for latent examples. Along a principal direction
of the rows, let t be the variance of the rows and w that of their differences from the means of
their groups. The share 1 − w/t is the signal, what a Wiener filter would keep. The start multiplies
the direction by its root, so noise that is equal in all directions no longer hides the few in which
rows resemble each other.

Time O(n·d·(n/10C + d) + d³) for n rows of C classes. Memory O(n·d + d²).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from latentmetric.core.distances import References, search
from latentmetric.core.types import Floats, Ints

GROUP_ROWS = 10
"""Rows per group, in the mean."""

GROUP_PASSES = 3
"""How often rows are assigned to the nearest mean."""

LEAST_SHARE = 0.04
"""No direction keeps less than this: a share of nothing could not be learned from."""

NO_VARIANCE = 1e-10
"""Directions with less than this share of the largest variance are rounding."""

EQUAL = 1e-20
"""Rows are all equal if their variance is at most this share of their mean squared norm."""


def weighed(rows: Floats, weights: Floats | None) -> Floats:
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
    """The number of each row's group; rows of different classes are in different groups."""
    groups: Ints = np.empty(len(rows), dtype=np.intp)
    n_groups = 0
    for position in np.unique(positions):
        members = np.flatnonzero(positions == position)
        of_members = None if weights is None else weights[members]
        groups[members] = n_groups + _divide(rows[members], of_members)
        n_groups += len(members)
    return groups


def _divide(rows: Floats, weights: Floats | None) -> Ints:
    """k-means of some rows from evenly spaced ones."""
    n_groups = max(len(rows) // GROUP_ROWS, 1)
    means = rows[np.arange(n_groups) * len(rows) // n_groups]
    nearest: Ints = np.zeros(len(rows), dtype=np.intp)
    for _ in range(GROUP_PASSES if n_groups > 1 else 0):
        nearest = search(rows, References.of(means), 1)[1][:, 0]
        filled = np.unique(nearest)
        means[filled] = group_means(rows, nearest, n_groups, weights)[filled]
    return nearest


def group_means(rows: Floats, groups: Ints, n_groups: int, weights: Floats | None = None) -> Floats:
    """The mean of the rows of every group, 0 for a group without rows."""
    counts = np.bincount(groups, weights, minlength=n_groups)
    of_rows = np.ones(len(rows), rows.dtype) if weights is None else weights.astype(rows.dtype)
    members = csr_array((of_rows, (groups, np.arange(len(rows)))), (n_groups, len(rows)))
    whole = np.where(counts > 0, counts, 1).astype(rows.dtype)
    means: Floats = (members @ rows) / whole[:, None]
    return means


def denoising(rows: Floats, positions: Ints, weights: Floats | None = None) -> tuple[Floats, float]:
    """The matrix that multiplies each principal direction by the root of its share of signal.

    The rows may be written in a basis of fewer dimensions than features; the second result is the
    metric outside of it. Both are scaled so that the rows keep their mean squared norm.
    """
    centred = centred_rows(rows, weights)
    total = len(rows) if weights is None else float(weights.sum())
    groups = group_rows(rows, positions, weights)
    freedom = len(rows) - len(np.unique(groups))
    variances, directions = np.linalg.eigh(centred.T @ weighed(centred, weights) / total)
    varies = variances > NO_VARIANCE * variances[-1]
    equal = len(rows) * variances[-1] <= EQUAL * float(np.vdot(rows, rows))
    if equal or not freedom:  # without freedom, no group has two rows
        return np.eye(rows.shape[1], dtype=rows.dtype), 1.0
    means = group_means(centred, groups, int(groups.max()) + 1, weights)
    away = (centred - means[groups]) @ directions
    noise = np.einsum("ij,ij->j", weighed(away, weights), away) / (freedom * total / len(rows))
    share = np.where(varies, 1 - noise / np.where(varies, variances, 1), LEAST_SHARE)
    share = np.clip(share, LEAST_SHARE, 1)
    share *= variances[varies].sum() / (share * variances)[varies].sum()
    turn: Floats = (directions * np.sqrt(share)) @ directions.T
    return turn.astype(rows.dtype), float(share.min())
