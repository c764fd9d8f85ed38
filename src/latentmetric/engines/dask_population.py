"""The training rows of a fit on the workers of a Dask cluster, class by class.

Every class is in one part, and every part on one worker. A round sends the metric to the parts and
gets latent examples back. A step of the refinement sends each part what its own rows of the batch
need, and gets the sum of their gradients back. The only rows that reach the client are samples,
whose sizes the core bounds.

All tasks depend on the futures of the parts, and nothing is scattered: when a worker is lost, the
scheduler can rebuild whatever was on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from latentmetric.core.classes import OneClass, classes_of
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import row_blocks
from latentmetric.core.metric import Metric
from latentmetric.core.nearby import Landscape, Nearby, Visit
from latentmetric.core.population import (
    Moved,
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
        radii = np.empty(len(sizes))
        for codes, means in zip(
            own_codes, client.gather(client.map(_mean_radii, self._parts)), strict=True
        ):
            radii[codes] = means
        self._mean_radii = radii
        self.codes = np.argsort(radii, kind="stable")
        self.sizes: Ints = sizes[self.codes]
        self.weights: Floats | None = None
        positions = np.argsort(self.codes)
        self._positions = [positions[codes] for codes in own_codes]
        """The positions of every part's classes, in the order of the part."""
        self._owners = owners[self.codes]
        self._shifts = _shifts(self._positions, self.sizes)
        self._factor: tuple[Start, Any] | None = None
        """The start of the last gradient, and the future of its factor."""

    def __len__(self) -> int:
        return len(self.codes)

    def fingerprint_parts(self) -> list[Floats | Ints]:
        """See ``Population``."""
        checksums = np.empty(len(self), dtype=np.int64)
        found = self._client.gather(self._client.map(_checksums, self._parts))
        for positions, own in zip(self._positions, found, strict=True):
            checksums[positions] = own
        return [self._mean_radii, checksums, self.codes, self.sizes]

    def first_latents(
        self, starts: Sequence[Ints | int], class_starts: Ints, n_threads: int
    ) -> Moved:
        """See ``Population``."""
        counts = np.diff(class_starts)
        futures = [
            self._client.submit(_first, part, [starts[position] for position in own], counts[own])
            for part, own in zip(self._parts, self._positions, strict=True)
        ]
        return self._together(futures, class_starts)

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int, lineage: object = None,
    ) -> Moved:  # fmt: skip
        """See ``Population``; the lineage is the list of futures of the parts' latent examples."""
        before = cast("list[Any] | None", lineage)
        if before is None:
            before = [_share_of(own, latents, class_starts) for own in self._positions]
        futures = [
            self._client.submit(_move, part, own, metric.components, latent_reg, max_passes)
            for part, own in zip(self._parts, before, strict=True)
        ]
        return self._together(futures, class_starts)

    def _together(self, futures: list[Any], class_starts: Ints) -> Moved:
        """The results of all parts, class by class in the order of the population."""
        shares = self._client.gather(futures)
        latents = np.empty((class_starts[-1], self.n_features), dtype=self.dtype)
        counts = np.empty(class_starts[-1])
        spreads = np.empty(len(self))
        for own, share in zip(self._positions, shares, strict=True):
            spreads[own] = share.spreads
            for place, position in enumerate(own):
                mine = slice(share.class_starts[place], share.class_starts[place + 1])
                here = slice(class_starts[position], class_starts[position + 1])
                latents[here], counts[here] = share.latents[mine], share.counts[mine]
        return Moved(latents, spreads, counts, max(share.passes for share in shares), futures)

    def sample(self, numbers: Ints) -> Floats:
        """See ``Population``; these rows come to the client."""
        asked = self._asked(numbers)
        found = self._client.map(
            _sample, [a.part for a in asked], [a.numbers for a in asked], pure=False
        )
        rows = np.empty((len(numbers), self.n_features), dtype=self.dtype)
        for one, own in zip(asked, self._client.gather(found), strict=True):
            rows[one.places] = own
        return rows

    def nearby(self, land: Landscape, n_threads: int) -> Nearby:
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
        visited = np.array([len(range(size)[land.visit.of(size)]) for size in self.sizes.tolist()])
        by_class: list[Nearby | None] = [None] * len(self)
        for own, found in zip(self._positions, self._client.gather(futures), strict=True):
            for position, of_class in zip(own, _split(found, visited[own]), strict=True):
                by_class[position] = of_class
        return Nearby.together(cast("list[Nearby]", by_class))

    def gradient(self, numbers: Ints, batch: Batch, start: Start, n_threads: int) -> Gradient:
        """See ``Population``; sums come from the parts, and are added in the order of the parts."""
        asked = self._asked(numbers)
        pieces = [_piece_of(batch, one.places) for one in asked]
        components, *points = self._sent([batch.components, *(piece.points for piece in pieces)])
        futures = self._client.map(
            _gradient, [one.part for one in asked], [one.numbers for one in asked],
            [piece.batch for piece in pieces], points, [components] * len(asked),
            [self._factor_of(start)] * len(asked), pure=False,
        )  # fmt: skip
        total = Gradient(np.zeros_like(batch.components), np.zeros_like(batch.points))
        for piece, found in zip(pieces, self._client.gather(futures), strict=True):
            np.add(total.components, found.components, out=total.components)
            total.points[piece.which] += found.points
        return total

    def _sent(self, arrays: list[Floats]) -> list[Any]:
        """Arrays as arguments of tasks: themselves if one message can hold all, else futures."""
        if sum(array.nbytes for array in arrays) <= MESSAGE_BYTES:
            return arrays
        return [on_cluster(self._client, array) for array in arrays]

    def _factor_of(self, start: Start) -> Any:
        """The future of the start's factor, which is sent once per start."""
        if self._factor is None or self._factor[0] is not start:
            self._factor = start, on_cluster(self._client, start.factor)
        return self._factor[1]

    def _asked(self, numbers: Ints) -> list[_Asked]:
        """The parts that have rows with these drawing numbers."""
        positions = positions_of(self, numbers)
        owners, within = self._owners[positions], numbers + self._shifts[positions]
        places = [np.flatnonzero(owners == part) for part in range(len(self._parts))]
        return [
            _Asked(part, own, within[own])
            for part, own in zip(self._parts, places, strict=True)
            if len(own)
        ]


