"""The training rows as the algorithms see them: a class at a time, in inner coordinates.

Memory: one block of a class per thread; the caller's rows are not copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import numpy as np

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import row_blocks
from latentmetric.core.metric import Metric, pack
from latentmetric.core.parallel import lazy_property
from latentmetric.core.tuning import CLASS_BLOCK_BYTES, KEPT_SCATTER_BYTES
from latentmetric.core.types import Floats, Ints


class OneClass:
    """The rows of one class in units of the inner coordinates, a block at a time.

    They are centred on the mean of the class: where classes are much farther from each other than
    their rows differ, float32 would lose the differences.
    """

    def __init__(
        self, rows: InnerRows, members: Ints, drawing_order: Ints, keep_scatter: bool = True,
        weights: Floats | None = None,
    ) -> None:  # fmt: skip
        self._rows, self._members = rows, members
        self.weights = weights
        """The weight of every row; None if each counts as one."""
        self.weight: float = len(members) if weights is None else float(weights.sum())
        """The weight of all rows together."""
        self.dtype, self.n_features = rows.dtype, rows.n_features
        self.has_scatter = 4 * len(members) >= rows.n_features
        """Whether a triangle of all pairs of features is at most twice as large as the rows."""
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
        return self._centred[self._members[which]]

    @contextmanager
    def cached(self) -> Iterator[None]:
        """Gather the rows once for the whole block if they fit into memory."""
        if len(self.blocks) == 1:
            self._whole = self._centred[self._members]
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
            rows = self._rows[self._members[block]]
            if self.weights is None:
                total += rows.sum(axis=0, dtype=np.float64)
            else:
                total += self.weights[block] @ rows
        scale, origin = self._rows.coordinates.scale, self._rows.coordinates.origin(self.dtype)
        centre = Coordinates(origin + scale * (total / self.weight), scale)
        return (centre.origin(self.dtype) - origin) / scale

    @lazy_property
    def _centred(self) -> InnerRows:
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

    def weighted(self, values: Floats, block: slice) -> Floats:
        """What belongs to a block of rows, multiplied by their weights."""
        if self.weights is None:
            return values
        weights = self.weights[block].astype(values.dtype)
        return values * weights.reshape(-1, *[1] * (values.ndim - 1))

    def scatter_under(self, metric: Metric) -> float:
        """Σ D²(x, mean) of the class, from one triangle of Σ x xᵀ, each row with its weight."""
        packed = self._kept_scatter
        if packed is None:
            scatter = np.zeros((self.n_features, self.n_features), dtype=self.dtype)
            for block in self.blocks:
                rows = self[block]
                scatter += rows.T @ self.weighted(rows, block)
            packed = pack(scatter)
            if self._keep_scatter:
                self._kept_scatter = packed
        return float(np.dot(metric.packed, packed.astype(np.float64, copy=False)))


def classes_of(
    rows: InnerRows, members: list[Ints], radii: Floats, weights: Floats | None = None
) -> list[OneClass]:
    """The classes with these rows; ``radii`` are ‖x‖² of all rows."""
    scatter_bytes = rows.n_features * (rows.n_features + 1) // 2 * rows.dtype.itemsize
    keep = len(members) * scatter_bytes <= KEPT_SCATTER_BYTES
    return [
        OneClass(
            rows, of_class, np.argsort(radii[of_class], kind="stable"), keep,
            None if weights is None else weights[of_class],
        )
        for of_class in members
    ]  # fmt: skip
