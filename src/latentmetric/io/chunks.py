"""Arrays in chunks, some of which may not be there: rows are not made up of a fill value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np

from latentmetric.io.rows import RowFile

MOST_TRIED = 10_000
"""Chunks beside each other that are looked for before all are taken to be missing."""


@dataclass(frozen=True)
class Chunks:
    """The chunks of an array."""

    shape: tuple[int, ...]
    """Of the array."""
    chunk: tuple[int, ...]
    """The shape of each chunk."""
    is_there: Callable[[tuple[int, ...]], bool]
    """Whether there is a chunk of these numbers."""
    missed: Callable[[tuple[int, ...]], str]
    """What to say and to do if there is not."""

    def check(self, start: int = 0, stop: int | None = None) -> None:
        """Refuse rows of which no chunk is there: the library would give the fill value.

        A chunk beside others may be missing, as zarr leaves out those that hold only that value.
        """
        if 0 in self.shape or not self.shape:
            return
        stop = self.shape[0] if stop is None else stop
        beside = [range(-(-n // size)) for n, size in zip(self.shape, self.chunk, strict=True)][1:]
        for block in range(start // self.chunk[0], -(-stop // self.chunk[0])):
            numbers = ((block, *others) for others in product(*beside))
            if any(self.is_there(one) for one in islice(numbers, MOST_TRIED)):
                continue
            first = block * self.chunk[0]
            last = min(first + self.chunk[0], self.shape[0]) - 1
            raise ValueError(
                f"rows {first} to {last} (counted from 0) are not there: "
                f"{self.missed((block, *(0 for _ in beside)))}"
            )


class RowsOfChunks(RowFile):
    """Rows that are read only if there are chunks that hold them."""

    def __init__(self, rows: RowFile, chunks: Chunks) -> None:
        self._rows, self._chunks = rows, chunks
        self.shape, self.dtype = rows.shape, rows.dtype

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        self._chunks.check(start, stop)
        return self._rows[slice(start, stop)]