@dataclass(frozen=True)
class _Asked:
    """A part that has some of the rows that are asked for."""

    part: Any
    places: Ints
    """The places of its rows among those asked for."""
    numbers: Ints
    """The drawing numbers of its rows, counted within the part."""


@dataclass(frozen=True)
class _Piece:
    """What the gradient of one part's rows of a batch needs."""

    which: Ints
    """The numbers of its points among those of the whole batch."""
    points: Floats
    batch: Batch
    """The rest of it, without the factor of the metric."""


@dataclass(frozen=True)
class _Share:
    """The latent examples of one part's classes."""

    latents: Floats
    class_starts: Ints
    spreads: Floats
    counts: Floats
    passes: int


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


def _shifts(positions: list[Ints], sizes: Ints) -> Ints:
    """What to add to drawing numbers of the class at each position to count within its part."""
    shifts = sizes - np.cumsum(sizes)
    for own in positions:
        shifts[own] += np.cumsum(sizes[own]) - sizes[own]
    return shifts


def _share_of(own: Ints, latents: Floats, class_starts: Ints) -> _Share:
    places = [latents[class_starts[position] : class_starts[position + 1]] for position in own]
    starts = np.cumsum([0, *map(len, places)])
    return _placed(np.concatenate(places), starts)


def _placed(latents: Floats, class_starts: Ints) -> _Share:
    """Latent examples that have no rows yet."""
    nothing = np.zeros(len(latents))
    return _Share(latents, class_starts, np.zeros(len(class_starts) - 1), nothing, 0)


def _split(found: Nearby, sizes: Ints) -> list[Nearby]:
    """The classes of a part, each on its own."""
    bounds = np.cumsum(sizes)[:-1]
    fields = (np.split(field, bounds) for field in (found.near, found.own, found.likelihood))
    spreads = np.split(found.spreads, len(sizes))
    return [Nearby(*of_class) for of_class in zip(*fields, spreads, strict=True)]


def _piece_of(batch: Batch, places: Ints) -> _Piece:
    which, near = np.unique(batch.near[places], return_inverse=True)
    nothing = batch.components[:0]
    own = replace(
        batch.part(places), components=nothing, points=nothing, near=near.reshape(len(places), -1)
    )
    return _Piece(which, batch.points[which], own)


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


def _mean_radii(part: _Ready) -> list[float]:
    return part.mean_radii


def _first(part: _Ready, starts: list[Ints | int], counts: Ints) -> _Share:
    class_starts = np.concatenate(([0], np.cumsum(counts)))
    return _placed(first_latents_of(part.classes, starts, class_starts, n_threads=1), class_starts)


def _move(
    part: _Ready, before: _Share, components: Floats, latent_reg: float, max_passes: int
) -> _Share:
    moved = move_latents_of(
        part.classes, before.latents, before.class_starts, Metric(components), latent_reg,
        max_passes, n_threads=1,
    )  # fmt: skip
    return _Share(moved.latents, before.class_starts, moved.spreads, moved.counts, moved.passes)


def _sample(part: _Ready, numbers: Ints) -> Floats:
    return part.sample(numbers)


def _nearby(
    part: _Ready, positions: Ints, components: Floats, points: Floats, lists: Ints,
    class_starts: Ints, counts: Floats, temperature: float, visit: Visit,
) -> Nearby:  # fmt: skip
    land = Landscape(components, points, class_starts, lists, counts, temperature, visit)
    return nearby_of_classes(part.classes, positions.tolist(), land, n_threads=1)


def _gradient(
    part: _Ready, numbers: Ints, batch: Batch, points: Floats, components: Floats, factor: Floats
) -> Gradient:
    rows = Start("", factor).into(part.sample(numbers))
    return gradient(rows, replace(batch, components=components, points=points))
