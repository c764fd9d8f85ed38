"""The training rows of a fit on the workers of a Dask cluster, class by class.

Every class is in one part, and every part on one worker. A round sends the metric to the parts and
gets latent examples back. A step of the refinement sends each part what its own rows of the batch
need, and gets the sum of their gradients back. The only rows that reach the client are samples,
whose sizes the core bounds.

All tasks depend on the futures of the parts, and nothing is scattered: when a worker is lost, the
scheduler can rebuild whatever was on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, cast

import numpy as np

from latentmetric.core.classes import OneClass, classes_of
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import row_blocks
from latentmetric.core.metric import Metric
from latentmetric.core.nearby import LatentPoints, Nearby, RowSubset
from latentmetric.core.population import (
    LatentsUpdate,
    first_latents_of,
    move_latents_of,
    nearby_of_classes,
    positions_of,
)
from latentmetric.core.refinement import Batch, Gradient, gradient
from latentmetric.core.starts import Start
from latentmetric.core.types import Floats, Ints

MESSAGE_BYTES = 8 * 2**20
"""Bytes of arrays in one message to the scheduler; Dask warns of more than 10 MB."""


@dataclass(frozen=True)
class Part:
    """The rows of some classes as they arrived, and the row numbers of each class."""

    rows: Floats
    members: list[Ints]

    def __sizeof__(self) -> int:
        return int(self.rows.nbytes)


def on_cluster(client: Any, array: Any) -> Any:
    """The future of an array that is large or that many tasks need.

    Unlike scattered data, it survives the workers that hold it: the scheduler keeps what it is
    made of. ``client.map`` does not take a large array as a keyword instead, because Dask would
    name it after the keyword, and so mix up the arrays of two calls.
    """
    blocks = [
        client.submit(_same, array[block], pure=False)
        for block in row_blocks(len(array), array[:1].nbytes, MESSAGE_BYTES)
    ]
    return blocks[0] if len(blocks) == 1 else client.submit(np.concatenate, blocks, pure=False)


class DaskPopulation:
    """Rows by class on the workers; see ``core.population.Population``."""

    def __init__(
        self, client: Any, parts: list[Any], owners: Ints, sizes: Ints, coordinates: Coordinates,
        dtype: np.dtype[Any],
    ) -> None:  # fmt: skip
        self._client = client
        self.coordinates, self.dtype = coordinates, dtype
        self.n_features = len(coordinates.centre)
        self._parts = client.map(_by_class, parts, coordinates=coordinates)
        own_codes = [np.flatnonzero(owners == part) for part in range(len(parts))]
        self._mean_radii = np.empty(len(sizes))
        found = client.gather(client.map(attrgetter("mean_radii"), self._parts))
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
        self._factor: tuple[Start, Any] | None = None
        """The start of the last gradient, and the future of its factor."""

    def __len__(self) -> int:
        return len(self.codes)

    def fingerprint_parts(self) -> list[Floats | Ints]:
        """See ``Population``."""
        found = self._client.gather(self._client.map(_checksums, self._parts))
        checksums = self._joined([np.array(own, dtype=np.int64) for own in found])
        return [self._mean_radii, checksums, self.codes, self.sizes]

    def first_latents(
        self, starts: Sequence[Ints | int], class_starts: Ints, n_threads: int
    ) -> LatentsUpdate:
        """See ``Population``."""
        futures = [
            self._client.submit(
                _first, part, [starts[position] for position in own], _starts_of(class_starts, own)
            )
            for part, own in zip(self._parts, self._positions, strict=True)
        ]
        return self._together(futures, class_starts)

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int, cached_latents: object = None,
    ) -> LatentsUpdate:  # fmt: skip
        """See ``Population``; ``cached_latents`` are the futures of the parts' latent examples."""
        before = cast("list[Any] | None", cached_latents)
        if before is None:
            before = [_unmoved(latents[_indices(class_starts, own)]) for own in self._positions]
        futures = [
            self._client.submit(
                _move, part, moved, _starts_of(class_starts, own), metric.components, latent_reg,
                max_passes,
            )
            for part, own, moved in zip(self._parts, self._positions, before, strict=True)
        ]  # fmt: skip
        return self._together(futures, class_starts)

    def _together(self, futures: list[Any], class_starts: Ints) -> LatentsUpdate:
        """The latent examples of all parts, class by class in the order of the population."""
        found = self._client.gather(futures)
        return LatentsUpdate(
            self._joined([moved.latents for moved in found], class_starts),
            self._joined([moved.spreads for moved in found]),
            self._joined([moved.counts for moved in found], class_starts),
            max(moved.passes for moved in found),
            futures,
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
        parts, indices, within = zip(*self._asked(numbers), strict=True)
        found = self._client.map(_Ready.sample, parts, within, pure=False)
        rows = np.empty((len(numbers), self.n_features), dtype=self.dtype)
        rows[np.concatenate(indices)] = np.concatenate(self._client.gather(found))
        return rows

    def nearby(self, land: LatentPoints, n_threads: int) -> Nearby:
        """See ``Population``; every part compares its own rows."""
        components, points, lists = (
            on_cluster(self._client, array) for array in (land.components, land.points, land.lists)
        )
        futures = [
            self._client.submit(
                _nearby, part, own, components, points, lists, land.class_starts, land.counts,
                land.temperature, land.visit, pure=False,
            )
            for part, own in zip(self._parts, self._positions, strict=True)
        ]  # fmt: skip
        found = self._client.gather(futures)
        visited = [len(range(size)[land.visit.of(size)]) for size in self.sizes.tolist()]
        starts = np.cumsum([0, *visited])
        return Nearby(
            self._joined([part.near for part in found], starts),
            self._joined([part.own for part in found], starts),
            self._joined([part.likelihood for part in found], starts),
            self._joined([part.spreads for part in found]),
        )

    def gradient(self, numbers: Ints, batch: Batch, start: Start, n_threads: int) -> Gradient:
        """See ``Population``; sums come from the parts, and are added in the order of the parts."""
        if self._factor is None or self._factor[0] is not start:  # sent once per start
            self._factor = start, on_cluster(self._client, start.factor)
        parts, indices, within = zip(*self._asked(numbers), strict=True)
        pieces = [piece_of(batch, own) for own in indices]
        components, *points = self._sent([batch.components, *(batch.points[w] for w, _ in pieces)])
        futures = self._client.map(
            _gradient, parts, within, [piece for _, piece in pieces], points,
            [components] * len(parts), [self._factor[1]] * len(parts), pure=False,
        )  # fmt: skip
        total = Gradient(np.zeros_like(batch.components), np.zeros_like(batch.points))
        for (which, _), found in zip(pieces, self._client.gather(futures), strict=True):
            np.add(total.components, found.components, out=total.components)
            total.points[which] += found.points
        return total

    def _sent(self, arrays: list[Floats]) -> list[Any]:
        """Arrays as arguments of tasks: themselves if one message can hold all, else futures."""
        if sum(array.nbytes for array in arrays) <= MESSAGE_BYTES:
            return arrays
        return [on_cluster(self._client, array) for array in arrays]

    def _asked(self, numbers: Ints) -> Iterator[tuple[Any, Ints, Ints]]:
        """The parts with rows of these drawing numbers.

        With each, the indices of its rows in ``numbers``, and their numbers within the part.
        """
        positions = positions_of(self, numbers)
        owners, within = self._owners[positions], numbers + self._shifts[positions]
        for number, part in enumerate(self._parts):
            own = np.flatnonzero(owners == number)
            if len(own):
                yield part, own, within[own]


@dataclass(frozen=True)
class _Ready:
    """The classes of one part, ready for the algorithms."""

    classes: list[OneClass]
    mean_radii: list[float]
    rows: InnerRows
    drawn: Ints
    """The row of every drawing number, counted within the part."""

    def __sizeof__(self) -> int:
        return int(self.rows.rows.nbytes)

    def sample(self, numbers: Ints) -> Floats:
        """Inner rows by their drawing numbers."""
        return self.rows[self.drawn[numbers]]


def _indices(starts: Ints, positions: Ints) -> Ints:
    """The indices from ``starts[p]`` to ``starts[p + 1]`` of each position p, one after another."""
    return np.concatenate([np.arange(starts[p], starts[p + 1]) for p in positions])


def _starts_of(class_starts: Ints, positions: Ints) -> Ints:
    """The bounds of the classes at these positions if they stand one after another."""
    return np.concatenate(([0], np.cumsum(np.diff(class_starts)[positions])))


def _unmoved(latents: Floats) -> LatentsUpdate:
    return LatentsUpdate(latents, np.zeros(0), np.zeros(len(latents)), 0)


def piece_of(batch: Batch, indices: Ints) -> tuple[Ints, Batch]:
    """The points that these rows of a batch need, and the batch of the rows without the points."""
    which, near = np.unique(batch.near[indices], return_inverse=True)
    nothing = batch.components[:0]
    near = near.reshape(len(indices), -1)
    return which, replace(batch.part(indices), components=nothing, points=nothing, near=near)


def _same(array: Any) -> Any:
    return array


def _by_class(part: Part, coordinates: Coordinates) -> _Ready:
    radii = coordinates.radii(part.rows)
    rows = InnerRows(part.rows, coordinates)
    classes = classes_of(rows, part.members, radii)
    means = [float(np.sort(radii[members]).mean()) for members in part.members]
    drawn = [
        members[of_class.drawing_order]
        for members, of_class in zip(part.members, classes, strict=True)
    ]
    return _Ready(classes, means, rows, np.concatenate(drawn))


def _checksums(part: _Ready) -> list[int]:
    return [rows.checksum() for rows in part.classes]


def _first(part: _Ready, starts: list[Ints | int], class_starts: Ints) -> LatentsUpdate:
    latents = first_latents_of(part.classes, starts, class_starts, n_threads=1)
    return replace(_unmoved(latents), spreads=np.zeros(len(starts)))


def _move(
    part: _Ready, before: LatentsUpdate, class_starts: Ints, components: Floats, latent_reg: float,
    max_passes: int,
) -> LatentsUpdate:  # fmt: skip
    return move_latents_of(
        part.classes, before.latents, class_starts, Metric(components), latent_reg, max_passes,
        n_threads=1,
    )  # fmt: skip


def _nearby(
    part: _Ready, positions: Ints, components: Floats, points: Floats, lists: Ints,
    class_starts: Ints, counts: Floats, temperature: float, visit: RowSubset,
) -> Nearby:  # fmt: skip
    land = LatentPoints(components, points, class_starts, lists, counts, temperature, visit)
    return nearby_of_classes(part.classes, positions.tolist(), land, n_threads=1)


def _gradient(
    part: _Ready, numbers: Ints, batch: Batch, points: Floats, components: Floats, factor: Floats
) -> Gradient:
    rows = Start("", factor).into(part.sample(numbers))
    return gradient(rows, replace(batch, components=components, points=points))
