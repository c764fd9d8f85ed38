"""The training rows as the algorithms see them: a class at a time, in inner coordinates.

Memory: one block of a class per thread; the caller's rows are not copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self
from zlib import crc32

import numpy as np

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import row_blocks
from latentmetric.core.lazy import lazy_property
from latentmetric.core.metric import Metric, pack
from latentmetric.core.types import Floats, Ints

CLASS_BLOCK_BYTES = 32 * 2**20
"""Bytes of a class's rows that are in memory at a time, per thread."""

KEPT_SCATTER_BYTES = 2**30
"""Limit on the bytes of all classes' scatters kept between rounds; above it, none is kept."""


class OneClass:
    """The rows of one class in units of the inner coordinates, a block at a time.

    They are centred on the mean of the class: where classes are much farther from each other than
    their rows differ, float32 would lose the differences.
    """

    def __init__(
        self, rows: InnerRows, members: Ints, drawing_order: Ints, keep_scatter: bool = True
    ) -> None:
        self._rows, self._members = rows, members
        self.dtype, self.n_features = rows.dtype, rows.n_features
        self.has_scatter = len(members) >= rows.n_features
        """Whether a matrix of all pairs of features is smaller than the rows."""
        self.drawing_order = drawing_order
        """The order of the rows that random draws refer to."""
        self._keep_scatter = keep_scatter
        row_bytes = rows.n_features * rows.dtype.itemsize
        self.blocks = list(row_blocks(len(members), row_bytes, CLASS_BLOCK_BYTES))
        self._whole: Floats | None = None
        self._kept_scatter: Floats | None = None

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, which: slice | Ints) -> Floats:
        if self._whole is not None:
            return self._whole[which]
        return self._from_mean[self._members[which]]

    @contextmanager
    def cached(self) -> Iterator[None]:
        """Gather the rows once for the whole block if they fit into memory."""
        if len(self.blocks) == 1:
            self._whole = self._from_mean[self._members]
        try:
            yield
        finally:
            self._whole = None

    @lazy_property
    def mean(self) -> Floats:
        """The mean of the class in inner coordinates, in float64; its rows are centred on it.

        It is such that subtracting it from the caller's rows is not rounded once more.
        """
        total = np.zeros(self._rows.n_features)
        for block in self.blocks:
            total += self._rows[self._members[block]].sum(axis=0, dtype=np.float64)
        scale, origin = self._rows.coordinates.scale, self._rows.coordinates.origin(self.dtype)
        centre = Coordinates(origin + scale * (total / len(self)), scale)
        return (centre.origin(self.dtype) - origin) / scale

    @lazy_property
    def _from_mean(self) -> InnerRows:
        globally = self._rows.coordinates
        centre = globally.origin(self.dtype) + globally.scale * self.mean
        return InnerRows(self._rows.rows, Coordinates(centre, globally.scale))

    def checksum(self) -> int:
        """A checksum of the rows as the caller passed them, in their order."""
        sum_so_far = 0
        for block in self.blocks:
            rows = self._rows.rows[self._members[block]]
            sum_so_far = crc32(np.ascontiguousarray(rows).data, sum_so_far)
        return sum_so_far

    def _scatter(self) -> Floats:
        """One triangle of Σ x xᵀ."""
        if self._kept_scatter is not None:
            return self._kept_scatter
        n_features = self._rows.n_features
        scatter = np.zeros((n_features, n_features), dtype=self._rows.dtype)
        for block in self.blocks:
            rows = self[block]
            scatter += rows.T @ rows
        packed = pack(scatter)
        if self._keep_scatter:
            self._kept_scatter = packed
        return packed

    def scatter_under(self, metric: Metric) -> float:
        """Σ D²(x, mean) of the class."""
        return float(np.dot(metric.packed, self._scatter().astype(np.float64, copy=False)))


def classes_of(rows: InnerRows, members: list[Ints], radii: Floats) -> list[OneClass]:
    """The classes with these rows; ``radii`` are ‖x‖² of all rows."""
    scatter_bytes = rows.n_features * (rows.n_features + 1) // 2 * rows.dtype.itemsize
    keep = len(members) * scatter_bytes <= KEPT_SCATTER_BYTES
    return [
        OneClass(rows, of_class, np.argsort(radii[of_class], kind="stable"), keep)
        for of_class in members
    ]


class ClassRows:
    """Rows by class, and an order of them that depends on the rows alone.

    Random draws refer to rows of a class ordered by their distance from the centre, and to
    classes ordered by the mean of these distances. So neither the order of the caller's rows nor
    the names of the classes nor a rotation of the features changes what is drawn.
    """

    def __init__(
        self, rows: Any, coordinates: Coordinates, codes: Ints, members: list[Ints],
        radii: Floats,
    ) -> None:  # fmt: skip
        self.coordinates = coordinates
        self.codes = codes
        """The code of the class at each position."""
        self.members = members
        """The row numbers of the class at each position."""
        self.sizes = np.fromiter(map(len, members), dtype=np.intp)
        """Rows of the class at each position."""
        self.n_features = int(rows.shape[1])
        self.dtype: np.dtype[np.floating[Any]] = rows.dtype
        """The dtype that everything is computed in."""
        self._rows = rows
        self.radii = radii
        """‖x‖² of all rows in inner coordinates."""
        self.inner = InnerRows(rows, coordinates)
        """All rows, those of other populations included."""
        self.classes = classes_of(self.inner, members, radii)

    @classmethod
    def of(cls, rows: Any, codes: Ints, n_threads: int = 1) -> Self:
        """Sort the rows by class; ``codes`` has one code per row, and each of 0 … C − 1 occurs."""
        coordinates, radii = Coordinates.with_radii(rows, n_threads)
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        order = np.argsort([np.sort(radii[m]).mean() for m in members], kind="stable")
        return cls(rows, coordinates, order, [members[code] for code in order], radii)

    def __len__(self) -> int:
        return len(self.members)

    def fingerprint_parts(self) -> list[Floats | Ints]:
        """Numbers that identify these rows and classes; computing them reads all rows."""
        checksums = np.array([rows.checksum() for rows in self.classes])
        return [self.radii, checksums, self.codes, self.sizes, *self.members]

    def hold_out(self, fraction: float, generator: np.random.Generator) -> tuple[Self, Ints]:
        """Hold out a share of every class, never all of it: what remains, and the held-out rows."""
        kept, held_out = [], []
        for members, rows in zip(self.members, self.classes, strict=True):
            n_out = min(len(members) - 1, round(fraction * len(members)))
            out = np.zeros(len(members), dtype=bool)
            out[rows.drawing_order[generator.choice(len(members), size=n_out, replace=False)]] = (
                True
            )
            kept.append(members[~out])
            held_out.append(members[out])
        remaining = type(self)(self._rows, self.coordinates, self.codes, kept, self.radii)
        return remaining, np.concatenate(held_out)
