"""Numbers that describe a model, drawn by the plots and by the report.

Curves of a fit, spectrum, weights of features, errors by class, confused pairs, rows by latent
example, and the plane of the map. Time O(d·r·min(d, r)) for a metric of rank r, O(n·r²) for the
plane of n points, O(n·(m/C)·d) for the rows of latent examples, O(C²) to order C classes, O(n + C)
for the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from latentmetric.core.types import Bools, Floats, Ints

LARGEST = 1e150  # is drawn: the squares of larger numbers would overflow
FAR = 10.0  # a point is far if its distance to the median is this many times the median distance


class Curve(NamedTuple):
    """A quantity over the rounds of MaPML, or over the iterations of another algorithm."""

    rounds: list[int]
    values: list[float]
    unit: str = "round"


def curve(history: Sequence[Mapping[str, Any]], quantity: str) -> Curve:
    """A quantity over the rounds of a fit; rounds that did not measure it are left out."""
    known = [record for record in history if abs(record.get(quantity, np.nan)) <= LARGEST]
    return Curve(
        [record.get("iterations", record["round"]) for record in known],
        [float(record[quantity]) for record in known],
        "iteration" if any("iterations" in record for record in known) else "round",
    )


def last_before_refinement(history: Sequence[Mapping[str, Any]]) -> int | None:
    """The round whose result the refinement begins with; None if there is no refinement."""
    rounds = [record["round"] for record in history if "refinement" in record]
    return min(rounds) - 1 if rounds else None


class Starts(NamedTuple):
    """The start of the metric, and what each start that was tried led to on rows not seen."""

    chosen: str | None
    losses: Mapping[str, float]
    errors: Mapping[str, float]


def starts(history: Sequence[Mapping[str, Any]]) -> Starts:
    """What the first record of a history says of the starts."""
    first = history[0] if history else {}
    losses, errors = (
        {name: value for name, value in first.get(measured, {}).items() if np.isfinite(value)}
        for measured in ("start_losses", "start_errors")
    )
    return Starts(first.get("start"), losses, errors)


def candidates(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the first record of a history says was tried: on the most folds first, then by loss."""
    first = history[0] if history else {}
    names = ("start", "n_latents", "ridge", "bandwidth")
    losses: dict[tuple[Any, ...], list[float]] = {}
    for entry in first.get("tried", ()):
        losses.setdefault(tuple(entry[name] for name in names), []).append(entry["loss"])
    chosen = tuple(first.get(name) for name in names)
    found = [
        dict(
            zip(names, key, strict=True),
            loss=float(np.mean(own)),
            n_folds=len(own),
            chosen=key == chosen,
        )
        for key, own in losses.items()
    ]
    return sorted(found, key=lambda one: (-one["n_folds"], one["loss"]))


def latents_in_words(n_latents: Any) -> str:
    """A number of latent examples a class, or a share of its rows."""
    if isinstance(n_latents, Mapping):
        return "a number for each class"
    return f"{n_latents:.0%} of the rows" if isinstance(n_latents, float) else str(n_latents)


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


def feature_effects(components: Floats, deviations: Floats) -> Floats:
    """How far a step of one standard deviation in each feature moves a row under the metric."""
    return np.asarray(np.linalg.norm(components.astype(np.float64), axis=0) * deviations)


def leading_directions(
    components: Floats, deviations: Floats, n_directions: int
) -> list[tuple[float, Floats]]:
    """The directions that the metric stretches most: part of all squared stretching, and loadings.

    Loadings are how much of each feature a direction has, in standard deviations: a unit vector
    whose largest entry is positive.
    """
    scaled = components.astype(np.float64) * deviations
    if not scaled.any():
        return []
    _, stretches, axes = np.linalg.svd(scaled, full_matrices=False)
    shares = np.square(stretches / stretches[0])
    shares /= shares.sum()
    found = zip(shares.tolist(), _oriented(axes), strict=True)
    return [direction for direction in found if direction[0] > 0][:n_directions]


