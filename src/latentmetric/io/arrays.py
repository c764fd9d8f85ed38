"""Arrays by name in files of NumPy, HDF5 and zarr: what there is, and rows of one of them.

Listing reads headers only. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO
from weakref import finalize

import numpy as np

from latentmetric.io.rows import (
    ColumnRawRows,
    RawRows,
    RowFile,
    SlicedRows,
    check_table,
)
from latentmetric.validation.labels import as_words

MOST_HEADER_BYTES = 2**16
"""Of an .npy file; NumPy writes a few hundred, unless an array has many named fields."""


class RefusedError(ValueError):
    """An array is there, but is not read: it would run code, or read other files."""


class AbsentError(LookupError):
    """There is nothing of this name."""


class ArrayFile(ABC):
    """The arrays of a file."""

    path: Path
    shapes: dict[str, tuple[int, ...]]
    """By name. The array of a file that holds just one, without a name, is called ""."""
    unopened: dict[str, str]
    """By name, why it cannot be opened: a link may lead nowhere."""

    @abstractmethod
    def rows(self, name: str) -> RowFile:
        """An array of numbers as rows of features."""

    @abstractmethod
    def values(self, name: str) -> np.ndarray[Any, Any]:
        """An array, read."""

    def named(self, name: str) -> str:
        """An array and its file, for messages."""
        return f"{name} of {self.path}" if name else str(self.path)

    def find(self, name: str) -> str:
        """The name, if there is such an array."""
        if name in self.unopened:
            raise ValueError(f"{self.named(name)} cannot be opened: {self.unopened[name]}")
        if name not in self.shapes:
            held = ", ".join(sorted(self.shapes)) if "" not in self.shapes else "one, unnamed"
            raise ValueError(f"{self.path} has no array {name!r}; it holds {held or 'none'}")
        return name

    def only_table(self) -> str:
        """The name of the only array with rows and columns."""
        tables = [name for name, shape in self.shapes.items() if len(shape) >= 2]
        if len(self.shapes) == 1 and not self.unopened:
            return next(iter(self.shapes))
        if len(tables) != 1:
            raise ValueError(
                f"{self.path} holds {len(tables)} arrays with two dimensions or more "
                f"({self.listed()}); name one with key="
            )
        return tables[0]

    def listed(self) -> str:
        """Names with shapes, for messages."""
        held = [
            f"{name} {'×'.join(map(str, shape)) or 'a scalar'}"
            for name, shape in sorted(self.shapes.items())
        ]
        held += [
            f"{name} that cannot be opened ({why})" for name, why in sorted(self.unopened.items())
        ]
        return ", ".join(held) or "no arrays"


class _Npy(ArrayFile):
    def __init__(self, path: Path) -> None:
        self.path, self.unopened = path, {}
        with path.open("rb") as file:
            self.shapes = {"": _npy_header(file, str(path))[0]}

    def rows(self, name: str) -> RowFile:
        return _npy_rows(self.path.open("rb"), self.named(self.find(name)))

    def values(self, name: str) -> np.ndarray[Any, Any]:
        with self.path.open("rb") as file:
            return _npy_values(file, self.named(self.find(name)))


class _Npz(ArrayFile):
    """Members are found by their headers, and unpacked when their rows or values are read."""

    def __init__(self, path: Path) -> None:
        self.path, self.shapes, self.unopened = path, {}, {}
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            for name in names:
                with archive.open(name) as member:
                    self.shapes[name.removesuffix(".npy")] = _npy_header(member, name)[0]

    def rows(self, name: str) -> RowFile:
        return _PackedRows(self.path, self.find(name) + ".npy", self.named(name))

    def values(self, name: str) -> np.ndarray[Any, Any]:
        with self._member(name) as file:
            values = _npy_values(file, self.named(name))
            _refuse_more(file, self.named(name))
            return values

    @contextmanager
    def _member(self, name: str) -> Iterator[Any]:
        with (
            zipfile.ZipFile(self.path) as archive,
            archive.open(self.find(name) + ".npy") as member,
        ):
            yield member


class _PackedRows(RowFile):
    """Rows of a member, unpacked when the first are read: what has a wrong width never is.

    They are in a temporary file, which is deleted when it is closed.
    """

    def __init__(self, path: Path, member: str, name: str) -> None:
        self._archive = zipfile.ZipFile(path)  # as it is now, should another take its name
        finalize(self, self._archive.close)
        self._member, self._name = member, name
        self._turn = Lock()
        self._rows: RowFile | None = None
        with self._archive.open(member) as packed:
            shape, _, dtype = _npy_header(packed, name)
        _refuse_objects(dtype, name)
        self.shape, self.dtype = check_table(shape, dtype, name), dtype

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        with self._turn:
            if self._rows is None:
                self._rows = self._unpacked()
        return self._rows[slice(start, stop)]

    def _unpacked(self) -> RowFile:
        unpacked = tempfile.TemporaryFile()  # noqa: SIM115 it lives as long as the rows
        try:
            with self._archive.open(self._member) as packed:
                _unpack(packed, unpacked, self._name)
        except BaseException:
            unpacked.close()
            raise
        unpacked.seek(0)
        return _npy_rows(unpacked, self._name)


def _unpack(packed: Any, unpacked: BinaryIO, name: str) -> None:
    """Unpack what the header promises: a few kilobytes could become a full disk."""
    start = _npy_start(packed, name)
    shape, _, dtype = _npy_header(BytesIO(start), name)
    _refuse_objects(dtype, name)
    left = prod(shape) * dtype.itemsize
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if left > free:
        raise OSError(
            f"{name} unpacks to {left:,} bytes, but only {free:,} are free in {folder}; make room, "
            "or name another folder for temporary files by TMPDIR"
        )
    unpacked.write(start)
    while left and (block := packed.read(min(left, 2**20))):
        unpacked.write(block)
        left -= len(block)
    _refuse_more(packed, name)


def _refuse_more(packed: Any, name: str) -> None:
    """Refuse data beyond the header's promise; the end of a member also checks its checksum."""
    if packed.read(1):
        raise ValueError(f"{name} holds more bytes of data than its header promises; save it again")


