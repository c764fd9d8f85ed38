"""Where the metric starts: coordinates in which the first metric is Euclidean.

The paper starts from M = I, so the unit of each feature matters. A start is a linear map A of the
inner coordinates; the rounds begin with the Euclidean distance after it, M = AᵀA. Everything that
is learned is learned in these coordinates, and A is folded into the metric at the end.

"euclidean"     A = I, as in the paper.
"standardized"  A divides each feature by its standard deviation.
"within"        AᵀA is the inverse of the covariance within the classes, shrunk halfway to its
                diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.types import Floats, Ints

STARTS = ("euclidean", "standardized", "within")
"""The names of the starts, the simplest first."""

SHRINKAGE = 0.5
"""How far the covariance within classes is moved towards its diagonal."""

CONSTANT_SHARE = 1e-10
"""A variance below this share of the mean variance counts as none."""


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

    def into(self, rows: Floats) -> Floats:
        """Inner rows in the coordinates of the start."""
        return rows * self.factor if self.factor.ndim == 1 else rows @ self.factor.T

    def fold(self, components: Floats) -> Floats:
        """The factor of a metric in the start's coordinates, for inner rows."""
        return components * self.factor if self.factor.ndim == 1 else components @ self.factor

    def unfold(self, components: Floats) -> Floats:
        """What ``fold`` was given."""
        if self.factor.ndim == 1:
            return components / self.factor
        solved = np.linalg.solve(self.factor.T.astype(np.float64), components.T)
        return solved.T.astype(components.dtype)


def start_from(name: str, rows: Floats, positions: Ints) -> Start:
    """The start of this name, estimated from some inner rows and the positions of their classes.

    It is scaled so that the rows keep their mean squared norm.
    """
    if name == "euclidean":
        return Start.euclidean(rows.shape[1], rows.dtype)
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    whole = np.einsum("ij,ij->j", centred, centred) / len(rows)
    if name == "standardized":
        factor: Floats = 1 / np.sqrt(_positive(whole, np.ones_like(whole)))
        norm = float(np.sum(whole * factor**2))
    else:
        inside = _within(centred, positions)
        variances = _positive(np.diag(inside).copy(), _positive(whole, np.ones_like(whole)))
        inside *= 1 - SHRINKAGE
        np.fill_diagonal(inside, variances)
        # Divided by the standard deviations first: units may differ by many orders of magnitude.
        deviations = np.sqrt(variances)
        values, vectors = np.linalg.eigh(inside / np.outer(deviations, deviations))
        factor = (vectors / np.sqrt(values)).T / deviations
        mapped = centred @ factor.T
        norm = float(np.vdot(mapped, mapped)) / len(rows)
    factor *= np.sqrt(float(whole.sum()) / norm) if norm > 0 else 1.0
    return Start(name, factor.astype(rows.dtype))


def _within(centred: Floats, positions: Ints) -> Floats:
    """The covariance of the rows around the means of their classes."""
    present, codes = np.unique(positions, return_inverse=True)
    sums = np.zeros((len(present), centred.shape[1]))
    np.add.at(sums, codes, centred)
    means = sums / np.bincount(codes)[:, None]
    away = centred - means[codes]
    return away.T @ away / len(away)


def _positive(variances: Floats, instead: Floats) -> Floats:
    """Variances, with others instead of those that are practically zero."""
    return np.where(variances > CONSTANT_SHARE * variances.mean(), variances, instead)
