"""Open a table of numbers in a file without reading it: .npy, .npz, .h5, .zarr, .parquet.

What comes back has a shape and a dtype and gives rows by slice; a slice is read from the file
when it is asked for. Files are read, not mapped, so the memory of the process stays at what was
asked for.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO
from weakref import finalize

import numpy as np

from latentmetric.core.types import Floats, Ints


class RowFile(ABC):
    """A table in a file: rows are read when they are sliced."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

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
            raise IndexError(f"rows in a file are asked for by slice or list, got {which!r}")
        if not len(numbers):
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        first = int(numbers[0])
        if int(numbers[-1]) - first == len(numbers) - 1 and np.all(np.diff(numbers) == 1):
            return self._read(first, first + len(numbers))
        return np.concatenate([self._read(int(number), int(number) + 1) for number in numbers])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("rows in a file become an array only by a copy")
        return self._read(0, len(self)).astype(dtype or self.dtype, copy=False)

    @abstractmethod
    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Rows start … stop − 1, as a new array."""


class RawRows(RowFile):
    """Rows one after the other in an open file, from an offset on."""

    def __init__(
        self, file: BinaryIO, shape: tuple[int, int], dtype: np.dtype[Any], offset: int = 0
    ) -> None:
        self._file, self._offset = file, offset
        self.shape, self.dtype = shape, dtype
        finalize(self, file.close)

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        at = self._offset + start * self.shape[1] * self.dtype.itemsize
        left = rows.reshape(-1).view(np.uint8).data
        while len(left):
            done = os.preadv(self._file.fileno(), [left], at)
            if not done:
                raise EOFError(
                    f"{self._file.name} ends after {at} bytes, but its header promises "
                    f"{len(self)} rows of {self.shape[1]} features"
                )
            at, left = at + done, left[done:]
        return rows

    def write(self, start: int, rows: Floats) -> None:
        """Put rows from row number ``start`` on; the file must be open for writing."""
        at = self._offset + start * self.shape[1] * self.dtype.itemsize
        left = np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8).data
        while len(left):
            done = os.pwrite(self._file.fileno(), left, at)
            at, left = at + done, left[done:]


class _Sliced(RowFile):
    """What h5py and zarr give: slices already work."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.shape, self.dtype = tuple(table.shape), np.dtype(table.dtype)

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        return np.asarray(self._table[start:stop])


class _ParquetRows(RowFile):
    """Columns of a parquet file; whole row groups are read, and the rows asked for kept."""

    def __init__(self, path: Path, columns: list[str] | None) -> None:
        parquet = _needs("pyarrow.parquet", "pyarrow", path)
        self._file = parquet.ParquetFile(path)
        schema = self._file.schema_arrow
        self.columns = columns or [field.name for field in schema if _is_number(field.type)]
        missing = sorted(set(self.columns) - set(schema.names))
        if missing or not self.columns:
            raise ValueError(
                f"{path} has the columns {schema.names}, "
                + (f"but not {missing}" if missing else "none of them numeric")
            )
        sizes = [
            self._file.metadata.row_group(group).num_rows
            for group in range(self._file.num_row_groups)
        ]
        self._starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
        kinds = [schema.field(name).type.to_pandas_dtype() for name in self.columns]
        self.shape = (int(self._starts[-1]), len(self.columns))
        self.dtype = np.result_type(*kinds)

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        last = int(np.searchsorted(self._starts, stop, side="left"))
        groups = list(range(first, last))
        if start >= stop or not groups:
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        table = self._file.read_row_groups(groups, columns=self.columns)
        table = table.slice(start - int(self._starts[first]), stop - start)
        rows = np.empty((len(table), self.shape[1]), dtype=self.dtype)
        for place, name in enumerate(self.columns):
            column = table.column(name)
            if column.null_count:
                row = start + column.is_null().to_numpy().argmax()
                raise ValueError(f"column {name!r} has no value in row {row}")
            rows[:, place] = column.to_numpy()
        return rows


