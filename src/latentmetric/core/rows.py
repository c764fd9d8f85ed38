"""The training rows as the algorithms see them: a class at a time, centred, in units of spread.

Every number of the paper that carries a unit (λ, δ, the 1 in the margin) is meant in these
coordinates, which is why the scale and the place of the data do not matter. Memory: one class
per thread; the rows themselves stay where the caller holds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks, squared_norms
from latentmetric.core.types import Floats, Ints


@dataclass(frozen=True)
class Coordinates:
    """x → (x − centre) / scale, with scale² the mean squared deviation of one feature."""

    centre: Floats
    scale: float

    @classmethod
    def of(cls, rows: Floats) -> Coordinates:
        """The coordinates in which these rows have mean 0 and mean squared norm d."""
        centre = np.zeros(rows.shape[1])
        peak = 0.0
        for block in row_blocks(len(rows), 8 * rows.shape[1]):
            centre += (rows[block].astype(np.float64) / len(rows)).sum(axis=0)
        for block in row_blocks(len(rows), 8 * rows.shape[1]):
            peak = max(peak, float(np.abs(rows[block] - centre).max()))
        if peak == 0:
            return cls(centre, 1.0)
        # In units of the peak nothing overflows and nothing that matters underflows.
        spread = cls(centre, peak).radii(rows).mean() / rows.shape[1]
        return cls(centre, peak * float(np.sqrt(spread)))

    @property
    def unit(self) -> float:
        """What a squared inner distance of 1 is for the caller, kept within what floats hold."""
        return min(self.scale * self.scale, 1e300)

    def radii(self, rows: Floats) -> Floats:
        """‖x‖² of every row in these coordinates, in float64."""
        radii = np.empty(len(rows))
        for block in row_blocks(len(rows), 8 * rows.shape[1]):
            radii[block] = squared_norms((rows[block] - self.centre) / self.scale)
        return radii

    def into(self, rows: Floats, out: Floats | None = None) -> Floats:
        """The rows in these coordinates, in their own dtype; a new array, or ``out``."""
        inside = np.subtract(rows, self.centre.astype(rows.dtype), out=out)
        inside /= rows.dtype.type(self.scale)
        return inside

    def out_of(self, rows: Floats) -> Floats:
        """The rows back in the caller's coordinates."""
        return (rows * self.scale + self.centre).astype(rows.dtype)


@dataclass(frozen=True)
class InnerRows:
    """Rows in inner coordinates, made when they are asked for: nothing is copied before."""

    rows: Floats
    coordinates: Coordinates

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice | Ints) -> Floats:
        return self.coordinates.into(self.rows[which])

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return int(self.rows.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """The dtype all is computed in."""
        return self.rows.dtype

    def under(self, components: Floats, which_rows: Ints | None = None) -> Floats:
        """These rows, or all, under a metric."""
        n_rows = len(self) if which_rows is None else len(which_rows)
        points = np.empty((n_rows, len(components)), dtype=components.dtype)
        for block in row_blocks(n_rows, self.n_features * self.dtype.itemsize):
            which = block if which_rows is None else which_rows[block]
            inside = self.coordinates.into(self.rows[which].astype(components.dtype, copy=False))
            np.matmul(inside, components.T, out=points[block])
        return points


class ClassRows:
    """Rows by class, in an order that depends on the rows alone.

    Inside a class rows are ordered by their distance from the centre, and classes by the mean of
    these distances. Random draws refer to this order, so neither the order of the caller's rows
    nor the names of the classes nor a rotation of the features changes what is drawn.
    """

    def __init__(
        self, rows: Floats, coordinates: Coordinates, codes: Ints, members: list[Ints]
    ) -> None:
        self._rows = rows
        self.coordinates = coordinates
        self.codes = codes
        """The code of the class at each position."""
        self.members = members
        """The row numbers of the class at each position."""

    @classmethod
    def of(cls, rows: Floats, codes: Ints) -> ClassRows:
        """Sort the rows; ``codes`` are 0 … C − 1, one a row, each of them present."""
        coordinates = Coordinates.of(rows)
        radii = coordinates.radii(rows)
        by_class = np.lexsort((radii, codes))
        members = np.split(by_class, np.cumsum(np.bincount(codes))[:-1])
        order = np.argsort([radii[of_class].mean() for of_class in members], kind="stable")
        return cls(rows, coordinates, order, [members[code] for code in order])

    def __len__(self) -> int:
        return len(self.members)

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return int(self._rows.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """The dtype all is computed in."""
        return self._rows.dtype

    @property
    def sizes(self) -> Ints:
        """Rows of the class at each position."""
        return np.array([len(members) for members in self.members])

    def get(self, position: int) -> Floats:
        """The rows of one class, in inner coordinates."""
        gathered = self._rows[self.members[position]]
        return self.coordinates.into(gathered, out=gathered)

    def under(self, components: Floats, position: int) -> Floats:
        """The rows of one class under a metric."""
        inner = InnerRows(self._rows, self.coordinates)
        return inner.under(components, self.members[position])

    def hold_out(self, fraction: float, generator: np.random.Generator) -> tuple[ClassRows, Ints]:
        """Part with a share of every class, never all of it: what stays, and the rows held out."""
        kept, held_out = [], []
        for members in self.members:
            n_out = min(len(members) - 1, round(fraction * len(members)))
            out = np.zeros(len(members), dtype=bool)
            out[generator.choice(len(members), size=n_out, replace=False)] = True
            kept.append(members[~out])
            held_out.append(members[out])
        return ClassRows(self._rows, self.coordinates, self.codes, kept), np.concatenate(held_out)
