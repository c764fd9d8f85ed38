"""Which rows a latent example stands for: time O(n·(m/C)·d), memory for one class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.coordinates import InnerRows
from latentmetric.core.distances import References, k_nearest
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators.mapml import MaPML


def latent_codes(model: MaPML) -> Ints:
    """The place of each latent example's label among ``classes_``."""
    codes: Ints = np.searchsorted(model.classes_, np.asarray(model.latent_labels_))
    return codes


@dataclass(frozen=True)
class Cluster:
    """A latent example and the rows of its class that are nearer to it than to its sisters."""

    latent: int
    rows: Ints
    """From near to far."""
    distances: Floats
    """In the units of the features."""


def busiest_clusters(
    model: MaPML, latents: Ints, rows: Floats, members: Ints, n_clusters: int
) -> list[Cluster]:
    """Those of the ``latents`` of a class that stand for most of its rows, ``members``."""
    if not len(members):
        return [Cluster(int(latent), members, np.empty(0)) for latent in latents[:n_clusters]]
    components, coordinates = model.components_, model._coordinates
    sisters = InnerRows(model.latent_examples_, coordinates).under(components, latents)
    points = InnerRows(rows, coordinates).under(components, members)
    squared, found = k_nearest(points, References.of(sisters), 1)
    nearest, distances = found[:, 0], model._as_distances(squared[:, 0])
    sizes = np.bincount(nearest, minlength=len(latents))
    clusters = []
    for place in np.argsort(-sizes, kind="stable")[:n_clusters]:
        own = np.flatnonzero(nearest == place)
        own = own[np.argsort(distances[own], kind="stable")]
        clusters.append(Cluster(int(latents[place]), members[own], distances[own]))
    return clusters
