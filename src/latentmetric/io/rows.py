"""Rows that stay in their file until they are needed.

A ``RowFile`` has a shape and a dtype, and reads rows from the file when it is sliced. Files are
read, not mapped, so the process holds only the rows that were read.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from importlib import import_module
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO
from weakref import finalize

import numpy as np

from latentmetric.core.types import Floats, Ints


class RowFile(ABC):
    """A table in a file: rows are read when they are sliced."""

    shape: tuple[int, int]
    """The number of rows, and of features."""
    dtype: np.dtype[Any]
    """The type of the numbers, as read."""
    feature_names: list[str] | None = None
    """Of the columns, where the file names them."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """2, as for an array."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole table in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __getitem__(self, which: slice | Ints) -> np.ndarray[Any, Any]:
        if isinstance(which, slice):
            covered = range(len(self))[which]
            if not len(covered):
                return np.empty((0, self.shape[1]), dtype=self.dtype)
            low, high = min(covered[0], covered[-1]), max(covered[0], covered[-1])
            rows = self._read(low, high + 1)
            return rows if covered.step == 1 else rows[[place - low for place in covered]]
        numbers = np.asarray(which)
        if numbers.ndim != 1:
            raise IndexError(f"rows in a file are indexed by slice or list, got {which!r}")
        if not len(numbers):
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        first = int(numbers[0])
        if int(numbers[-1]) - first == len(numbers) - 1 and np.all(np.diff(numbers) == 1):
            return self._read(first, first + len(numbers))
        return np.concatenate([self._read(int(number), int(number) + 1) for number in numbers])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("rows in a file cannot become an array without a copy")
        return self._read(0, len(self)).astype(dtype or self.dtype, copy=False)

    @abstractmethod
    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Rows start … stop − 1, as a new array."""


class RawRows(RowFile):
    """Rows one after the other in an open file, from an offset on.

    Threads may read at the same time. Where the system cannot read at a given place, as Windows,
    they take turns.
    """

    def __init__(
        self, file: BinaryIO, shape: tuple[int, int], dtype: np.dtype[Any], offset: int = 0
    ) -> None:
        self._file, self._offset = file, offset
        self.shape, self.dtype = shape, dtype
        self._turn = None if hasattr(os, "preadv") and hasattr(os, "pwrite") else Lock()
        finalize(self, file.close)

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        self._fill(rows, start * self.shape[1])
        return rows

    def _fill(self, values: np.ndarray[Any, Any], first: int) -> None:
        """Read numbers one after the other, from number ``first`` of the file on."""
        at = self._offset + first * self.dtype.itemsize
        left = values.reshape(-1).view(np.uint8).data
        while len(left):
            done = self._read_at(at, left)
            if not done:
                raise EOFError(
                    f"{self._file.name} ends after {at} bytes, but its header promises "
                    f"{len(self)} rows of {self.shape[1]} features"
                )
            at, left = at + done, left[done:]

    def write(self, start: int, rows: Floats) -> None:
        """Put rows from row number ``start`` on; the file must be open for writing."""
        at = self._offset + start * self.shape[1] * self.dtype.itemsize
        left = np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8).data
        while len(left):
            done = self._write_at(at, left)
            at, left = at + done, left[done:]

    def _read_at(self, at: int, buffer: memoryview) -> int:
        if self._turn is None:
            return os.preadv(self._file.fileno(), [buffer], at)
        with self._turn:
            self._file.seek(at)
            return int(self._file.readinto(buffer))  # type: ignore[attr-defined]

    def _write_at(self, at: int, content: memoryview) -> int:
        if self._turn is None:
            return os.pwrite(self._file.fileno(), content, at)
        with self._turn:
            self._file.seek(at)
            return self._file.write(content)


class ColumnRawRows(RawRows):
    """Rows of a file that holds one column after the other, as Fortran does.

    A map of such a file would end the process if the file were cut meanwhile.
    """

    def __init__(
        self, file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0
    ) -> None:
        super().__init__(file, (shape[0], prod(shape[1:])), dtype, offset)
        self._row_shape = shape[1:]

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        columns = np.empty((self.shape[1], stop - start), dtype=self.dtype)
        for place, column in enumerate(columns):
            self._fill(column, place * len(self) + start)
        rows = columns.T.reshape(stop - start, *self._row_shape, order="F")
        return np.ascontiguousarray(rows).reshape(stop - start, self.shape[1])


class SlicedRows(RowFile):
    """Arrays of h5py and zarr, and views of memory maps, which can be sliced already."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.shape = (int(table.shape[0]), prod(table.shape[1:]))
        self.dtype = np.dtype(table.dtype)

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        return np.asarray(self._table[start:stop]).reshape(stop - start, self.shape[1])


def is_lazy(X: Any) -> bool:
    """Whether rows should be read a block at a time instead of as one array.

    Parameters
    ----------
    X : Any
        Rows in any container.

    Returns
    -------
    bool
        True for a ``RowFile`` and for a memory map.
    """
    return isinstance(X, RowFile | np.memmap)


def as_row_file(X: Any) -> RowFile:
    """A memory map read instead of mapped, so that what was read leaves memory again."""
    if isinstance(X, RowFile):
        return X
    check_table(X.shape, X.dtype, "X")
    file = _file_behind(X)
    return SlicedRows(X) if file is None else file


def _file_behind(X: np.memmap[Any, Any]) -> RawRows | None:
    """The file of a map, if what it holds is what the map shows: it may be a private copy."""
    base = X
    while isinstance(base.base, np.memmap):
        base = base.base
    by_row, by_column = X.flags.c_contiguous, X.flags.f_contiguous
    if not (by_row or by_column) or not len(X) or base.mode == "c" or base.filename is None:
        return None
    place = X.__array_interface__["data"][0]
    skipped = place - base.__array_interface__["data"][0]
    try:
        opened = Path(base.filename).open("rb")  # noqa: SIM115 closed with the rows
        kind = RawRows if by_row else ColumnRawRows
        file = kind(opened, (X.shape[0], X.shape[1]), X.dtype, base.offset + skipped)
        if not _is_mapped_at(place, os.fstat(opened.fileno())):
            return None
        ends = np.array([0, len(X) - 1])
        same = np.array_equal(file[ends], X[ends], equal_nan=True)
    except (OSError, EOFError):
        return None
    return file if same else None


def _is_mapped_at(place: int, file: os.stat_result) -> bool:
    """Whether memory shows this file, as far as the system tells: another may have its name."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return True
    for line in maps.read_text(errors="replace").splitlines():
        extent, _, _, _, number = line.split(maxsplit=5)[:5]
        start, stop = (int(end, 16) for end in extent.split("-"))
        if start <= place < stop:
            return int(number) == file.st_ino
    return False


def check_table(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> tuple[int, int]:
    """Rows and features of an array; further dimensions, as of images, are taken as one."""
    if len(shape) < 2:
        raise ValueError(f"{name} has the shape {shape}; rows of features have two dimensions")
    if dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {dtype}, not numbers")
    return shape[0], prod(shape[1:])


def needs(module: str, package: str, path: Path) -> Any:
    """A module that reading this file takes."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{path} needs {package} to be read: pip install 'latentmetric[files]'"
        ) from error
