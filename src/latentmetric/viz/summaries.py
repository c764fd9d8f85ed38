"""Numbers that describe a model: spectrum, map, errors by class, confused pairs.

The plots and the report both draw them. Time O(d³) for a spectrum, O(m·r²) for the map of m points
of rank r, O(n + C) for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.types import Floats, Ints

LARGEST = 1e150
"""Numbers beyond this are not drawn: their squares would overflow, those of 1 over it vanish."""


@dataclass(frozen=True)
class Curve:
    """One measured quantity over the rounds of a fit."""

    rounds: list[int]
    """Rounds of MaPML, iterations of other algorithms."""
    values: list[float]
    unit: str = "round"
    """What ``rounds`` counts: "round" or "iteration"."""


def curve(history: Sequence[Mapping[str, Any]], quantity: str) -> Curve:
    """A quantity over the rounds of a fit; rounds that did not measure it are left out."""
    known = [
        record
        for record in history
        if is_number(record.get(quantity)) and is_number(_counted(record))
    ]
    return Curve(
        [_counted(record) for record in known],
        [float(record[quantity]) for record in known],
        "iteration" if any("iterations" in record for record in known) else "round",
    )


def last_before_refinement(history: Sequence[Mapping[str, Any]]) -> int | None:
    """The round whose result the refinement begins with; None if there is no refinement."""
    rounds: list[Any] = [record.get("round") for record in history if "refinement" in record]
    counted = [int(number) for number in rounds if is_number(number)]
    return min(counted) - 1 if counted else None


def is_number(value: Any) -> bool:
    """Whether a value from a history can be drawn: other tools write histories, too."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(-LARGEST <= value <= LARGEST)


def _counted(record: Mapping[str, Any]) -> Any:
    """What ``progress.iterations`` counts; None if the record does not say."""
    return record.get("iterations", record.get("round"))


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of a metric, largest first, and how many of them matter."""

    values: Floats
    """All d of them, zeros included."""

    @property
    def rank(self) -> int:
        """The number of eigenvalues that are not zero."""
        return int(np.count_nonzero(self.values))

    @property
    def effective_rank(self) -> float:
        """(Σ λ)² / Σ λ²: how many equal eigenvalues would be as spread out."""
        if not self.rank:
            return 0.0
        relative = self.values / self.values.max()
        return float(relative.sum()) ** 2 / float(np.square(relative).sum())

    def directions_for(self, share: float) -> int:
        """How many of the largest eigenvalues make up this share of their sum."""
        total = np.cumsum(self.values)
        return int(np.searchsorted(total, share * total[-1])) + 1 if total[-1] else 0


def spectrum(components: Floats) -> Spectrum:
    """The eigenvalues of M = componentsᵀ components, in float64."""
    n_features = components.shape[1]
    roots = np.linalg.svd(components.astype(np.float64), compute_uv=False)
    values = np.zeros(n_features)
    noise = np.finfo(components.dtype).eps * n_features * (roots[0] if len(roots) else 0)
    values[: len(roots)] = np.where(roots > max(noise, 1 / LARGEST), np.square(roots), 0)
    return Spectrum(values)


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
    present, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    means = np.zeros((len(present), points.shape[1]))
    np.add.at(means, places, points)
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


@dataclass(frozen=True)
class ClassErrors:
    """For every class: its rows, and how many of them were predicted as another class."""

    rows: Ints
    wrong: Ints

    @property
    def shares(self) -> Floats:
        """The error rate of each class; NaN where it has no rows."""
        shares: Floats = np.full(len(self.rows), np.nan)
        np.divide(self.wrong, self.rows, out=shares, where=self.rows > 0)
        return shares


def class_errors(true: Ints, predicted: Ints, n_classes: int) -> ClassErrors:
    """Rows and errors of every class, from true and predicted codes."""
    wrong = true[true != predicted]
    return ClassErrors(
        np.bincount(true, minlength=n_classes), np.bincount(wrong, minlength=n_classes)
    )


@dataclass(frozen=True)
class ConfusedPair:
    """How many rows of one class were predicted as one other class."""

    true: int
    predicted: int
    count: int


def confused_pairs(true: Ints, predicted: Ints) -> list[ConfusedPair]:
    """All confused pairs, the most frequent first; no C×C matrix is built."""
    wrong = true != predicted
    pairs = np.stack((true[wrong], predicted[wrong]), axis=1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [
        ConfusedPair(int(found[place, 0]), int(found[place, 1]), int(counts[place]))
        for place in order
    ]
