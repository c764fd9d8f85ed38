"""Points far from all others, which would squeeze a picture of the rest."""

from __future__ import annotations

import numpy as np

from latentmetric.core.types import Bools, Floats

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
