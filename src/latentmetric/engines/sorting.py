"""Sort the rows of a file by class in one pass: in memory if they are few, else on disk."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import numpy as np

from latentmetric.core.types import Ints
from latentmetric.engines.protocol import Progress
from latentmetric.io.rows import RawRows, RowFile
from latentmetric.validation.rows import as_floats

IN_MEMORY_BYTES = 256 * 2**20
"""Rows up to this size are kept in memory."""

READ_BYTES = 64 * 2**20
"""Bytes read at a time."""


def sorted_by_class(
    rows: RowFile, codes: Ints, dtype: np.dtype[Any], progress: Progress
) -> tuple[Any, Ints]:
    """The rows sorted by their codes, and the original number of each row.

    Raise ``OverflowError`` on a value that is too large for this dtype, but not for a wider one.

    Rows of a class keep their order. Rows of more than ``IN_MEMORY_BYTES`` are written to an
    unnamed temporary file, which the system deletes when it is closed.
    """
    order = np.argsort(codes, kind="stable")
    positions = np.empty(len(codes), dtype=np.intp)
    positions[order] = np.arange(len(codes))
    store = _new_store(rows.shape, dtype)
    step = max(1, READ_BYTES // max(1, rows.shape[1] * dtype.itemsize))
    for start in range(0, len(rows), step):
        block = as_floats(rows[slice(start, start + step)], start)
        if block.dtype.itemsize > dtype.itemsize:
            raise OverflowError(f"a value of the rows from {start} on does not fit into {dtype}")
        _put(store, block.astype(dtype, copy=False), positions[start : start + len(block)])
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


def _put(store: Any, block: Any, positions: Ints) -> None:
    """Store the rows of a block; on disk, rows with consecutive positions are written together."""
    if isinstance(store, np.ndarray):
        store[positions] = block
        return
    order = np.argsort(positions)
    positions, block = positions[order], block[order]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(positions) != 1) + 1, [len(positions)]))
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        store.write(int(positions[first]), block[first:end])
