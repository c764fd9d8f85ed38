"""How much a row looks like rows of known classes.

A row of an unknown class is farther from the nearest reference than known rows usually are. But
known rows that are far from the centre of all rows, such as images with much ink, are also farther
from the nearest reference. So the score is a difference of squared distances,

    s(x) = D²(x, centre) / usual D²(centre) − D²(x, nearest reference) / usual D²(nearest),

where what is usual is a mean over known rows that the references are not made of. If rows are
normally distributed around references, and these around the centre, it is the logarithm of a ratio
of likelihoods, up to constants. It has no unit, and known rows have the mean 0.

Time and memory O(n) for n rows whose distances are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latentmetric.core.distances import References, k_nearest
from latentmetric.core.tuning import (
    FEWEST_KEPT,
    FEWEST_KEPT_ALONE,
    KEPT_ROWS,
    KEPT_SHARE,
    LEAST_CENTRE,
    TEMPERATURE_SAMPLE,
)
from latentmetric.core.types import Floats, Ints

MOST = float(np.finfo(np.float64).max) / 2
"""The most that a distance counts: scores are finite."""

LEAST_NEAREST = 1e-9
"""The least usual distance² to the nearest reference, of that to the centre."""


class Usual(NamedTuple):
    """Mean squared distances of known rows, in inner coordinates, both above 0."""

    nearest: float
    centre: float


@dataclass(frozen=True)
class Distances:
    """Squared distances of rows to the nearest reference and to the centre."""

    nearest: Floats
    centre: Floats

    @property
    def means(self) -> Floats:
        """A column of both means."""
        return np.array([[each.mean(dtype=np.float64)] for each in (self.nearest, self.centre)])

    def usual(self) -> Usual:
        """Their means.

        Rows far away in any direction must be unlike known ones, so the usual distance to the
        centre is a multiple of the other.
        """
        (nearest,), (centre,) = self.means.tolist()
        centre = centre or 1.0
        nearest = max(nearest, LEAST_NEAREST * centre)
        return Usual(nearest, max(centre, LEAST_CENTRE * nearest))

    def in_units_of(self, units: Floats | float) -> Floats:
        """Two rows, nearest and centre, divided by the means of others or by T."""
        relative: Floats = np.stack((self.nearest, self.centre)) / np.where(units, units, 1)
        return relative

    def scores(self, usual: Usual) -> Floats:
        """How much the rows look like known ones."""
        with np.errstate(over="ignore"):
            nearest = np.divide(self.nearest, usual.nearest, dtype=np.float64)
            centre = np.divide(self.centre, usual.centre, dtype=np.float64)
        scores: Floats = np.minimum(centre, MOST) - np.minimum(nearest, MOST)
        return scores


def usual_from_references(references: References) -> Usual:
    """What is usual if the references are rows: each is left out."""
    n = len(references)
    spaced = np.linspace(0, n - 1, min(TEMPERATURE_SAMPLE, n)).astype(np.intp)
    squared, _ = k_nearest(references.rows[spaced], references, min(2, n))
    return Distances(squared[:, -1], references.norms[spaced]).usual()


def kept_out(judges: Ints, n_rows: int, unseen: Floats) -> Ints:
    """Those of the judging rows, whose drawing numbers ascend, that no refinement learns from.

    There are none if they would be fewer than is worth it; ``unseen`` are distances of short fits.
    """
    n_kept = min(KEPT_ROWS, int(KEPT_SHARE * n_rows))
    fewest = FEWEST_KEPT if unseen.size else FEWEST_KEPT_ALONE
    if n_kept < fewest or n_kept > len(judges):
        return judges[:0]
    return judges[np.linspace(0, len(judges) - 1, n_kept).astype(np.intp)]


def passes_without(n_passes: int) -> int:
    """The passes of a refinement that rows are kept out of; the last third is for all rows."""
    return n_passes - n_passes // 3
