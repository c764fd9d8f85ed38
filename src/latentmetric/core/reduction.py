"""A metric of lower rank: the directions that tell classes apart, as the refinement needs them.

Among the latent examples under the metric, directions are ordered by how far the means of the
classes are from each other relative to the spread within classes, as in linear discriminant
analysis. Classes of C means decide C − 1 directions; the overall spread decides the others.
Time O(m·r² + r³) for m latent examples under a metric of rank r.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from latentmetric.core.types import Floats, Ints

RIDGE = 0.5
"""Share of the mean spread within classes that is added in every direction."""

OVERALL_SHARE = 1e-2
"""Weight of the overall spread beside that of the means."""


def most_discriminating(
    components: Floats, latents: Floats, class_starts: Ints, counts: Floats,
    rank: int | None,
) -> Floats:  # fmt: skip
    """The factor of a metric of at most this rank; None means no limit.

    Latent examples are in the coordinates of the factor, class by class; ``counts`` are their
    rows.
    """
    if rank is None or rank >= len(components):
        return components
    points = (latents @ components.T).astype(np.float64)
    weights = np.where(counts > 0, counts, 1)
    weights = weights / weights.sum()
    of_class = np.add.reduceat(weights, class_starts[:-1])
    means = np.add.reduceat(points * weights[:, None], class_starts[:-1]) / of_class[:, None]
    away = points - np.repeat(means, np.diff(class_starts), axis=0)
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
