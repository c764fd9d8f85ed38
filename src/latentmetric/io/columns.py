"""A file as columns, whatever its format: rows of features, labels and ids come out of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.io.rows import RowFile, SlicedRows, readable
from latentmetric.validation.labels import as_words, text_array
from latentmetric.validation.rows import first_not_finite

if TYPE_CHECKING:
    from latentmetric.io.choosing import Choice

FEATURE_NAMES = ("x", "features", "embeddings", "data")
"""What people call the array of features, in lower case."""

INDEX = "__index_level_0__"
"""What pandas calls an index without a name."""

MISSING_LABELS = ("", "nan", "NaN", "NaT", "<NA>")
"""What stands for a missing label where NumPy or pandas wrote it as text."""


class ColumnFile(ABC):
    """The columns of a file, known by their indices, because two may have one name."""

    name: str
    """Of the file."""
    names: list[str]
    kinds: list[str]
    """Of each column: "number", "text", "list" (of numbers), "nested" or "other"."""
    described: list[str]
    """What each column holds, for messages."""
    key: str | None = None
    """The column of lists that holds the features, where only one can."""
    index_column: int | None = None
    """That pandas wrote for an index without a name: it is no feature."""
    has_names = True

    @abstractmethod
    def rows(self, columns: Sequence[int], missing: bool = False) -> RowFile:
        """Columns of numbers side by side, or one of lists; floats if some may be ``missing``."""

    @abstractmethod
    def values(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column: numbers as such, anything else as text, "" where it is missing."""

    def where(self, row: int, column: int) -> str:
        """A cell, for messages."""
        return f"{self.name}, row {row} (counted from 0), column {self.names[column]!r}"

    def features(self, columns: list[int], missing: bool) -> Any:
        """Rows of numbers that are finite, or may be missing: a ``RowFile``, or read."""
        rows = self.rows(columns, missing)

        def read(start: int, stop: int) -> np.ndarray[Any, Any]:
            return self.checked(rows.read(start, stop), columns, missing, start)

        return RowFile(read, rows.shape, rows.dtype, rows.feature_names)

    def checked(
        self, rows: np.ndarray[Any, Any], columns: list[int], missing: bool, start: int = 0
    ) -> np.ndarray[Any, Any]:
        """Rows from row ``start`` on; a number that is infinite, or missing, is refused."""
        bad = first_not_finite(rows, missing)
        if bad is None:
            return rows
        is_list = self.kinds[columns[0]] == "list"
        where = self.where(start + bad[0], columns[0 if is_list else bad[1]])
        where += f", number {bad[1]} (from 0 as well)" if is_list else ""
        what = f"{rows[bad]} is not a finite number; fix it or remove the row"
        if np.isnan(rows[bad]):
            what = "the value is missing; fill it in, or fit with --impute"
        raise ValueError(f"{where}: {what}")

    def labels(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column as labels, all there and of a kind that a model file holds."""
        labels = self._single(column, "labels")
        if labels.dtype.kind not in "iubUfO" or labels.dtype.char == "g":
            name = self.names[column]
            raise ValueError(
                f"{self.name}: column {name!r} holds {labels.dtype}, not labels; turn them into "
                "strings"
            )
        missing = np.zeros(len(labels), dtype=bool)
        if labels.dtype.kind in "fUO":
            is_float = labels.dtype.kind == "f"
            missing = ~np.isfinite(labels) if is_float else np.isin(labels, MISSING_LABELS)
        if missing.any():
            raise ValueError(
                f"{self.where(int(missing.argmax()), column)}: the label is missing; fill it in or "
                "remove the row"
            )
        return labels

    def ids(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column of whole numbers as such, of anything else as text."""
        ids = self._single(column, "an id")
        return ids if ids.dtype.kind in "iuUO" else ids.astype(str)

    def _single(self, column: int, role: str) -> np.ndarray[Any, Any]:
        if self.kinds[column] in ("list", "nested"):
            name, held = self.names[column], self.described[column]
            raise ValueError(
                f"{self.name}: column {name!r} ({held}) does not hold one value a row, as {role} "
                "must"
            )
        return self.values(column)


class ArrayFile(ColumnFile):
    """Arrays by name, each of which is a column; rows of the features are lists in its cells.

    Arrays are whatever has ``shape``, ``dtype`` and slices. Where the choice has no key, the
    features are the usual array, the only one with two dimensions or more, or one of
    ``FEATURE_NAMES``.
    """

    def __init__(self, name: str, arrays: dict[str, Any], choice: Choice) -> None:
        held = {own: array for own, array in arrays.items() if getattr(array, "shape", None)}
        for own, array in held.items():
            codecs = (*getattr(array, "filters", ()), *getattr(array, "compressors", ()))
            if any(getattr(codec, "codec_id", "") == "pickle" for codec in codecs):
                raise ValueError(f"{own} of {name} holds pickled objects, which can run code")
        tables = [own for own, array in held.items() if len(array.shape) > 1]
        tables = [own for own in tables if own not in choice.wanted]
        usual = [own for own in tables if own == choice.usual.get("key")]
        known = [own for own in tables if own.lower() in FEATURE_NAMES]
        ranked = (usual, tables, known, [*held])
        self.key = choice.key or next((names[0] for names in ranked if len(names) == 1), None)
        self._arrays = list(held.values())
        n_rows = held[self.key].shape[0] if self.key in held else None
        kinds = []
        for own, array in held.items():
            n = n_rows or array.shape[0]
            kind = "number" if np.dtype(array.dtype).kind in "biuf" else "text"
            is_single = array.shape in ((n,), (n, 1))
            is_table = own == self.key or (self.key is None and own in tables)
            kinds.append(kind if is_single else "list" if is_table else "nested")
        self.name, self.names, self.kinds = name, [*held], kinds
        self.described = ["×".join(map(str, array.shape)) for array in self._arrays]

    def rows(self, columns: Sequence[int], missing: bool = False) -> RowFile:
        """See ``ColumnFile``."""
        if len(columns) > 1:
            return SlicedRows(np.column_stack([self.values(i) for i in columns]), self.name)
        return SlicedRows(self._arrays[columns[0]], f"{self.names[columns[0]]} of {self.name}")

    def values(self, column: int) -> np.ndarray[Any, Any]:
        """See ``ColumnFile``."""
        array = self._arrays[column]
        if getattr(array.dtype, "kind", "") == "O" and hasattr(array, "asstr"):
            array = array.asstr()
        values = np.array(array[...]).reshape(array.shape[0])
        where = f"{self.names[column]} of {self.name}"
        return as_words(values, where) if values.dtype.kind in "OTS" else values


class ArrowFile(ColumnFile):
    """Columns that pyarrow reads, when they are needed.

    ``read(columns, start, stop)`` gives rows start … stop − 1 of columns as an Arrow table.
    """

    def __init__(
        self, name: str, schema: Any, n_rows: int, read: Callable[[list[int], int, int], Any]
    ) -> None:
        types = [_plain_type(held) for held in schema.types]
        self.name, self.n_rows, self.read = name, n_rows, read
        self.names, self.kinds = schema.names, [_kind(held) for held in types]
        self.described = ["text" if "string" in str(held)[:12] else str(held) for held in types]
        self.index_column = schema.names.index(INDEX) if INDEX in schema.names else None

    def rows(self, columns: Sequence[int], missing: bool = False) -> RowFile:
        """See ``ColumnFile``."""
        chosen = list(columns)
        if [self.kinds[i] for i in chosen] == ["list"]:
            return self._lists(chosen[0])
        for i in chosen:
            if self.kinds[i] != "number":
                held = self.described[i]
                raise ValueError(f"{self.name}: column {self.names[i]!r} holds {held}, not numbers")
        dtype, names = self._block(chosen, missing, 0, 0).dtype, [self.names[i] for i in chosen]
        read = partial(self._block, chosen, missing)
        return RowFile(read, (self.n_rows, len(chosen)), dtype, names)

    def _block(
        self, columns: list[int], missing: bool, start: int, stop: int
    ) -> np.ndarray[Any, Any]:
        with readable(self.name):
            cells = self.read(columns, start, stop).columns
            held = [self.to_numbers(*pair) for pair in zip(cells, columns, strict=True)]
        dtype = np.result_type(*held)
        rows = np.empty((stop - start, len(held)), dtype)
        for k, numbers in enumerate(held):
            rows[:, k] = numbers
        return rows.astype(np.float64) if missing and dtype.kind != "f" else rows

    def _lists(self, column: int) -> RowFile:
        """One column whose cells are lists of equal length."""
        import pyarrow.compute as pc

        first = self.read([column], 0, 1).column(0).to_pylist()
        width = len(first[0] or ()) if first else 0

        def read(start: int, stop: int) -> np.ndarray[Any, Any]:
            with readable(self.name):
                cells = self.read([column], start, stop).column(0)
                lengths = pc.list_value_length(cells).to_numpy()
                for row in np.flatnonzero(lengths != width):
                    where = self.where(start + int(row), column)
                    raise ValueError(f"{where}: {lengths[row]} numbers, but {width} in row 0")
                return np.array(pc.list_flatten(cells).to_numpy()).reshape(stop - start, width)

        return RowFile(read, (self.n_rows, width), read(0, 0).dtype)

    def to_numbers(self, cells: Any, column: int) -> np.ndarray[Any, Any]:
        """Cells of a column as numbers; NaN where one is missing."""
        from pyarrow import float64, types

        held = _plain_type(cells.type)
        if types.is_decimal(held) or (cells.null_count and not types.is_floating(held)):
            held = float64()
        numbers: np.ndarray[Any, Any] = cells.cast(held).to_numpy()
        return numbers

    def values(self, column: int) -> np.ndarray[Any, Any]:
        """See ``ColumnFile``."""
        cells = self.read([column], 0, self.n_rows).column(0)
        cells = cells.cast(_plain_type(cells.type))
        is_decimal = self.described[column].startswith("decimal")
        if self.kinds[column] == "number" and not is_decimal and not cells.null_count:
            numbers: np.ndarray[Any, Any] = cells.to_numpy()
            return numbers
        words = ["" if value is None else value for value in cells.to_pylist()]
        words = [word.decode() if isinstance(word, bytes) else str(word) for word in words]
        return text_array(words)


def _plain_type(held: Any) -> Any:
    from pyarrow import types

    return held.value_type if types.is_dictionary(held) else held


def _kind(held: Any) -> str:
    """See ``ColumnFile``; decimals are numbers, bytes are text, dates are "other"."""
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


def as_labels(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole numbers where these print exactly as the texts, other numbers likewise, else the texts.

    So no two texts become one label: 1.0 and 1.00 differ, and 007 is a name.
    """
    distinct, indices = np.unique(texts, return_inverse=True)
    words = distinct.tolist()
    for kind in (int, float):
        try:
            numbers = [kind(word) for word in words]
            typed = np.array(numbers, dtype=np.dtype(kind))
        except (ValueError, OverflowError):
            continue
        # 0.0 and -0.0 are equal
        are_exact = list(map(str, numbers)) == words and len({*numbers}) == len(words)
        if are_exact and all(map(isfinite, numbers)):
            found: np.ndarray[Any, Any] = typed[indices]
            return found
    return texts
