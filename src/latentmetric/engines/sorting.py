"""Sort the rows of a file by class in one pass: in memory if they are few, else on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.engines.protocol import Progress
from latentmetric.io.rows import RawRows, RowFile

IN_MEMORY_BYTES = 256 * 2**20
"""Rows up to this size are kept in memory."""

READ_BYTES = 64 * 2**20
"""Bytes read at a time."""

Convert = Callable[[Any, int], Floats]
"""Converts a block of rows to floats, or raises; gets the number of the block's first row, too."""


def sorted_by_class(
    rows: RowFile, codes: Ints, dtype: np.dtype[Any], convert: Convert, progress: Progress
) -> tuple[Any, Ints]:
    """The rows sorted by their codes, and the original number of each row.

    Rows of a class keep their order. Rows of more than ``IN_MEMORY_BYTES`` are written to an
    unnamed temporary file, which the system deletes when it is closed.
    """
    order = np.argsort(codes, kind="stable")
    places = np.empty(len(codes), dtype=np.intp)
    places[order] = np.arange(len(codes))
    store = _new_store(rows.shape, dtype)
    step = max(1, READ_BYTES // max(1, rows.shape[1] * dtype.itemsize))
    for start in range(0, len(rows), step):
        block = convert(rows[slice(start, start + step)], start)
        _put(store, block, places[start : start + len(block)])
        progress(start + len(block), len(rows))
    return store, order


def _new_store(shape: tuple[int, int], dtype: np.dtype[Any]) -> Any:
    needed = shape[0] * shape[1] * dtype.itemsize
    if needed <= IN_MEMORY_BYTES:
        return np.empty(shape, dtype=dtype)
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            f"sorting the rows by class needs {needed / 1e9:.1f} GB in {folder}, which has "
            f"{free / 1e9:.1f} GB free; set the environment variable TMPDIR to another folder"
        )
    return RawRows(tempfile.TemporaryFile(), shape, dtype)


def _put(store: Any, block: Any, places: Ints) -> None:
    """Store the rows of a block; on disk, rows with consecutive places are written together."""
    if isinstance(store, np.ndarray):
        store[places] = block
        return
    by_place = np.argsort(places)
    places, block = places[by_place], block[by_place]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(places) != 1) + 1, [len(places)]))
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        store.write(int(places[first]), block[first:end])
