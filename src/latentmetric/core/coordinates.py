"""The coordinates that everything is computed in: centred rows, in units of their spread.

Every number of the paper that has a unit (λ, δ, the 1 in the margin) refers to these coordinates,
so the scale and the position of the data do not matter. Rows are converted on access, a block at
a time; no copy of all rows is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks, squared_norms
from latentmetric.core.parallel import parallel_map
from latentmetric.core.types import Floats, Ints


@dataclass(frozen=True)
class Coordinates:
    """x → (x − centre) / scale, with scale² the mean squared deviation of one feature."""

    centre: Floats
    scale: float

    @classmethod
    def of(cls, rows: Floats, n_threads: int = 1) -> Coordinates:
        """The coordinates in which these rows have mean 0 and mean squared norm d."""
        return cls.with_radii(rows, n_threads)[0]

    @classmethod
    def with_radii(
        cls, rows: Floats, n_threads: int = 1, weights: Floats | None = None
    ) -> tuple[Coordinates, Floats]:
        """The coordinates of ``of``, and ‖x‖² of every row in them; reads the rows twice.

        With weights, one for each row, both means are weighted.
        """
        blocks = list(row_blocks(len(rows), 8 * rows.shape[1]))
        sums, lows, highs = np.empty((3, len(blocks), rows.shape[1]))
        shares = None if weights is None else weights / weights.sum()

        def summarise(number: int) -> None:
            block = rows[blocks[number]]
            if shares is None:
                sums[number] = np.divide(block, len(rows), dtype=np.float64).sum(axis=0)
            else:
                sums[number] = shares[blocks[number]] @ block
            lows[number], highs[number] = block.min(axis=0), block.max(axis=0)

        parallel_map(summarise, range(len(blocks)), n_threads)
        centre = sums.sum(axis=0)
        peak = peak_of(centre, lows.min(axis=0), highs.max(axis=0), rows.dtype)
        if peak == 0:
            return cls(centre, 1.0), np.zeros(len(rows))
        # In units of the peak, nothing overflows and nothing that matters underflows.
        radii = cls(centre, peak).radii(rows, n_threads)
        spread = float(np.average(radii, weights=weights)) / rows.shape[1]
        return cls(centre, peak * float(np.sqrt(spread))), radii / spread

    @property
    def unit(self) -> float:
        """A squared inner distance of 1 in the caller's units, limited to what floats can hold."""
        return max(1e-305, min(self.scale * self.scale, 1e300))

    def radii(self, rows: Floats, n_threads: int = 1) -> Floats:
        """‖x‖² of every row in these coordinates, in float64."""
        radii = np.empty(len(rows))

        def measure(block: slice) -> None:
            centred = rows[block] - self.centre
            centred /= self.scale
            radii[block] = squared_norms(centred)

        parallel_map(measure, list(row_blocks(len(rows), 8 * rows.shape[1])), n_threads)
        return radii

    def origin(self, dtype: np.dtype[Any]) -> Floats:
        """What ``transform`` maps to 0, in float64: the centre, rounded to the rows' dtype."""
        return self.centre.astype(dtype).astype(np.float64)

    def transform(self, rows: Floats, out: Floats | None = None) -> Floats:
        """The rows in these coordinates, in their own dtype; a new array, or ``out``."""
        inside = np.subtract(rows, self.centre.astype(rows.dtype), out=out)
        inside /= rows.dtype.type(self.scale)
        return inside

    def inverse_transform(self, rows: Floats) -> Floats:
        """The rows back in the caller's coordinates."""
        outside: Floats = rows * self.scale
        # Added in float64, but without a copy in float64 of all rows.
        np.add(outside, self.centre, out=outside, casting="same_kind")
        return outside


def peak_of(centre: Floats, low: Floats, high: Floats, dtype: np.dtype[Any]) -> float:
    """The largest deviation of a feature; raise if differences of two rows could overflow."""
    with np.errstate(over="ignore"):
        peak = float(max((high - centre).max(), (centre - low).max()))
    if not peak <= np.finfo(np.result_type(dtype, np.float32)).max / 8:
        raise ValueError(
            f"X holds values from {low.min():g} to {high.max():g}, too far apart to compute with "
            f"in {dtype}; rescale X"
        )
    return peak


class InnerRows:
    """Rows that are converted to inner coordinates on access."""

    def __init__(self, rows: Floats, coordinates: Coordinates) -> None:
        self.rows, self.coordinates = rows, coordinates
        self.n_features = int(rows.shape[1])
        self.dtype: np.dtype[np.floating[Any]] = rows.dtype
        """The dtype that everything is computed in."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice | Ints) -> Floats:
        gathered = self.rows[which]
        out = None if isinstance(which, slice) else gathered
        return self.coordinates.transform(gathered, out=out)

    def under(self, components: Floats, which_rows: Ints | None = None) -> Floats:
        """Map the given rows, or all rows, with the factor of a metric."""
        n_rows = len(self) if which_rows is None else len(which_rows)
        points = np.empty((n_rows, len(components)), dtype=components.dtype)
        for block in row_blocks(n_rows, 4 * self.n_features * self.dtype.itemsize):
            which = block if which_rows is None else which_rows[block]
            gathered = self.rows[which].astype(components.dtype, copy=False)
            out = None if which_rows is None else gathered
            np.matmul(
                self.coordinates.transform(gathered, out=out), components.T, out=points[block]
            )
        return points
