"""Sort the rows of a file by class in one pass: in memory if they are few, else on disk."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from typing import Any

import numpy as np

from latentmetric.core.types import Ints
from latentmetric.engines.protocol import Progress
from latentmetric.io.rows import RowFile, as_row_file
from latentmetric.validation.rows import as_floats, float_dtypes

IN_MEMORY_BYTES = 256 * 2**20
"""Rows up to this size are kept in memory."""

READ_BYTES = 32 * 2**20
"""Bytes read at a time."""


def sorted_by_class(
    rows: RowFile, codes: Ints, progress: Progress, dtype: np.dtype[Any] | None = None
) -> tuple[Any, Ints]:
    """The rows as floats, sorted by their codes, and the original number of each row.

    Rows of a class keep their order. If a value does not fit into float32, reading starts again in
    float64.
    """
    dtype = dtype or float_dtypes(rows.dtype)[0]
    order = np.argsort(codes, kind="stable")
    positions = np.argsort(order)
    table = _new_table(rows.shape, dtype)
    step = max(1, READ_BYTES // max(1, rows.shape[1] * dtype.itemsize))
    for start in range(0, len(rows), step):
        block = as_floats(rows[slice(start, start + step)], start)
        if block.dtype.itemsize > dtype.itemsize:
            return sorted_by_class(rows, codes, progress, block.dtype)
        table[positions[start : start + len(block)]] = block
        if isinstance(table, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
            table._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
        progress(start + len(block), len(rows))
    return as_row_file(table) if isinstance(table, np.memmap) else table, order


def _new_table(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array in memory, or a map of an unnamed file that the system deletes when it is closed."""
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
    with tempfile.TemporaryFile() as file:  # the map keeps it
        return np.memmap(file, dtype, "w+", shape=shape)
