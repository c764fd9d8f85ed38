"""Rows that stay in their file until they are needed.

A ``RowFile`` has a shape and a dtype, and reads rows from the file when it is sliced.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from latentmetric.core.types import Ints

Reader = Callable[[int, int], np.ndarray[Any, Any]]

LARGE = 2**24
"""Bytes of a memory map to use before their pages are released."""

AROUND = 2**16
"""Bytes that the system maps at least, also for a single row."""


class RowFile:
    """A table in a file: rows are read when they are sliced.

    Parameters
    ----------
    read : callable
        ``read(start, stop)`` gives rows start … stop − 1 as a new array.
    shape : tuple of int
        The number of rows, and of features.
    dtype : dtype
        The type of the numbers, as read.
    feature_names : list of str, default=None
        Of the columns, where the file names them.
    """

    def __init__(
        self, read: Reader, shape: tuple[int, int], dtype: Any, feature_names: Any = None
    ) -> None:
        self.read, self.shape, self.dtype = read, shape, np.dtype(dtype)
        self.feature_names: list[str] | None = feature_names

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """2, as for an array."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole table in memory."""
        return prod(self.shape) * int(self.dtype.itemsize)

    def __getitem__(self, which: slice | Ints) -> np.ndarray[Any, Any]:
        if isinstance(which, slice):
            covered = range(len(self))[which]
            if covered.step == 1:
                return self.read(covered.start, max(covered.start, covered.stop))
            which = np.array(covered, dtype=np.intp)
        indices = np.asarray(which, dtype=np.intp)
        if indices.ndim != 1:
            raise IndexError(f"rows in a file are indexed by slice or list, got {which!r}")
        if not len(indices):
            return self.read(0, 0)
        if (np.diff(indices) == 1).all():
            return self.read(int(indices[0]), int(indices[-1]) + 1)
        return np.concatenate([self.read(index, index + 1) for index in indices.tolist()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("rows in a file cannot become an array without a copy")
        return self.read(0, len(self)).astype(dtype or self.dtype, copy=False)


class SlicedRows(RowFile):
    """Anything with a shape, a dtype and slices: a memory map, an array of h5py or zarr.

    Dimensions after the first are taken as one.
    """

    def __init__(self, table: Any, name: str = "X") -> None:
        if len(table.shape) < 2:
            raise ValueError(
                f"{name} has the shape {table.shape}; rows of features have two dimensions"
            )
        if np.dtype(table.dtype).kind not in "fiub":
            raise ValueError(f"{name} holds {table.dtype}, not numbers")
        self._table, self._name, self._used = table, name, 0
        super().__init__(self._slice, (int(table.shape[0]), prod(table.shape[1:])), table.dtype)

    def _slice(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        with readable(self._name):
            rows = np.array(self._table[start:stop]).reshape(stop - start, self.shape[1])
        self._release(rows.nbytes)
        return rows

    def _release(self, n_bytes: int) -> None:
        """Let pages of a memory map that were used leave this process; they stay in the file.

        The system would do so by itself, but only when memory is short. Pages of a private copy
        (mode "c") are nowhere else.
        """
        self._used += max(n_bytes, AROUND)
        if self._used < LARGE or not isinstance(self._table, np.memmap) or self._table.mode == "c":
            return
        self._used, mapped = 0, self._table._mmap  # type: ignore[attr-defined]
        if hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)


def as_row_file(X: Any) -> RowFile:
    """Rows of a file or a memory map, as a ``RowFile``."""
    return X if isinstance(X, RowFile) else SlicedRows(X)


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Name the file where a library only says what is wrong with it, in one line."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        message = " ".join(str(error).split()) or type(error).__name__
        is_ours = type(error) in (ValueError, FileNotFoundError, IsADirectoryError)
        if is_ours and name in message:
            raise
        raise ValueError(f"{name} cannot be read: {message}") from error