def _oriented(axes: Floats) -> Floats:
    """The axes with the largest entry of each positive."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    oriented: Floats = axes * np.sign(largest)
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

    @property
    def hardest(self) -> Ints:
        """All classes, those with the highest error rates first."""
        return np.argsort(-np.nan_to_num(self.shares), kind="stable")


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
    pairs = Counter(sorted(zip(true[wrong].tolist(), predicted[wrong].tolist(), strict=True)))
    return [ConfusedPair(*pair, count) for pair, count in pairs.most_common()]


def pair_counts(pairs: Iterable[ConfusedPair]) -> Counter[tuple[int, int]]:
    """How often two classes were confused, whichever was the true one."""
    counts: Counter[tuple[int, int]] = Counter()
    for pair in pairs:
        counts[min(pair.true, pair.predicted), max(pair.true, pair.predicted)] += pair.count
    return counts


def order_by_confusion(counts: Ints) -> Ints:
    """The order of classes in which those that are confused stand side by side.

    Of pairs that are confused as often, classes that follow each other are nearer.
    """
    apart = np.abs(np.subtract.outer(*2 * [np.arange(len(counts))]))
    distances = 1.0 / (1 + counts + counts.T) + 1e-3 * apart / len(counts)
    tree = linkage(squareform(distances, checks=False), "single", optimal_ordering=True)
    order = leaves_list(tree).astype(np.intp)
    return order if order[0] < order[-1] else order[::-1]


def latent_codes(model: Any) -> Ints:
    """The index in ``classes_`` of each latent example's label."""
    return np.asarray(np.searchsorted(model.classes_, np.asarray(model.latent_labels_)))


class Cluster(NamedTuple):
    """A latent example, the rows of its class that it represents, nearest first, and distances."""

    latent: int
    rows: Ints
    distances: Floats


def busiest_clusters(
    model: Any, latents: Ints, rows: Floats, members: Ints, n_clusters: int
) -> list[Cluster]:
    """Those ``latents`` of a class that represent the most of its rows, ``members``."""
    if not len(members) or not len(latents):  # a class may wait for its first rows
        return [Cluster(int(latent), members, np.empty(0)) for latent in latents[:n_clusters]]
    of_class = model.model_.with_references(model.latent_examples_[latents], latents, 0.0)
    neighbors = of_class.nearest(rows[members], 1)
    nearest, distances = neighbors.indices[:, 0], of_class.distances(neighbors.squared[:, 0])
    sizes = np.bincount(nearest, minlength=len(latents))
    clusters = []
    for index in np.argsort(-sizes, kind="stable")[:n_clusters]:
        own = np.flatnonzero(nearest == index)
        own = own[np.argsort(distances[own], kind="stable")]
        clusters.append(Cluster(int(latents[index]), members[own], distances[own]))
    return clusters


@dataclass(frozen=True)
class Plane:
    """Two orthonormal directions and an origin: distances on it are never longer than real ones."""

    origin: Floats
    axes: Floats
    """(2, r); an axis is zero where the points do not vary in a further direction."""

    def project(self, points: Floats) -> Floats:
        """The points' coordinates on the plane, (n, 2), in float64."""
        return np.asarray((points - self.origin) @ self.axes.T)


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
    _, strengths, axes = np.linalg.svd(rows, full_matrices=False)
    return _oriented(axes[:n_axes][strengths[:n_axes] > 1e-12 * max(strengths[0], 1e-300)])


def usual(points: Floats) -> Bools:
    """Which points are not far from the others."""
    apart = np.abs(points - np.median(points, axis=0))
    largest = apart.max(initial=0)
    away = np.linalg.norm(apart / (largest or 1), axis=1)
    if not away.any():
        return np.ones(len(points), dtype=bool)
    near: Bools = away <= FAR * float(np.median(away[away > 0]))
    return near


def check_image_shape(image_shape: tuple[int, ...], n_features: int) -> None:
    """Refuse a shape that is not height, width and 1, 3 or 4 channels, or does not fit."""
    whole = all(isinstance(side, (int, np.integer)) and side > 0 for side in image_shape)
    if not whole or len(image_shape) not in (2, 3) or image_shape[2:] not in ((), (1,), (3,), (4,)):
        raise ValueError(
            "image_shape must be height and width, and 1, 3 or 4 channels if there are any, "
            f"got {image_shape}"
        )
    if int(np.prod(image_shape)) != n_features:
        raise ValueError(
            f"image_shape {image_shape} has {int(np.prod(image_shape))} pixels, "
            f"but the model has {n_features} features"
        )
