"""Columns of Arrow files, feather included.

The file is mapped to find where its columns are, and these are then read. To use the map itself
would end the process if the file were cut meanwhile. What is compressed is unpacked when the file
is opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.io.columns import ColumnFile
from latentmetric.io.rows import RawRows, needs


def open_arrow(path: Path) -> ColumnFile:
    """The columns of a file of Arrow."""
    needs("pyarrow", "pyarrow", path)
    return _Arrow(path)


class _Arrow(ColumnFile):
    """Offsets are checked before they are followed: a damaged one would end the process."""

    def __init__(self, path: Path) -> None:
        from pyarrow import OSFile, memory_map

        whole = memory_map(str(path)).read_buffer()
        self._file = _MappedFile(path, whole)
        is_mapped = all(self._file.holds(column) for column in _first_columns(whole))
        self._table = _reader(whole if is_mapped else OSFile(str(path))).read_all()
        self._table.validate()
        super().__init__(path, self._table.schema, len(self._table))

    def read(self, names: list[str], start: int, stop: int) -> Any:
        from pyarrow import Table, chunked_array

        mapped = self._table.select(names).slice(start, stop - start)
        columns = [
            chunked_array([self._file.read(chunk) for chunk in column.chunks], column.type)
            for column in mapped.columns
        ]
        table = Table.from_arrays(columns, schema=mapped.schema)
        table.validate(full=True)
        return table


def _reader(source: Any) -> Any:
    """A reader of a file, or of a stream that was written to a file."""
    from pyarrow import ArrowInvalid, ipc

    try:
        return ipc.open_file(source)
    except ArrowInvalid:
        if hasattr(source, "seek"):
            source.seek(0)
        return ipc.open_stream(source)


def _first_columns(whole: Any) -> list[Any]:
    """The columns of the first batch, if there is one."""
    reader = _reader(whole)
    if hasattr(reader, "get_batch"):
        return list(reader.get_batch(0).columns) if reader.num_record_batches else []
    first = next(iter(reader), None)
    return [] if first is None else list(first.columns)


class _MappedFile:
    """Reads arrays that lie in a map from the file behind it."""

    def __init__(self, path: Path, whole: Any) -> None:
        self._map = whole
        # Closed with the rows, which are bytes here.
        self._bytes = RawRows(path.open("rb"), (whole.size, 1), np.dtype(np.uint8))

    def holds(self, array: Any) -> bool:
        """Whether an array is mapped; if it is compressed, it is not."""
        buffers = [buffer for buffer in array.buffers() if buffer is not None and buffer.size]
        return all(self._place(buffer) is not None for buffer in buffers)

    def read(self, array: Any) -> Any:
        """An array that needs the map no more: of numbers and lists just these, else all."""
        from pyarrow import Array, BaseExtensionType, DictionaryArray, ExtensionArray, types

        kind, n, skipped = array.type, len(array), array.offset % 8
        low, high = array.offset - skipped, array.offset + n
        if types.is_primitive(kind):
            buffers = [
                self._part(buffer, low * width // 8, -(-high * width // 8))
                for buffer, width in zip(array.buffers(), (1, kind.bit_width), strict=True)
            ]
            return Array.from_buffers(kind, n, buffers, -1, skipped)
        if types.is_fixed_size_list(kind):
            size = kind.list_size
            valid = self._part(array.buffers()[0], low // 8, -(-high // 8))
            values = self.read(array.values.slice(low * size, (high - low) * size))
            return Array.from_buffers(kind, n, [valid], -1, skipped, [values])
        if types.is_list(kind) or types.is_large_list(kind):
            return self._read_lists(array, low, high)
        if types.is_dictionary(kind):
            indices, words = self.read(array.indices), self.read(array.dictionary)
            return DictionaryArray.from_arrays(indices, words, ordered=kind.ordered)
        if isinstance(kind, BaseExtensionType):
            return ExtensionArray.from_storage(kind, self.read(array.storage))
        if kind.num_fields:
            return array  # nested, and so neither features nor labels
        buffers = [self._part(buffer) for buffer in array.buffers()]
        return Array.from_buffers(kind, n, buffers, -1, array.offset)

    def _read_lists(self, array: Any, low: int, high: int) -> Any:
        from pyarrow import Array, py_buffer, types

        width = np.dtype("i8" if types.is_large_list(array.type) else "i4")
        valid, ends = array.buffers()[:2]
        ends = self._part(ends, low * width.itemsize, (high + 1) * width.itemsize)
        offsets = np.frombuffer(ends, width)
        first, last = int(offsets[0]), int(offsets[-1])
        if not 0 <= first <= last <= len(array.values):
            raise ValueError(f"its lists end at {last} of {len(array.values)} values")
        values = self.read(array.values.slice(first, last - first))
        buffers = [self._part(valid, low // 8, -(-high // 8)), py_buffer(offsets - first)]
        return Array.from_buffers(array.type, len(array), buffers, -1, array.offset - low, [values])

    def _part(self, buffer: Any, start: int = 0, stop: int | None = None) -> Any:
        """Some bytes of a buffer, read if they are mapped."""
        from pyarrow import py_buffer

        if buffer is None:
            return None
        stop = buffer.size if stop is None else min(stop, buffer.size)
        place = self._place(buffer)
        if place is None or start >= stop:
            return buffer.slice(start, max(stop - start, 0))
        return py_buffer(self._bytes[place + start : place + stop])

    def _place(self, buffer: Any) -> int | None:
        """Where in the file a buffer is."""
        place: int = buffer.address - self._map.address
        return place if 0 <= place <= self._map.size - buffer.size else None
