"""The plane that the map shows, and the part of it in view; outliers must not squeeze the rest.

Time O(n·r²) for n points of rank r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.types import Bools, Floats, Ints

FAR = 10.0
"""A point is far if its distance to the median is this many times the median distance."""

TAIL = 0.005
"""Share of the points on each side that may lie outside a view."""

SQUEEZED = 2.5
"""A view of all points that is this many times as wide as one without the tails is not used."""

FEW = 20
"""A view of fewer points shows all of them."""

ROOM = 0.1
"""Space around a view without the tails, as a share of it."""


@dataclass(frozen=True)
class Plane:
    """Two orthonormal directions and an origin: distances on it are never longer than real ones."""

    origin: Floats
    axes: Floats
    """(2, r); an axis is zero where the points do not vary in a further direction."""

    def project(self, points: Floats) -> Floats:
        """The points' coordinates on the plane, (n, 2), in float64."""
        flat = np.empty((len(points), 2))
        for block in row_blocks(len(points), points.shape[1] * 8):
            flat[block] = (points[block] - self.origin) @ self.axes.T
        return flat


def widest_plane(points: Floats, codes: Ints) -> Plane:
    """The plane on which the means of the classes vary most.

    Its axes are the principal axes of the class means, each mean weighted by the points of its
    class. Two classes have only one such axis: the second is then the principal axis of the points
    themselves, orthogonal to the first.
    """
    present, means, counts = class_means(points, codes)
    origin: Floats = points.mean(axis=0, dtype=np.float64)
    between = (means - origin) * np.sqrt(counts)[:, None]
    axes = _principal(between, min(2, len(present) - 1))
    if len(axes) < 2:
        rest = points - origin
        rest -= (rest @ axes.T) @ axes
        axes = np.concatenate((axes, _principal(rest, 2 - len(axes))))
    padded = np.zeros((2, points.shape[1]))
    padded[: len(axes)] = axes
    return Plane(origin, padded)


def class_means(points: Floats, codes: Ints) -> tuple[Ints, Floats, Ints]:
    """The codes that occur, the mean of the points of each in float64, and the number of points."""
    present, indices, counts = np.unique(codes, return_inverse=True, return_counts=True)
    means = np.zeros((len(present), points.shape[1]))
    np.add.at(means, indices, points)
    means /= counts[:, None]
    return present, means, counts


def _principal(rows: Floats, n_axes: int) -> Floats:
    """Up to ``n_axes`` leading right singular vectors, the largest entry of each positive."""
    if not n_axes or not rows.size:
        return np.empty((0, rows.shape[1]))
    if len(rows) > rows.shape[1]:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        strengths, axes = np.sqrt(np.maximum(values, 0))[::-1], vectors.T[::-1]
    else:
        _, strengths, axes = np.linalg.svd(rows, full_matrices=False)
    axes = axes[:n_axes][strengths[:n_axes] > 1e-12 * max(strengths[0], 1e-300)]
    largest = np.argmax(np.abs(axes), axis=1)
    signs = np.sign(axes[np.arange(len(axes)), largest])
    oriented: Floats = axes * signs[:, None]
    return oriented


def usual(points: Floats) -> Bools:
    """Which points are not far from the others."""
    apart = np.abs(points - np.median(points, axis=0))
    largest = apart.max(initial=0)
    away = np.linalg.norm(apart / (largest or 1), axis=1)
    if not away.any():
        return np.ones(len(points), dtype=bool)
    near: Bools = away <= FAR * float(np.median(away[away > 0]))
    return near


def view_of(flat: Floats) -> tuple[Floats, Floats]:
    """Low and high corner of a view of points on a plane; a few may lie outside."""
    low, high = flat.min(axis=0), flat.max(axis=0)
    if len(flat) < FEW:
        return low, high
    tail = max(2, int(TAIL * len(flat)))
    inner_low, inner_high = np.sort(flat, axis=0)[[tail, -1 - tail]]
    room = ROOM * (inner_high - inner_low)
    squeezed = high - low > SQUEEZED * (inner_high - inner_low)
    return (
        np.where(squeezed, np.maximum(low, inner_low - room), low),
        np.where(squeezed, np.minimum(high, inner_high + room), high),
    )
