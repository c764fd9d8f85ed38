"""The training rows of a fit on the workers of a Dask cluster, class by class.

Every class is in one part, and every part on one worker, as a ``LocalPopulation``. Each operation
of a population calls the same operation of the parts, and joins or adds what they return. The only
rows that reach the client are samples, whose sizes the core bounds.

All tasks depend on the futures of the parts, and nothing is scattered: when a worker is lost, the
scheduler can rebuild whatever was on it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.metric import Metric
from latentmetric.core.nearby import LatentPoints, Nearby
from latentmetric.core.population import (
    LatentsUpdate,
    LocalPopulation,
    nearby_of_classes,
    positions_of,
)
from latentmetric.core.refinement import Batch, Gradient
from latentmetric.core.starts import Start
from latentmetric.core.types import Floats, Ints

MESSAGE_BYTES = 8 * 2**20
"""Bytes of arrays in one message to the scheduler; Dask warns of more than 10 MB."""


def on_cluster(client: Any, value: Any) -> Any:
    """The future of a value that is large or that many tasks need.

    Unlike scattered data, it survives the workers that hold it: the scheduler keeps what it is
    made of, in messages of a size that Dask does not warn of.
    """
    data = pickle.dumps(value, protocol=5)
    pieces = [
        client.submit(bytes, data[start : start + MESSAGE_BYTES], pure=False)
        for start in range(0, len(data), MESSAGE_BYTES)
    ]
    return client.submit(_unpickled, pieces, pure=False)


def _unpickled(pieces: list[bytes]) -> Any:
    """What ``on_cluster`` pickled, on a worker; Dask sends its tasks in the same way."""
    return pickle.loads(b"".join(pieces))  # nosec B301


class Part(LocalPopulation):
    """The classes of one worker, in the order of their codes."""

    def __sizeof__(self) -> int:
        return int(self.inner.rows.nbytes)

    @classmethod
    def of_members(cls, part: tuple[Floats, list[Ints]], coordinates: Coordinates) -> Part:
        """A part of these rows, with the row numbers of each class."""
        rows, members = part
        return cls(rows, coordinates, np.arange(len(members)), members, coordinates.radii(rows))

    def mean_radii(self) -> Floats:
        """The mean of ‖x‖² of every class, summed in an order that depends on the rows alone."""
        return np.array([np.sort(self.radii[members]).mean() for members in self.members])

    def checksums(self) -> Ints:
        """A checksum of the rows of every class."""
        return np.array([rows.checksum() for rows in self.classes], dtype=np.int64)

    def nearby_at(self, positions: Ints, latent_points: LatentPoints) -> Nearby:
        """``nearby``, given the positions of the classes in the whole population."""
        return nearby_of_classes(self.classes, positions.tolist(), latent_points, n_threads=1)

    def gradient_of(
        self, numbers: Ints, batch: Batch, components: Floats, start: Start
    ) -> Gradient:
        """``gradient`` of a batch that comes without the factor, which all parts need."""
        return self.gradient(numbers, replace(batch, components=components), start, n_threads=1)


class DaskPopulation:
    """Rows by class on the workers; see ``core.population.Population``."""

    def __init__(
        self, client: Any, parts: list[Any], owners: Ints, sizes: Ints, coordinates: Coordinates,
        dtype: np.dtype[Any],
    ) -> None:  # fmt: skip
        self._client = client
        self.coordinates, self.dtype = coordinates, dtype
        self.n_features = len(coordinates.centre)
        self._parts = client.map(Part.of_members, parts, coordinates=coordinates)
        own_codes = [np.flatnonzero(owners == part) for part in range(len(parts))]
        self._mean_radii = np.empty(len(sizes))
        found = client.gather(client.map(Part.mean_radii, self._parts))
        self._mean_radii[np.concatenate(own_codes)] = np.concatenate(found)
        self.codes = np.argsort(self._mean_radii, kind="stable")
        self.sizes: Ints = sizes[self.codes]
        self.weights: Floats | None = None
        positions = np.argsort(self.codes)
        self._positions = [positions[codes] for codes in own_codes]
        """The positions of every part's classes, in the order of the part."""
        self._owners = owners[self.codes]
        self._shifts = self.sizes - np.cumsum(self.sizes)
        """What to add to drawing numbers of the class at each position to count within its part."""
        for own in self._positions:
            self._shifts[own] += np.cumsum(self.sizes[own]) - self.sizes[own]
        self._start: tuple[Start, Any] | None = None
        """The start of the last gradient, and its future."""

    def __len__(self) -> int:
        return len(self.codes)

    def _call(
        self, method: Callable[..., Any], each: Mapping[int, tuple[Any, ...]], *shared: Any
    ) -> list[Any]:
        """Call a method of some parts: each with arguments of its own, then with shared ones."""
        futures = [
            self._client.submit(method, self._parts[part], *own, *shared, pure=False)
            for part, own in each.items()
        ]
        found: list[Any] = self._client.gather(futures)
        return found

    def fingerprint_parts(self) -> list[Floats | Ints]:
        """See ``Population``."""
        checksums = self._client.gather(self._client.map(Part.checksums, self._parts))
        return [self._mean_radii, self._joined(checksums), self.codes, self.sizes]

    def first_latents(
        self, starts: Sequence[Ints], class_starts: Ints, n_threads: int
    ) -> LatentsUpdate:
        """See ``Population``."""
        each = {
            part: ([starts[position] for position in own], _starts_of(class_starts, own))
            for part, own in enumerate(self._positions)
        }
        return self._together(self._call(Part.first_latents, each, 1), class_starts)

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int,
    ) -> LatentsUpdate:  # fmt: skip
        """See ``Population``."""
        each = {}
        for part, own in enumerate(self._positions):
            before = on_cluster(self._client, latents[_indices(class_starts, own)])
            each[part] = before, _starts_of(class_starts, own)
        sent = on_cluster(self._client, metric)
        found = self._call(Part.move_latents, each, sent, latent_reg, max_passes, 1)
        return self._together(found, class_starts)

    def _together(self, found: list[LatentsUpdate], class_starts: Ints) -> LatentsUpdate:
        """The latent examples of all parts, class by class in the order of the population."""
        return LatentsUpdate(
            self._joined([moved.latents for moved in found], class_starts),
            self._joined([moved.spreads for moved in found]),
            self._joined([moved.counts for moved in found], class_starts),
            max(moved.passes for moved in found),
        )

    def _joined(self, of_parts: list[Any], starts: Ints | None = None) -> Any:
        """Arrays of all parts in the order of the population.

        ``starts`` are the bounds of the classes in the result; None means one value per class.
        """
        starts = np.arange(len(self) + 1) if starts is None else starts
        together = np.concatenate(of_parts)
        joined = np.empty_like(together)
        joined[np.concatenate([_indices(starts, own) for own in self._positions])] = together
        return joined

    def sample(self, numbers: Ints) -> Floats:
        """See ``Population``; these rows come to the client."""
        asked, within = self._asked(numbers)
        found = self._call(Part.sample, {part: (within[own],) for part, own in asked.items()})
        rows = np.empty((len(numbers), self.n_features), dtype=self.dtype)
        rows[np.concatenate(list(asked.values()))] = np.concatenate(found)
        return rows

    def nearby(self, latent_points: LatentPoints, n_threads: int) -> Nearby:
        """See ``Population``; every part compares its own rows."""
        each = {part: (own,) for part, own in enumerate(self._positions)}
        found = self._call(Part.nearby_at, each, on_cluster(self._client, latent_points))
        visited = [len(range(size)[latent_points.visit.of(size)]) for size in self.sizes.tolist()]
        starts = np.cumsum([0, *visited])
        return Nearby(
            self._joined([part.near for part in found], starts),
            self._joined([part.own for part in found], starts),
            self._joined([part.likelihood for part in found], starts),
            self._joined([part.spreads for part in found]),
        )

    def gradient(self, numbers: Ints, batch: Batch, start: Start, n_threads: int) -> Gradient:
        """See ``Population``; sums come from the parts, and are added in the order of the parts.

        A part gets only the points that its own rows of the batch need.
        """
        if self._start is None or self._start[0] is not start:  # sent once
            self._start = start, on_cluster(self._client, start)
        asked, within = self._asked(numbers)
        pieces = {part: _piece_of(batch, own) for part, own in asked.items()}
        sent: list[Any] = [batch.components, *(piece for _, piece in pieces.values())]
        n_bytes = batch.components.nbytes + sum(piece.points.nbytes for piece in sent[1:])
        if n_bytes > MESSAGE_BYTES:
            sent = [on_cluster(self._client, value) for value in sent]
        each = {
            part: (within[own], piece)
            for (part, own), piece in zip(asked.items(), sent[1:], strict=True)
        }
        found = self._call(Part.gradient_of, each, sent[0], self._start[1])
        total = Gradient(np.zeros_like(batch.components), np.zeros_like(batch.points))
        for (which, _), of_part in zip(pieces.values(), found, strict=True):
            np.add(total.components, of_part.components, out=total.components)
            total.points[which] += of_part.points
        return total

    def _asked(self, numbers: Ints) -> tuple[dict[int, Ints], Ints]:
        """The indices of each part's rows in these drawing numbers; the numbers within the parts.

        Parts without such rows are left out.
        """
        positions = positions_of(self, numbers)
        owners = self._owners[positions]
        asked = {int(part): np.flatnonzero(owners == part) for part in np.unique(owners)}
        return asked, numbers + self._shifts[positions]


def _piece_of(batch: Batch, indices: Ints) -> tuple[Ints, Batch]:
    """The points that these rows of a batch need, and the batch of the rows with only these."""
    which, near = np.unique(batch.near[indices], return_inverse=True)
    near, points = near.reshape(batch.near[indices].shape), batch.points[which]
    piece = replace(batch.part(indices), components=batch.components[:0], points=points, near=near)
    return which, piece


def _indices(starts: Ints, positions: Ints) -> Ints:
    """The indices from ``starts[p]`` to ``starts[p + 1]`` of each position p, one after another."""
    return np.concatenate([np.arange(starts[p], starts[p + 1]) for p in positions])


def _starts_of(class_starts: Ints, positions: Ints) -> Ints:
    """The bounds of the classes at these positions if they stand one after another."""
    return np.concatenate(([0], np.cumsum(np.diff(class_starts)[positions])))
