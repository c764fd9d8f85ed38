"""What the metric weighs: the effect of each feature, and the directions it stretches most.

Both are measured in standard deviations of the features, so that units do not matter. Time
O(d·r·min(d, r)) for d features and a metric of rank r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.types import Floats


@dataclass(frozen=True)
class Direction:
    """A direction that the metric stretches."""

    share: float
    """Its part of all squared stretching."""
    loadings: Floats
    """How much of each feature it has, in standard deviations; a unit vector."""


def feature_effects(components: Floats, deviations: Floats) -> Floats:
    """How far a step of one standard deviation in each feature moves a row under the metric."""
    effects: Floats = np.linalg.norm(components.astype(np.float64), axis=0) * deviations
    return effects


def leading_directions(
    components: Floats, deviations: Floats, n_directions: int
) -> list[Direction]:
    """The directions that the metric stretches most, the largest loading of each positive."""
    scaled = components.astype(np.float64) * deviations
    if not scaled.any():
        return []
    _, stretches, axes = np.linalg.svd(scaled, full_matrices=False)
    shares = np.square(stretches / stretches[0])
    shares /= shares.sum()
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return [
        Direction(float(share), axis * sign)
        for share, axis, sign in zip(shares, axes, signs, strict=True)
        if share > 0
    ][:n_directions]