def open_rows(
    path: str | Path, key: str | None = None, columns: list[str] | None = None
) -> RowFile:
    """Open a table of numbers without reading it.

    Parameters
    ----------
    path : path
        .npy, .npz, .h5, .zarr or .parquet.
    key : str, default=None
        The array of an .npz, the data set of an .h5, the array of a .zarr group; None takes the
        only one with two dimensions.
    columns : list of str, default=None
        The columns of a .parquet; None takes those that hold numbers.

    Returns
    -------
    RowFile

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from latentmetric.io import open_rows
    >>> path = tempfile.mktemp(suffix=".npy")
    >>> np.save(path, np.arange(6.0).reshape(3, 2))
    >>> open_rows(path)[1:]
    array([[2., 3.],
           [4., 5.]])
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    openers: dict[str, Callable[[], RowFile]] = {
        ".npy": lambda: _open_npy(path.open("rb"), str(path)),
        ".npz": lambda: _open_npz(path, key),
        ".h5": lambda: _open_group(_needs("h5py", "h5py", path).File(path, "r"), key, path),
        ".zarr": lambda: _open_group(_needs("zarr", "zarr", path).open(path, mode="r"), key, path),
        ".parquet": lambda: _ParquetRows(path, columns),
    }
    openers[".hdf5"] = openers[".h5"]
    if path.suffix not in openers:
        raise ValueError(f"{path} must end in one of {', '.join(sorted(openers))}")
    return openers[path.suffix]()


def is_lazy(X: Any) -> bool:
    """Whether rows should be read a block at a time instead of as one array."""
    return isinstance(X, RowFile | np.memmap)


def as_row_file(X: Any) -> RowFile:
    """A memory map read instead of mapped, so that what was read leaves memory again."""
    if isinstance(X, RowFile):
        return X
    _check_table(X.shape, X.dtype, "X")
    file = _file_behind(X)
    return _Sliced(X) if file is None else file


def _file_behind(X: np.memmap[Any, Any]) -> RawRows | None:
    """The file of a map, if what it holds is what the map shows: it may be a private copy."""
    base = X
    while isinstance(base.base, np.memmap):
        base = base.base
    if not X.flags.c_contiguous or not len(X) or base.mode == "c" or base.filename is None:
        return None
    skipped = X.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    try:
        opened = Path(base.filename).open("rb")  # noqa: SIM115 closed with the rows
        file = RawRows(opened, (X.shape[0], X.shape[1]), X.dtype, base.offset + skipped)
        ends = np.array([0, len(X) - 1])
        same = np.array_equal(file[ends], X[ends], equal_nan=True)
    except (OSError, EOFError):
        return None
    return file if same else None


def _open_npy(file: BinaryIO, name: str) -> RowFile:
    try:
        shape, dtype = _npy_header(file, name)
        return RawRows(file, _check_table(shape, dtype, name), dtype, file.tell())
    except BaseException:
        file.close()
        raise


def _npy_header(file: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(file)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran_order, dtype = read_header(file)
    except (ValueError, KeyError, EOFError) as error:
        raise ValueError(f"{name} has no readable .npy header: {error}") from error
    if fortran_order and len(shape) > 1:
        raise ValueError(f"{name} is in Fortran order; save numpy.ascontiguousarray of it")
    return shape, dtype


def _open_npz(path: Path, key: str | None) -> RowFile:
    """Unpacked once, to a file that is gone when it is closed."""
    with zipfile.ZipFile(path) as archive:
        names = {Path(name).stem: name for name in archive.namelist() if name.endswith(".npy")}
        if key is None:
            key = _only_table({name: _npy_shape(archive, names[name]) for name in names}, path)
        if key not in names:
            raise ValueError(f"{path} holds {sorted(names)}, but no array {key!r}")
        unpacked = tempfile.TemporaryFile()  # noqa: SIM115 it lives as long as the rows
        with archive.open(names[key]) as packed:
            copyfileobj(packed, unpacked, 2**20)
    unpacked.seek(0)
    return _open_npy(unpacked, f"{key} of {path}")


def _npy_shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(name) as file:
        return _npy_header(file, name)[0]


def _open_group(group: Any, key: str | None, path: Path) -> RowFile:
    if not hasattr(group, "shape"):
        if key is None:
            shapes = {name: getattr(group[name], "shape", ()) for name in group}
            key = _only_table(shapes, path)
        if key not in group:
            raise ValueError(f"{path} holds {sorted(group)}, but no {key!r}")
        group = group[key]
    _check_table(group.shape, np.dtype(group.dtype), str(path))
    return _Sliced(group)


def _only_table(shapes: dict[str, tuple[int, ...]], path: Path) -> str:
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(tables) != 1:
        raise ValueError(
            f"{path} holds {len(tables)} arrays with two dimensions ({shapes}); name one with key="
        )
    return tables[0]


def _check_table(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(f"{name} has the shape {shape}; rows of features have two dimensions")
    if dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {dtype}, not numbers")
    return shape[0], shape[1]


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def _needs(module: str, package: str, path: Path) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{path} needs {package} to be read: pip install 'latentmetric[files]'"
        ) from error
