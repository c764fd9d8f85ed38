"""Every format of file that is read, in one table: ``FORMATS``.

A format is a function that opens a file and gives its arrays by name (``ArrayFile``) or its
columns (``ColumnFile``; ``TextFile`` for text). Opening reads no rows of binary files, and nothing
is ever unpickled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.io.choosing import Choice
from latentmetric.io.rows import RowFile, SlicedRows, needs, readable
from latentmetric.io.text import TextFile
from latentmetric.validation.labels import as_words, text_array, words_of


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
            raise ValueError(f"{self.named(name)} holds pickled objects, which can run code")
        self._arrays[name], self.shapes[name] = array, tuple(array.shape)

    def find(self, name: str) -> str:
        """The name, if there is such an array."""
        if name not in self._arrays and self._group is not None:
            self._add(name, self._group.get(name))
        if name not in self._arrays:
            raise ValueError(f"{self.path} has no array {name!r}; it holds {self.listed()}")
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
        return as_words(values, self.named(name)) if values.dtype.kind in "OTS" else values

    def named(self, name: str) -> str:
        """An array and its file, for messages."""
        return f"{name} of {self.path}" if name else str(self.path)

    def listed(self) -> str:
        """Names with shapes, for messages."""
        shapes = sorted(self.shapes.items())
        held = [f"{name} {'×'.join(map(str, shape)) or 'a scalar'}" for name, shape in shapes]
        return ", ".join(held).strip() or "no arrays"


def open_npy(path: Path, choice: Choice) -> ArrayFile:
    """The array of an .npy file, which has no name and stays in the file."""
    return ArrayFile(path, {"": np.load(path, mmap_mode="r", allow_pickle=False)})


def open_npz(path: Path, choice: Choice) -> ArrayFile:
    """The arrays of an .npz file, read."""
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        return ArrayFile(path, dict(file.items()))


def open_hdf5(path: Path, choice: Choice) -> ArrayFile:
    """The data sets of an HDF5 file."""
    top = needs("h5py", "files", path).File(path, "r")
    return ArrayFile(path, dict(top.items()), top)


def open_zarr(path: Path, choice: Choice) -> ArrayFile:
    """The arrays of a zarr folder, or the only one."""
    top = needs("zarr", "files", path).open(path, mode="r")
    if hasattr(top, "shape"):
        return ArrayFile(path, {"": top})
    return ArrayFile(path, dict(top.arrays()), top)


class ColumnFile:
    """The columns of a file of Parquet or Arrow; nothing is read until it is needed.

    Parameters
    ----------
    path : Path
    schema : pyarrow.Schema
    n_rows : int
    read : callable
        ``read(names, start, stop)`` gives rows start … stop − 1 of some columns as a table.
    """

    has_names = True

    def __init__(
        self, path: Path, schema: Any, n_rows: int, read: Callable[[list[str], int, int], Any]
    ) -> None:
        from pyarrow.types import is_dictionary

        self.name, self.n_rows, self.read = str(path), n_rows, read
        self.names: list[str] = schema.names
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise ValueError(
                f"{path} has several columns {twice[0]!r}: give each a name of its own"
            )
        self.types = [held.value_type if is_dictionary(held) else held for held in schema.types]
        self.kinds = [_kind(held) for held in self.types]
        """Of each column: "number", "text", "list" (of numbers), "nested" or "other"."""
        indices = [i for i, name in enumerate(self.names) if name == "__index_level_0__"]
        self.index_column = indices[0] if indices else None
        """That pandas wrote for an index without a name: it is no feature."""

    def described(self, column: int) -> str:
        """The type of a column, for messages."""
        held = str(self.types[column])
        return "text" if held in ("string", "large_string") else held

    def numbers(self, columns: Sequence[int], missing: bool = False) -> RowFile:
        """Columns of numbers, or one of lists, as rows that stay in the file."""
        if len(columns) == 1 and self.kinds[columns[0]] == "list":
            return _ListRows(self, columns[0])
        return _ColumnRows(self, columns, missing)

    def labels(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column, without objects; raise if a value is missing."""
        held = self.checked(self._whole(column, "labels"), column)
        values: np.ndarray[Any, Any] = held.to_numpy()
        if values.dtype.kind != "O":
            return values
        if self.kinds[column] == "other":
            values = np.array(held.to_pylist(), dtype=object)  # a uuid as such, not its bytes
        return as_words(values, f"column {self.names[column]!r} of {self.name}")

    def ids(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column of whole numbers as such, of anything else as text."""
        held = self._whole(column, "an id")
        if not held.null_count and held.to_numpy().dtype.kind in "iu":
            numbers: np.ndarray[Any, Any] = held.to_numpy()
            return numbers
        where = f"column {self.names[column]!r} of {self.name}"
        words = ["" if word is None else word for word in held.to_pylist()]
        return text_array(words_of(words, where), where)

    def _whole(self, column: int, role: str) -> Any:
        name, held = self.names[column], self.types[column]
        if self.kinds[column] in ("list", "nested"):
            raise ValueError(f"{self.name}: column {name!r} is nested ({held}), not {role}")
        return self.read([name], 0, self.n_rows).column(0).cast(held)

    def checked(
        self, values: Any, column: int, start: int = 0, remedy: str = "fill it in or remove the row"
    ) -> Any:
        """Values of a column from row ``start`` on; raise if one is missing."""
        if values.null_count:
            row = start + int(values.is_null().to_numpy().argmax())
            raise ValueError(
                f"{self.name}: column {self.names[column]!r} has no value in row {row} (counted "
                f"from 0); {remedy}"
            )
        return values


class _ColumnRows(RowFile):
    """Columns of numbers side by side."""

    def __init__(self, file: ColumnFile, columns: Sequence[int], missing: bool) -> None:
        from pyarrow import float64, types

        self._file, self._columns, self._missing = file, columns, missing
        self._types = []
        for i in columns:
            held = file.types[i]
            if file.kinds[i] != "number":
                raise ValueError(f"{file.name}: column {file.names[i]!r} holds {held}, not numbers")
            needs_float = types.is_decimal(held) or (missing and not types.is_floating(held))
            self._types.append(float64() if needs_float else held)
        self.dtype = np.result_type(*(held.to_pandas_dtype() for held in self._types))
        self.shape = (file.n_rows, len(columns))
        self.feature_names = [file.names[i] for i in columns]

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        rows, file = np.empty((stop - start, self.shape[1]), dtype=self.dtype), self._file
        with readable(file.name):
            table = file.read(self.feature_names or [], start, stop)
            for k, i in enumerate(self._columns):
                column = table.column(k).cast(file.types[i])
                if not self._missing:
                    file.checked(column, i, start, "fill it in, or fit with --impute")
                rows[:, k] = column.cast(self._types[k]).to_numpy()
        return rows


class _ListRows(RowFile):
    """One column whose cells are lists of equal length."""

    def __init__(self, file: ColumnFile, column: int) -> None:
        self._file, self._column = file, column
        first = file.checked(file.read([file.names[column]], 0, 1).column(0), column).to_pylist()
        self.shape = (file.n_rows, len(first[0]) if first else 0)
        self.dtype = np.dtype(file.types[column].value_type.to_pandas_dtype())

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        import pyarrow.compute as pc

        file, name = self._file, self._file.names[self._column]
        where = f"{file.name}: column {name!r}"
        with readable(file.name):
            column = file.read([name], start, stop).column(0)
            file.checked(column, self._column, start)
            lengths = pc.list_value_length(column).to_numpy()
            wrong = np.flatnonzero(lengths != self.shape[1])
            if len(wrong):
                raise ValueError(
                    f"{where} has {lengths[wrong[0]]} numbers in row {start + wrong[0]} (counted "
                    f"from 0), but {self.shape[1]} in row 0"
                )
            values = pc.list_flatten(column)
            if values.null_count:
                row = start + int(values.is_null().to_numpy().argmax()) // self.shape[1]
                raise ValueError(f"{where} lacks a number in row {row} (counted from 0)")
            return np.array(values.to_numpy(), dtype=self.dtype).reshape(-1, self.shape[1])


def open_parquet(path: Path, choice: Choice) -> ColumnFile:
    """The columns of a Parquet file; row groups are read when rows of them are needed."""
    file = needs("pyarrow.parquet", "cli", path).ParquetFile(path)
    groups = range(file.metadata.num_row_groups)
    starts = np.cumsum([0, *(file.metadata.row_group(group).num_rows for group in groups)])

    def read(names: list[str], start: int, stop: int) -> Any:
        first, last = np.searchsorted(starts, start, "right") - 1, np.searchsorted(starts, stop)
        table = file.read_row_groups(list(range(first, last)), columns=names)
        # "a.b" also gives the field b of a column a
        return table.select(names).slice(start - int(starts[first]), stop - start)

    return ColumnFile(path, file.schema_arrow, file.metadata.num_rows, read)


def open_arrow(path: Path, choice: Choice) -> ColumnFile:
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

    return ColumnFile(path, table.schema, len(table), read)


def _kind(held: Any) -> str:
    """See ``ColumnFile.kinds``; decimals are numbers, bytes are text, dates are "other"."""
    from pyarrow import types

    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if any(test(held) for test in lists) and _kind(held.value_type) == "number":
        return "nested" if types.is_decimal(held.value_type) else "list"
    if types.is_nested(held):
        return "nested"
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(test(held) for test in numbers):
        return "number"
    plain = str(held).removeprefix("large_").removeprefix("fixed_size_")
    return "text" if plain.startswith(("string", "binary")) else "other"


def open_text(path: Path, choice: Choice, delimiter: str | None = None) -> TextFile:
    """The columns of a table in text, read."""
    return TextFile(path, choice, str(path), delimiter)


FORMATS: dict[str, Callable[[Path, Choice], ArrayFile | ColumnFile | TextFile]] = {
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


def similar_name(path: Path) -> str:
    """What may have been meant by a name that does not exist, for messages; empty if unknown."""
    names = [found.name for found in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, 1, 0.75)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def open_file(path: Path, choice: Choice) -> ArrayFile | ColumnFile | TextFile:
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
