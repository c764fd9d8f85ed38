"""Every format of file that is read, in one table: ``FORMATS``.

A format is a function that opens a file and gives an ``ArrayFile``, for arrays by name, or a
``ColumnFile``. Opening reads no rows of binary files, and nothing is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np

from latentmetric.io.choosing import Choice, ColumnFile
from latentmetric.io.rows import RowFile, SlicedRows, needs, readable
from latentmetric.io.text import TextFile
from latentmetric.validation.labels import as_words, text_array, words_of

NO_PICKLES = "pickles can run code; save numbers, or text with dtype=str"


class ArrayFile:
    """The arrays of a file.

    Parameters
    ----------
    path : Path
    arrays : dict of str to array
        By name: whatever has ``shape``, ``dtype`` and slices. The array of a file that holds just
        one, without a name, is called "".
    group : mapping, default=None
        Where arrays are looked for that are not listed, such as "images/features".
    """

    def __init__(self, path: Path, arrays: dict[str, Any], group: Any = None) -> None:
        self.path, self._group = path, group
        self._arrays: dict[str, Any] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name, array in arrays.items():
            self._add(name, array)

    def _add(self, name: str, array: Any) -> None:
        """Note an array; groups have no shape, nor have data sets that hold nothing."""
        if getattr(array, "shape", None) is None:
            return
        codecs = (*getattr(array, "filters", ()), *getattr(array, "compressors", ()))
        if any(getattr(codec, "codec_id", "") == "pickle" for codec in codecs):
            raise ValueError(f"{self.named(name)} holds pickled objects; {NO_PICKLES}")
        self._arrays[name], self.shapes[name] = array, tuple(array.shape)

    def find(self, name: str) -> str:
        """The name, if there is such an array."""
        if name not in self._arrays and self._group is not None:
            self._add(name, self._group.get(name))
        if name not in self._arrays:
            held = ", ".join(sorted(self.shapes)) if "" not in self.shapes else "one, unnamed"
            raise ValueError(f"{self.path} has no array {name!r}; it holds {held or 'none'}")
        return name

    def rows(self, name: str) -> RowFile:
        """An array of numbers as rows of features."""
        return SlicedRows(self._arrays[self.find(name)], self.named(name))

    def values(self, name: str) -> np.ndarray[Any, Any]:
        """An array, read; text of any length as such."""
        array = self._arrays[self.find(name)]
        if getattr(array.dtype, "kind", "") == "O" and hasattr(array, "asstr"):
            array = array.asstr()
        values = np.array(array[...])
        return as_words(values, self.named(name)) if values.dtype.kind in "OT" else values

    def named(self, name: str) -> str:
        """An array and its file, for messages."""
        return f"{name} of {self.path}" if name else str(self.path)

    def listed(self) -> str:
        """Names with shapes, for messages."""
        shapes = sorted(self.shapes.items())
        held = [f"{name} {'×'.join(map(str, shape)) or 'a scalar'}" for name, shape in shapes]
        return ", ".join(held) or "no arrays"


def open_npy(path: Path, choice: Choice) -> ArrayFile:
    """The array of an .npy file, which has no name and stays in the file."""
    with path.open("rb") as file:
        _read_header(file)
    return ArrayFile(path, {"": np.lib.format.open_memmap(path, mode="r")})


def open_npz(path: Path, choice: Choice) -> ArrayFile:
    """The arrays of an .npz file, each read when it is needed."""
    if not is_zipfile(path):
        raise ValueError("it is no zip file, or was cut short")
    with np.load(path, allow_pickle=False) as file:
        return ArrayFile(path, {name: _Member(path, name, file.zip) for name in file.files})


class _Member:
    """An array of an .npz file; its header says what it holds."""

    def __init__(self, path: Path, name: str, archive: ZipFile) -> None:
        self._path, self._name = path, name
        with archive.open(f"{name}.npy") as member:
            self.shape, self.dtype = _read_header(member)

    def __getitem__(self, which: Any) -> np.ndarray[Any, Any]:
        return self._array[which]

    @cached_property
    def _array(self) -> np.ndarray[Any, Any]:
        with np.load(self._path, allow_pickle=False) as file:
            values: np.ndarray[Any, Any] = file[self._name]
            return values


def _read_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and dtype of an array of NumPy; refuse objects."""
    from numpy.lib import format as npy

    is_old = npy.read_magic(file) == (1, 0)
    read = npy.read_array_header_1_0 if is_old else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError(f"it holds pickled objects; {NO_PICKLES}")
    return shape, dtype


def open_hdf5(path: Path, choice: Choice) -> ArrayFile:
    """The data sets of an HDF5 file."""
    top = needs("h5py", "files", path).File(path, "r")
    return ArrayFile(path, dict(top.items()), top)


