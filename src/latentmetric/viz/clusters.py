"""Which rows a latent example represents: time O(n·(m/C)·d), memory for one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.types import Floats, Ints


def latent_codes(model: Any) -> Ints:
    """The index in ``classes_`` of each latent example's label."""
    codes: Ints = np.searchsorted(model.classes_, np.asarray(model.latent_labels_))
    return codes


@dataclass(frozen=True)
class Cluster:
    """A latent example and the rows of its class that are nearest to it."""

    latent: int
    rows: Ints
    """Sorted by distance, nearest first."""
    distances: Floats
    """In the units of the features."""


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
    for place in np.argsort(-sizes, kind="stable")[:n_clusters]:
        own = np.flatnonzero(nearest == place)
        own = own[np.argsort(distances[own], kind="stable")]
        clusters.append(Cluster(int(latents[place]), members[own], distances[own]))
    return clusters