class GroupFile(ArrayFile):
    """A data set of h5py or array of zarr, or a group of them."""

    def __init__(self, path: Path, top: Any, names: Iterable[str]) -> None:
        self.path, self._top, self.shapes, self.unopened = path, top, {}, {}
        if hasattr(top, "shape"):
            self.shapes[""] = tuple(top.shape)
            return
        for name in names:
            self._look_at(name)

    @abstractmethod
    def _get(self, name: str) -> Any:
        """The array or group of this name; raise ``AbsentError`` or ``RefusedError`` where due."""

    def _look_at(self, name: str) -> None:
        """Note the shape of an array; groups have none, nor have data sets that hold nothing."""
        try:
            shape = getattr(self._get(name), "shape", None)
        except (KeyError, OSError, RuntimeError, RefusedError) as error:
            self.unopened[name] = " ".join(str(error).split())
            return
        if shape is not None:
            self.shapes[name] = tuple(shape)

    def find(self, name: str) -> str:
        """The name, which may also lead into a group: "images/features"."""
        if name not in self.shapes and name not in self.unopened:
            with suppress(AbsentError):
                self._look_at(name)
        return super().find(name)

    def _array(self, name: str) -> Any:
        return self._get(self.find(name)) if name else self._top

    def rows(self, name: str) -> RowFile:
        """An array of numbers as rows of features."""
        array = self._array(name)
        check_table(array.shape, np.dtype(array.dtype), self.named(name))
        return SlicedRows(array)

    def values(self, name: str) -> np.ndarray[Any, Any]:
        """An array, read, text of any length as such."""
        array = self._array(name)
        if getattr(array.dtype, "kind", "") == "O" and hasattr(array, "asstr"):
            try:
                array = array.asstr()
            except TypeError as error:
                message = f"{self.named(name)} holds references or lists, not labels"
                raise ValueError(message) from error
        values = np.asarray(array[...])
        if values.dtype.kind in ("O", "T"):
            values = as_words(values, self.named(name))
        return values


def open_npy(path: Path) -> ArrayFile:
    """The array of an .npy file, which has no name."""
    return _Npy(path)


def open_npz(path: Path) -> ArrayFile:
    """The arrays of an .npz file."""
    return _Npz(path)


def _npy_rows(file: BinaryIO, name: str) -> RowFile:
    try:
        shape, fortran_order, dtype = _npy_header(file, name)
        _refuse_objects(dtype, name)
        table = check_table(shape, dtype, name)
        _check_size(file, shape, dtype, name)
        if fortran_order:
            return ColumnRawRows(file, shape, dtype, file.tell())
        return RawRows(file, table, dtype, file.tell())
    except BaseException:
        file.close()
        raise


def _npy_values(file: Any, name: str) -> np.ndarray[Any, Any]:
    shape, fortran_order, dtype = _npy_header(file, name)
    _refuse_objects(dtype, name)
    n_bytes = prod(shape) * dtype.itemsize
    data = file.read(n_bytes)
    if len(data) < n_bytes:
        raise EOFError(
            f"{name} ends after {len(data)} bytes of data, but its header promises {n_bytes}"
        )
    values: np.ndarray[Any, Any] = np.frombuffer(data, dtype)
    return values.reshape(shape, order="F" if fortran_order else "C")


def _npy_header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and kind of an array; the file is then at its data."""
    held = BytesIO(_npy_start(file, name))
    try:
        version = np.lib.format.read_magic(held)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
            # Only the names of fields may differ, and arrays with fields are refused.
            (3, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran_order, dtype = read_header(held)
    except Exception as error:  # its parser can raise almost anything
        raise ValueError(f"{name} has no readable .npy header: {error}") from error
    if any(not 0 <= size < 2**62 for size in shape) or prod(shape) >= 2**62:
        raise ValueError(f"{name} claims the shape {shape} in its header, which is impossible")
    return shape, fortran_order, dtype


def _npy_start(file: Any, name: str) -> bytes:
    """The bytes before the data; a header of gigabytes is not read."""
    start: bytes = file.read(8)
    length: bytes = file.read(2 if start[6:7] == b"\x01" else 4)
    n_bytes = int.from_bytes(length, "little")
    if n_bytes > MOST_HEADER_BYTES:
        raise ValueError(
            f"{name} has no readable .npy header: it takes {n_bytes} bytes, more than "
            f"{MOST_HEADER_BYTES}"
        )
    header: bytes = file.read(n_bytes)
    return start + length + header


def _refuse_objects(dtype: np.dtype[Any], name: str) -> None:
    if dtype.hasobject:
        raise ValueError(
            f"{name} holds pickled objects ({dtype}), not numbers or text, and is not opened: "
            "pickles can run code; save numbers, or strings with dtype=str"
        )


def _check_size(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    held = os.fstat(file.fileno()).st_size - file.tell()
    if held < prod(shape) * dtype.itemsize:
        raise EOFError(
            f"{name} ends after {held} bytes of data, but its header promises "
            f"{shape[0]} rows of {prod(shape[1:])} features, {prod(shape) * dtype.itemsize} bytes"
        )