def open_zarr(path: Path, choice: Choice) -> ArrayFile:
    """The arrays of a zarr folder."""
    top = needs("zarr", "files", path).open(path, mode="r")
    return (
        ArrayFile(path, {"": top})
        if hasattr(top, "shape")
        else ArrayFile(path, dict(top.arrays()), top)
    )


class BinaryColumns(ColumnFile):
    """Columns with a schema of pyarrow, whose rows are read a block at a time.

    Parameters
    ----------
    path : Path
    schema : pyarrow.Schema
    n_rows : int
    read : callable
        ``read(names, start, stop)`` gives rows start … stop − 1 of some columns as a table.
    """

    def __init__(
        self, path: Path, schema: Any, n_rows: int, read: Callable[[list[str], int, int], Any]
    ) -> None:
        from pyarrow.types import is_dictionary

        self.name, self.n_rows, self.read = str(path), n_rows, read
        self.names = list(schema.names)
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise ValueError(
                f"{path} has several columns {twice[0]!r}: give each a name of its own"
            )
        self.types = [held.value_type if is_dictionary(held) else held for held in schema.types]
        self.kinds = [_kind(held) for held in self.types]
        if "__index_level_0__" in self.names:
            self.index_column = self.names.index("__index_level_0__")

    def described(self, column: int) -> str:
        """The type of a column."""
        held = str(self.types[column])
        return "text" if held in ("string", "large_string") else held

    def numbers(self, columns: Sequence[int], choice: Choice) -> RowFile:
        """Columns of numbers, or one of lists, as rows that stay in the file."""
        return ColumnRows(self, list(columns), choice.missing)

    def labels(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column, without objects; raise if a value is missing."""
        held, where = (
            self._column(column, "labels"),
            f"column {self.names[column]!r} of {self.name}",
        )
        _check_no_nulls(held, self, column, 0)
        values: np.ndarray[Any, Any] = held.to_numpy()
        if values.dtype.kind != "O":
            return values
        if self.kinds[column] == "other":
            values = np.array(held.to_pylist(), dtype=object)  # a uuid as such, not its bytes
        return as_words(values, where)

    def ids(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column of whole numbers as such, of anything else as text."""
        held, where = self._column(column, "an id"), f"column {self.names[column]!r} of {self.name}"
        if not held.null_count:
            values: np.ndarray[Any, Any] = held.to_numpy()
            if values.dtype.kind in "iu":
                return values
        words = ["" if word is None else word for word in held.to_pylist()]
        return text_array(words_of(words, where), where)

    def _column(self, column: int, role: str) -> Any:
        name = self.names[column]
        if self.kinds[column] in ("list", "nested"):
            raise ValueError(
                f"{self.name}: column {name!r} is nested ({self.types[column]}), not {role}"
            )
        return self.read([name], 0, self.n_rows).column(0).cast(self.types[column])


class ColumnRows(RowFile):
    """Columns of numbers side by side, or one column whose cells are lists of equal length."""

    def __init__(self, file: BinaryColumns, columns: list[int], missing: bool) -> None:
        from pyarrow import float64, types

        self._file, self._columns, self._missing = file, columns, missing
        self._names = [file.names[i] for i in columns]
        self._types = [file.types[i] for i in columns]
        self._of_lists = [file.kinds[i] for i in columns] == ["list"]
        for i in columns:
            if file.kinds[i] != "number" and not self._of_lists:
                raise ValueError(
                    f"{file.name}: column {file.names[i]!r} holds {file.types[i]}, not numbers"
                )
        width = len(columns)
        if self._of_lists:
            first = file.read(self._names, 0, 1).column(0).to_pylist()
            width = len(first[0] or ()) if first else 0
            self._types = [self._types[0].value_type]
        self._types = [
            float64()
            if types.is_decimal(held) or (missing and not types.is_floating(held))
            else held
            for held in self._types
        ]
        self.dtype = np.result_type(*(held.to_pandas_dtype() for held in self._types))
        self.shape = (file.n_rows, width)
        self.feature_names = None if self._of_lists else self._names

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        with readable(self._file.name):
            table = self._file.read(self._names, start, stop)
            if self._of_lists:
                return self._from_lists(table.column(0), start)
            rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
            for k, i in enumerate(self._columns):
                column = table.column(k).cast(self._file.types[i])
                if not self._missing:
                    _check_no_nulls(column, self._file, i, start)
                rows[:, k] = column.cast(self._types[k]).to_numpy()
            return rows

    def _from_lists(self, column: Any, start: int) -> np.ndarray[Any, Any]:
        import pyarrow.compute as pc

        where, width = f"{self._file.name}: column {self._names[0]!r}", self.shape[1]
        _check_no_nulls(column, self._file, self._columns[0], start)
        lengths = pc.list_value_length(column).to_numpy()
        if (lengths != width).any():
            row = int((lengths != width).argmax())
            raise ValueError(
                f"{where} has {lengths[row]} numbers in row {start + row} (counted from 0), but "
                f"{width} in row 0"
            )
        values = pc.list_flatten(column)
        if values.null_count:
            row = int(values.is_null().to_numpy().argmax()) // width
            raise ValueError(f"{where} lacks a number in row {start + row} (counted from 0)")
        return np.array(values.to_numpy(), dtype=self.dtype).reshape(len(column), width)


def open_parquet(path: Path, choice: Choice) -> BinaryColumns:
    """The columns of a Parquet file; row groups are read when rows of them are needed."""
    file = needs("pyarrow.parquet", "cli", path).ParquetFile(path, memory_map=True)
    groups = range(file.metadata.num_row_groups)
    starts = np.cumsum([0, *(file.metadata.row_group(group).num_rows for group in groups)])

    def read(names: list[str], start: int, stop: int) -> Any:
        first, last = np.searchsorted(starts, start, "right") - 1, np.searchsorted(starts, stop)
        table = file.read_row_groups(list(range(first, last)), columns=names)
        # "a.b" also gives the field b of a column a
        return table.select(names).slice(start - int(starts[first]), stop - start)

    return BinaryColumns(path, file.schema_arrow, file.metadata.num_rows, read)


def open_arrow(path: Path, choice: Choice) -> BinaryColumns:
    """The columns of an Arrow file or stream, mapped; what is compressed is unpacked."""
    pyarrow, ipc = needs("pyarrow", "cli", path), needs("pyarrow.ipc", "cli", path)
    file = pyarrow.memory_map(str(path))
    try:
        table = ipc.open_file(file).read_all()
    except pyarrow.ArrowInvalid:
        file.seek(0)
        table = ipc.open_stream(file).read_all()

    def read(names: list[str], start: int, stop: int) -> Any:
        part = table.select(names).slice(start, stop - start)
        part.validate(full=True)  # a damaged offset would end the process
        return part

    return BinaryColumns(path, table.schema, len(table), read)


def _kind(held: Any) -> str:
    """See ``ColumnFile.kinds``; decimals are numbers, bytes are text, dates are "other"."""
    from pyarrow import types

    if hasattr(held, "value_type") and types.is_nested(held) and not types.is_map(held):
        return "list" if _kind(held.value_type) == "number" else "nested"
    if types.is_nested(held):
        return "nested"
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(test(held) for test in tests):
        return "number"
    plain = str(held).removeprefix("large_").removesuffix("_view")
    return "text" if plain.startswith(("string", "binary", "fixed_size_binary")) else "other"


def _check_no_nulls(column: Any, file: BinaryColumns, index: int, start: int) -> None:
    if column.null_count:
        row = start + int(column.is_null().to_numpy().argmax())
        raise ValueError(
            f"{file.name}: column {file.names[index]!r} has no value in row {row} (counted from "
            "0); fill it in, or fit with --impute"
        )


def open_text(path: Path, choice: Choice, delimiter: str | None = None) -> TextFile:
    """The columns of a table in text, read."""
    return TextFile(path, choice, str(path), delimiter)


FORMATS: dict[str, Callable[[Path, Choice], ArrayFile | ColumnFile]] = {
    ".csv": open_text,
    ".csv.gz": open_text,
    ".tsv": partial(open_text, delimiter="\t"),
    ".tsv.gz": partial(open_text, delimiter="\t"),
    ".txt": open_text,
    ".txt.gz": open_text,
    ".npy": open_npy,
    ".npz": open_npz,
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".zarr": open_zarr,
    ".parquet": open_parquet,
    ".arrow": open_arrow,
    ".feather": open_arrow,
}
"""How a file is opened, by the end of its name."""

SIMILAR = 0.75
"""From this share of equal characters on, a name may have been meant by another."""


def suffixes() -> list[str]:
    """How names of files that can be read end."""
    return list(FORMATS)


def similar_name(path: Path) -> str:
    """What may have been meant by a name that does not exist, for messages; empty if unknown."""
    try:
        names = [found.name for found in path.parent.iterdir()]
    except OSError:
        return ""
    near = get_close_matches(path.name, names, 1, SIMILAR)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def open_file(path: Path, choice: Choice) -> ArrayFile | ColumnFile:
    """Open a file by the end of its name."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist{similar_name(path)}")
    suffix = next((end for end in FORMATS if path.name.lower().endswith(end)), None)
    if suffix is None:
        raise ValueError(f"{path} must end in one of {', '.join(sorted(FORMATS))}")
    if path.is_dir() and suffix != ".zarr":
        raise IsADirectoryError(f"{path} is a folder, not a file")
    with readable(str(path)):
        return FORMATS[suffix](path, choice)
