"""Tables of named columns: what all files of them have, and those of Parquet, by pyarrow.

Nothing is read when a file is opened. Reading a block of rows reads the row groups that hold it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.io.rows import RowFile, needs
from latentmetric.validation.labels import as_words, text_array, words_of

FILL_IN = "; fill it in, or fit with --impute"
"""What to do about a number that is missing."""


class ColumnFile(ABC):
    """The columns of a file: their names and kinds, and rows of some of them."""

    def __init__(self, path: Path, schema: Any, n_rows: int) -> None:
        self.path, self.schema, self.n_rows = path, schema, n_rows
        self.names: list[str] = schema.names
        """Of the columns, in the order of the file; pyarrow makes a new list each time."""
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"{path} has several columns {twice[0]!r}: give each a name of its own"
            )

    def kind(self, name: str) -> str:
        """What a column holds: "number", "text", "list" (of numbers), "nested" or "other".

        Booleans and decimals are numbers, bytes are text. "other" is whatever else has one value a
        row, such as dates. A dictionary is what its values are.
        """
        from pyarrow import types

        held = _without_dictionary(self.schema.field(name).type)
        if _is_list(held):
            return "list" if _is_number(held.value_type) else "nested"
        if types.is_nested(held):
            return "nested"
        if _is_number(held) or types.is_decimal(held):
            return "number"
        return "text" if _is_text(held) else "other"

    def described(self, name: str) -> str:
        """What a column that holds no numbers holds, for messages."""
        from pyarrow import types

        held = self.schema.field(name).type
        return "text" if types.is_string(held) or types.is_large_string(held) else str(held)

    @abstractmethod
    def read(self, names: list[str], start: int, stop: int) -> Any:
        """Rows start … stop − 1 of some columns, as a table of pyarrow."""

    def labels(self, name: str) -> np.ndarray[Any, Any]:
        """A whole column of one value a row, as an array without objects."""
        if self.kind(name) in ("list", "nested"):
            held = self.schema.field(name).type
            raise ValueError(f"{self.path}: column {name!r} is nested ({held}), not labels")
        column = _unpacked(self.read([name], 0, self.n_rows).column(name))
        _refuse_nulls(column, self.path, name, 0)
        values: np.ndarray[Any, Any] = column.to_numpy()
        if values.dtype.kind != "O":
            return values
        if self.kind(name) == "other":
            values = np.array(column.to_pylist(), dtype=object)  # a uuid as such, not its bytes
        return as_words(values, f"column {name!r} of {self.path}")

    def ids(self, name: str) -> np.ndarray[Any, Any]:
        """A whole column of whole numbers as such, of anything else as text."""
        if self.kind(name) in ("list", "nested"):
            held = self.schema.field(name).type
            raise ValueError(f"{self.path}: column {name!r} is nested ({held}), not an id")
        column = _unpacked(self.read([name], 0, self.n_rows).column(name))
        if not column.null_count:
            values: np.ndarray[Any, Any] = column.to_numpy()
            if values.dtype.kind in "iu":
                return values
        held = ["" if value is None else value for value in column.to_pylist()]
        where = f"column {name!r} of {self.path}"
        return text_array(words_of(held, where), where)


class _Parquet(ColumnFile):
    """Whole row groups are read, and the requested rows kept."""

    def __init__(self, path: Path) -> None:
        self._file = needs("pyarrow.parquet", "pyarrow", path).ParquetFile(path)
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
        super().__init__(path, self._file.schema_arrow, int(self._starts[-1]))

    def read(self, names: list[str], start: int, stop: int) -> Any:
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        last = int(np.searchsorted(self._starts, stop, side="left"))
        table = self._file.read_row_groups(list(range(first, last)), columns=names)
        table = table.select(names)  # "a.b" also gives the field b of a column a
        return table.slice(start - int(self._starts[first]), stop - start)


def open_parquet(path: Path) -> ColumnFile:
    """The columns of a file of Parquet."""
    return _Parquet(path)


class ColumnRows(RowFile):
    """Columns of numbers side by side, or one column whose cells are lists of equal length."""

    def __init__(
        self, file: ColumnFile, columns: list[str] | None = None, missing: bool = False
    ) -> None:
        """``missing`` says whether a null becomes NaN instead of an error."""
        self._file, self._missing = file, missing
        self.columns = columns or [name for name in file.names if file.kind(name) == "number"]
        lacking = sorted(set(self.columns) - set(file.names))
        if lacking or not self.columns:
            raise ValueError(
                f"{file.path} has the columns {file.names}, "
                + (f"but not {lacking}" if lacking else "none of them numeric")
            )
        kinds = [file.kind(name) for name in self.columns]
        self._of_lists = kinds == ["list"]
        for name, kind in zip(self.columns, kinds, strict=True):
            if kind != "number" and not self._of_lists:
                held = file.schema.field(name).type
                raise ValueError(f"{file.path}: column {name!r} holds {held}, not numbers")
        types = [file.schema.field(name).type for name in self.columns]
        values = [kind.value_type if self._of_lists else kind for kind in types]
        self.dtype = np.result_type(*map(_dtype_of, values))
        if missing:
            self.dtype = np.result_type(self.dtype, np.float32)
        self.shape = (file.n_rows, self._width() if self._of_lists else len(self.columns))
        self.feature_names = None if self._of_lists else self.columns

    def _width(self) -> int:
        """The length of the first list, which the others must have too."""
        if not self._file.n_rows:
            return 0
        first = self._file.read(self.columns, 0, 1).column(0)[0]
        return len(first) if first.is_valid else 0

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        table = self._file.read(self.columns, start, stop)
        if self._of_lists:
            return self._from_lists(table.column(0), start)
        rows = np.empty((len(table), self.shape[1]), dtype=self.dtype)
        for place, name in enumerate(self.columns):
            column = _unpacked(table.column(place))
            if not self._missing:
                _refuse_nulls(column, self._file.path, name, start, FILL_IN)
            rows[:, place] = _numbers(column)
        return rows

    def _from_lists(self, column: Any, start: int) -> np.ndarray[Any, Any]:
        from pyarrow import compute

        name, path, width = self.columns[0], self._file.path, self.shape[1]
        _refuse_nulls(column, path, name, start)
        lengths = compute.list_value_length(column).to_numpy()
        if (lengths != width).any():
            row = int((lengths != width).argmax())
            raise ValueError(
                f"{path}: column {name!r} has {lengths[row]} numbers in row {start + row} "
                f"(counted from 0), but {width} in row 0"
            )
        values = compute.list_flatten(column)
        if values.null_count:
            row = int(values.is_null().to_numpy().argmax()) // width
            raise ValueError(
                f"{path}: column {name!r} lacks a number in row {start + row} (counted from 0)"
            )
        return np.array(values.to_numpy(), dtype=self.dtype).reshape(len(column), width)


def _unpacked(column: Any) -> Any:
    """The values of a column that may be a dictionary of them, which may hold nulls of its own."""
    from pyarrow import types

    is_packed = types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_packed else column


def _numbers(column: Any) -> np.ndarray[Any, Any]:
    from pyarrow import float64, types

    has_gaps = column.null_count and not types.is_floating(column.type)
    plain = column.cast(float64()) if types.is_decimal(column.type) or has_gaps else column
    numbers: np.ndarray[Any, Any] = plain.to_numpy()
    return numbers


def _dtype_of(kind: Any) -> np.dtype[Any]:
    """The dtype that numbers of a column become."""
    from pyarrow import types

    held = _without_dictionary(kind)
    return np.dtype(np.float64 if types.is_decimal(held) else held.to_pandas_dtype())


def _refuse_nulls(column: Any, path: Path, name: str, start: int, advice: str = "") -> None:
    if column.null_count:
        row = start + int(column.is_null().to_numpy().argmax())
        raise ValueError(
            f"{path}: column {name!r} has no value in row {row} (counted from 0){advice}"
        )


def _without_dictionary(kind: Any) -> Any:
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else kind


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_text(kind: Any) -> bool:
    """Whether a type holds text, or bytes that may be text: older writers do not say which."""
    name = str(kind)
    return name.removeprefix("large_").removesuffix("_view") in ("string", "binary") or (
        name.startswith("fixed_size_binary")
    )
