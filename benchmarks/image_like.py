"""Rows that look like features of images: noisy observations of known latent examples.

Classes come in groups of similar classes, each class has several latent examples with unequal
numbers of rows, and a row is a latent example plus distortion. One part of the distortion is
strong in a few directions that carry no information on the class (pose, light), one part is in
the directions in which classes differ (so that no metric can remove it), and one part is equal in
all directions. Some labels are wrong.

If all classes share the directions of their distortion, any metric that shrinks these gains much.
Part of the distortion may instead have directions that only a few similar classes share, drawn like
the differences of classes: what is distortion in one family of classes is information in another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from latentmetric.core.types import Floats, Ints
from latentmetric.persistence.replacing import replacing

CHUNK_ROWS = 16_384
"""Rows drawn at a time; each chunk has its own random stream."""

GROUP_SHARE = 0.3
"""The share of a class centre's variance that comes from its group."""

OVERLAP = 0.5
"""The share of the shared distortion's variance in directions in which classes differ."""

SIBLINGS, OWN_DIRECTIONS = 5, 16
"""So many similar classes have the same distortion of their own, in so many directions.

With a class alone in its directions, these would tell the class; with all classes of a group, there
would be so few directions in total that a metric could shrink them all.
"""

IMAGENET: dict[str, Any] = {
    "n_samples": 1_281_167 + 50_000,
    "n_features": 512,
    "n_classes": 1_000,
    "latents_per_class": 8,
    "spread": 0.4,
    "decay": 0.2,
    "distortion": 2.0,
    "shared_distortion": 0.1,
    "noise": 3.4,
}
"""Parameters for as many rows and classes as ImageNet's ILSVRC 2012 (training and validation).

Chosen so that Euclid's 3-NN has an error of about 35 %, extrapolated from 80,000, 160,000 and
320,000 rows of all classes (67, 57 and 48 %), and so that a metric alone gains little: classes
differ in nearly all directions, and most of the distortion is in other directions for other
classes.
"""

IMAGENET_TEST_ROWS = 50_000


@dataclass(frozen=True)
class ImageLike:
    """Rows with the latent examples they were drawn from."""

    X: Floats
    """(n_samples, n_features) in float32; a read-only memory map if it was streamed to a file."""
    y: Ints
    """Observed labels, some of them wrong."""
    latent_examples: Floats
    """What the rows were drawn around, (n_classes · latents_per_class, n_features)."""
    latent_labels: Ints
    """The class of each latent example."""
    memberships: Ints
    """The index of the latent example that each row was drawn from."""


def make_image_like(
    n_samples: int = 10_000,
    n_features: int = 64,
    n_classes: int = 20,
    latents_per_class: int = 8,
    *,
    spread: float = 0.4,
    decay: float = 1.0,
    distortion: float = 0.5,
    shared_distortion: float = 1.0,
    n_distortions: int | None = None,
    noise: float = 0.5,
    mislabelled: float = 0.02,
    out: str | Path | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> ImageLike:
    """Draw rows around known latent examples.

    Lengths are relative to the distances of the class centres from the centre of all classes,
    whose mean square is 1.

    Parameters
    ----------
    n_samples, n_features, n_classes, latents_per_class : int
        How many rows, features, classes and latent examples of each class to draw.
    spread : float, default=0.4
        Root mean square distance of the latent examples from the centre of their class.
    decay : float, default=1.0
        The latent examples' scale in direction j is j to the power of minus this. With a large
        decay classes differ in few directions; with 0 in all of them alike.
    distortion : float, default=0.5
        Root mean square length of the distortion that is strong in a few directions.
    shared_distortion : float, default=1.0
        The share of this distortion's variance in directions that are the same for all classes.
        The rest has other directions in each family of about five similar classes.
    n_distortions : int, default=None
        Number of directions that carry no information on the class; None takes an eighth of the
        number of features.
    noise : float, default=0.5
        Root mean square length of the distortion that is equal in all directions.
    mislabelled : float, default=0.02
        Share of the rows whose label is replaced by a random one, which may be the same.
    out : path, default=None
        Write the rows to this .npy file, a chunk at a time, and return a memory map of it. The
        file appears only when it is complete.
    random_state : int, RandomState instance or None, default=0
        The same number gives the same rows, in memory or on disk.

    Returns
    -------
    ImageLike
    """
    seed = check_random_state(random_state).randint(2**31)
    truth, rows, own = (np.random.SeedSequence([seed, part]) for part in range(3))
    generator = np.random.default_rng(truth)
    signal = _directions(generator, n_features, n_features, decay)
    latents, families = _latents(generator, signal, n_classes, latents_per_class, spread)
    pose = _directions(generator, n_distortions or max(1, n_features // 8), n_features, decay=1.0)
    shared, apart = shared_distortion**0.5, (1 - shared_distortion) ** 0.5
    factor = _distortion_factor(signal, pose, distortion * shared, noise)
    shape = (int(families.max()) + 1, OWN_DIRECTIONS, n_features)
    drawn = np.random.default_rng(own).standard_normal(shape, dtype=np.float32) @ signal
    own_directions = np.float32(distortion * apart / OWN_DIRECTIONS**0.5) * drawn
    memberships = _memberships(generator, n_samples, n_classes, latents_per_class)
    labels = memberships // latents_per_class
    wrong = generator.random(n_samples) < mislabelled
    labels[wrong] = generator.integers(0, n_classes, int(wrong.sum()))
    chunks = _chunks(rows, latents, memberships, factor, families, own_directions)
    if out is None:
        X = np.empty((n_samples, n_features), dtype=np.float32)
        for start, block in zip(range(0, n_samples, CHUNK_ROWS), chunks, strict=True):
            X[start : start + CHUNK_ROWS] = block
    else:
        X = _written(chunks, (n_samples, n_features), out)
    latent_labels = np.repeat(np.arange(n_classes), latents_per_class)
    return ImageLike(X, labels, latents, latent_labels, memberships)


def _directions(generator: np.random.Generator, number: int, of: int, decay: float) -> Floats:
    """Orthogonal rows of falling length; their squared lengths sum to 1."""
    orthogonal = np.linalg.qr(generator.standard_normal((of, number)))[0].T
    lengths = np.arange(1, number + 1) ** -decay
    scaled: Floats = (lengths / np.linalg.norm(lengths))[:, None] * orthogonal
    return scaled.astype(np.float32)


def _latents(
    generator: np.random.Generator, signal: Floats, n_classes: int, latents_per_class: int,
    spread: float,
) -> tuple[Floats, Ints]:  # fmt: skip
    """Latent examples around their class, classes around their group; the family of each.

    Siblings, the classes of a family, are of one group as far as its size allows.
    """
    n_groups = max(1, round(n_classes**0.5))

    def points(number: int, length: float) -> Floats:
        drawn = generator.standard_normal((number, len(signal)), dtype=np.float32)
        return np.float32(length) * (drawn @ signal)

    group_centres = points(n_groups, GROUP_SHARE**0.5)
    groups = generator.integers(0, n_groups, n_classes)
    centres = group_centres[groups] + points(n_classes, (1 - GROUP_SHARE) ** 0.5)
    around = points(n_classes * latents_per_class, spread)
    latents: Floats = np.repeat(centres, latents_per_class, axis=0) + around
    families = np.empty_like(groups)
    families[np.argsort(groups, kind="stable")] = np.arange(n_classes) // SIBLINGS
    return latents, np.repeat(families, latents_per_class)


def _distortion_factor(signal: Floats, pose: Floats, distortion: float, noise: float) -> Floats:
    """F such that F Fᵀ is the covariance of a row around its latent example."""
    n_features = signal.shape[1]
    where_classes_differ = OVERLAP * signal.T.astype(np.float64) @ signal
    elsewhere = (1 - OVERLAP) * pose.T.astype(np.float64) @ pose
    alike = (noise**2 / n_features + 1e-12) * np.eye(n_features)
    covariance = distortion**2 * (where_classes_differ + elsewhere) + alike
    factor: Floats = np.linalg.cholesky(covariance).astype(np.float32)
    return factor


def _memberships(
    generator: np.random.Generator, n_samples: int, n_classes: int, latents_per_class: int
) -> Ints:
    """The latent example of each row: classes of equal size, latent examples of unequal size."""
    classes = generator.permutation(np.arange(n_samples) % n_classes)
    shares = generator.dirichlet(np.full(latents_per_class, 3.0), n_classes)
    bounds = np.cumsum(shares, axis=1)[:, :-1]
    drawn = generator.random(n_samples)
    within = np.zeros(n_samples, dtype=np.intp)
    for bound in bounds.T:
        within += drawn > bound[classes]
    return classes * latents_per_class + within


def _chunks(
    seeds: np.random.SeedSequence, latents: Floats, memberships: Ints, factor: Floats,
    families: Ints, own_directions: Floats,
) -> Iterator[Floats]:  # fmt: skip
    """The rows, ``CHUNK_ROWS`` at a time."""
    starts = range(0, len(memberships), CHUNK_ROWS)
    for start, seed in zip(starts, seeds.spawn(len(starts)), strict=True):
        generator = np.random.default_rng(seed)
        own = memberships[start : start + CHUNK_ROWS]
        noise = generator.standard_normal((len(own), latents.shape[1]), dtype=np.float32)
        rows = noise @ factor.T + latents[own]
        strengths = generator.standard_normal((len(own), OWN_DIRECTIONS), dtype=np.float32)
        for family in np.unique(families[own]):
            members = np.flatnonzero(families[own] == family)
            rows[members] += strengths[members] @ own_directions[family]
        yield rows


def _written(chunks: Iterator[Floats], shape: tuple[int, int], path: str | Path) -> Floats:
    """The rows as a memory map of a new file; chunks are not kept in memory."""
    with replacing(path) as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
        for rows in chunks:
            rows.astype("<f4", copy=False).tofile(file)
    mapped: Floats = np.load(path, mmap_mode="r")
    return mapped
