"""Tables in text, plain or packed by gzip: pyarrow splits them into cells and parses numbers.

What it does not decide is decided here: the delimiter, whether the first line is a header, what is
a number, and which line to name if a cell is wrong.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.characters import shortened
from latentmetric.core.types import Floats
from latentmetric.extras import import_optional
from latentmetric.io.choosing import LABEL_NAMES, Choice
from latentmetric.io.columns import ArrowFile, as_labels
from latentmetric.validation.labels import text_array

SAMPLE = 20
"""Records that are read to detect the delimiter, the header and the kinds of columns."""

BLOCK_BYTES = 2**23
"""Read at a time; a line must fit."""

MISSING_NUMBERS = ("", "?", "na", "n/a", "nan", "null", "none", "<na>")
"""What a cell holds, in lower case, where a number is missing."""

DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")

Records = Callable[[], Iterator[tuple[int, list[str]]]]


class TextFile(ArrowFile):
    """A table in text: its cells are in memory, numbers are parsed when they are needed.

    A file without a header calls its columns "column 1" and so on.
    """

    def __init__(
        self,
        source: Path | bytes,
        choice: Choice,
        name: str | None = None,
        delimiter: str | None = None,
    ) -> None:
        if choice.decimal not in (".", ","):
            raise ValueError(f"the decimal mark must be a point or a comma, got {choice.decimal!r}")
        self.name = name = name or str(source)
        content = _as_utf8(source, choice.encoding or "utf-8", name)
        self._decimal = choice.decimal
        delimiter = delimiter or _detect_delimiter(content, choice.decimal)
        self._records = partial(_records, content, delimiter, name)
        sample = [cells for _, cells in islice(self._records(), SAMPLE)]
        if not sample:
            raise ValueError(f"{name} is empty")
        self.has_names = _is_header(sample, choice) if choice.header is None else choice.header
        table = _read_cells(content, delimiter, name, self._records).slice(int(self.has_names))
        if not len(table) and len(sample[0]) > 1:
            raise ValueError(f"{name} has a header but no rows below it")
        given = [cell.strip() if self.has_names else "" for cell in sample[0]]
        self.names = [cell or f"column {number}" for number, cell in enumerate(given, start=1)]
        self.kinds, self.described, self.n_rows = [], [], len(table)
        self.read = lambda columns, start, stop: table.select(columns).slice(start, stop - start)
        self.index_column = 0 if self.has_names and given[0] in ("", "Unnamed: 0") else None
        for column in table.columns:
            cells = [cell.strip() for cell in column.slice(0, SAMPLE).to_pylist()]
            held = [c for c in cells if c and not (choice.missing and is_missing(c))]
            words = [c for c in held if number_in(c, choice.decimal) is None]
            self.kinds.append("text" if 2 * len(words) > len(held) else "number")
            self.described.append(f"text such as {self._shown(words[0])}" if words else "numbers")

    def where(self, row: int, column: int) -> str:
        """A cell, for messages."""
        line = next(islice(self._records(), row + int(self.has_names), None))[0]
        return f"{self.name}, line {line}, column {self.names[column]!r}"

    def _shown(self, cell: str) -> str:
        """A cell, for messages, with a hint if it may be a number or stand for one."""
        hint = " (if that is a missing number, fit with --impute)" if is_missing(cell) else ""
        if self._decimal == "." and DECIMAL_COMMA.fullmatch(cell):
            hint = " (if that is a number with a decimal comma, add --decimal ,)"
        return f"{shortened(cell, 40)!r}{hint}"

    def to_numbers(self, cells: Any, column: int) -> Floats:
        """Numbers by pyarrow, or cell by cell if it refuses one."""
        import pyarrow
        import pyarrow.compute as pc

        cells = pc.utf8_trim_whitespace(cells)
        gaps = pc.is_in(pc.utf8_lower(cells), pyarrow.array(MISSING_NUMBERS))
        plain = pc.if_else(gaps, "nan", cells)
        if self._decimal == ",":  # a point is then no part of a number
            plain = pc.replace_substring(pc.replace_substring(plain, ".", "?"), ",", ".")
        try:
            return np.asarray(pc.cast(plain, pyarrow.float64()))
        except pyarrow.ArrowInvalid:
            words = cells.to_pylist()
        numbers = [np.nan if is_missing(c) else number_in(c, self._decimal) for c in words]
        if None not in numbers:
            return np.array(numbers, dtype=np.float64)
        row = numbers.index(None)
        header = "" if row or self.has_names else "; if it names the column, add --header"
        raise ValueError(
            f"{self.where(row, column)}: {self._shown(words[row])} is not a number; fix it, or fit "
            f"without the column (--ignore){header}"
        )

    def features(self, columns: list[int], missing: bool) -> Floats:
        """See ``ColumnFile``."""
        return self.checked(self._block(columns, missing, 0, self.n_rows), columns, missing)

    def values(self, column: int) -> np.ndarray[Any, Any]:
        """See ``ColumnFile``; text of numbers becomes numbers where these print the same."""
        cells = self.read([column], 0, self.n_rows).column(0)
        return as_labels(text_array(cells.to_pylist()))


def _as_utf8(source: Path | bytes, encoding: str, name: str) -> bytes:
    """The text, unpacked if need be, in UTF-8 and without a byte order mark."""
    content = source if isinstance(source, bytes) else source.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    try:
        return content.decode(encoding).removeprefix("\ufeff").encode()
    except LookupError as error:
        raise ValueError(f"{name}: {encoding!r} is not an encoding that Python knows") from error
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        raise ValueError(
            f"{name}, line {line}: byte 0x{byte:02x} is not {encoding.upper()}; name its encoding, "
            "for example --encoding latin-1 or utf-16"
        ) from error


def _detect_delimiter(content: bytes, decimal: str) -> str:
    """What cuts the first lines into the same number of cells, two or more, and most numbers."""
    text = "".join(islice(TextIOWrapper(BytesIO(content), "utf-8"), SAMPLE))
    lines = [line for line in re.sub('"[^"]*"', "", text).split("\n") if line.strip()] or [""]
    cells = lines[0].split(" ")
    is_spaced = len(cells) > 1 and None not in [number_in(cell, decimal) for cell in cells]
    marks = (",", " ", "|", ";", "\t") if is_spaced else (",", "|", ";", "\t")

    def rank(mark: str) -> tuple[bool, int, int]:
        counts = [line.count(mark) for line in lines]
        if not min(counts) == max(counts) > 0:
            return False, min(counts), counts[0]
        # commas also occur within numbers and words: of equally good marks the last one wins
        cells = [cell.strip() for line in lines for cell in line.split(mark)]
        return True, sum(_is_numeric(cell, decimal) for cell in cells), marks.index(mark)

    return max(marks, key=rank)


def _records(content: bytes, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank, as cells, each with the number of the line it starts on."""
    lines = TextIOWrapper(BytesIO(content), "utf-8", newline="")
    reader, line = csv.reader(lines, delimiter=delimiter, strict=True), 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{name}, line {line}: {error}; is a quote not closed?") from error


def _read_cells(content: bytes, delimiter: str, name: str, records: Records) -> Any:
    """All cells as text, by pyarrow; blank lines are left out."""
    reader = import_optional("pyarrow.csv", "cli", name)
    import pyarrow
    import pyarrow.compute as pc

    n_columns = len(next(records())[1])
    names = [str(column) for column in range(n_columns)]
    threads = len(content) > BLOCK_BYTES  # a single block needs none
    options = (
        reader.ReadOptions(use_threads=threads, column_names=names, block_size=BLOCK_BYTES),
        reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        reader.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string())),
    )
    try:
        table = reader.read_csv(BytesIO(content), *options)
        has_line_ends = b'"' in content and any(
            pc.any(pc.match_substring(column, "\n")).as_py() for column in table.columns
        )
    except pyarrow.ArrowInvalid:
        table, has_line_ends = None, True
    for line, cells in records() if has_line_ends else ():  # a quote may be wrong
        if len(cells) != n_columns:
            raise ValueError(
                f"{name}, line {line}: {len(cells)} cells, but {n_columns} in the first line; "
                f"quote a cell that holds the delimiter {delimiter!r}, or fill in what is missing"
            )
    if table is None:
        raise ValueError(f"{name} cannot be read: pyarrow finds no table in it")
    return table


def is_missing(cell: str) -> bool:
    """Whether a cell says that its number is missing."""
    return cell.strip().lower() in MISSING_NUMBERS


def number_in(cell: str, decimal: str = ".") -> float | None:
    """The number or Boolean that a cell holds, or None."""
    word = cell.strip().lower()
    if word in ("true", "false"):
        return float(word == "true")
    if "_" in word or (decimal == "," and "." in word):
        return None
    try:
        return float(word.replace(",", ".") if decimal == "," else word)
    except ValueError:
        return None


def _is_numeric(cell: str, decimal: str) -> bool:
    """Whether a cell holds a number, maybe with a decimal comma that was not announced."""
    return number_in(cell, decimal) is not None or bool(DECIMAL_COMMA.fullmatch(cell))


def _is_header(records: Sequence[Sequence[str]], choice: Choice) -> bool:
    """Whether the first of some records names the columns.

    It does if no cell of it is a number. With numbers, it does if these count from 0 as pandas
    names columns, if it has all names that a model knows, or if one of its other cells, which does
    not occur again below, is a name that was asked for or that people give to labels.
    """
    first = [cell.strip() for cell in records[0]]
    numbers = [c for c in first if _is_numeric(c, choice.decimal)]
    if not numbers:
        return not all(map(is_missing, first))
    if choice.names and {*choice.names} <= {*first}:
        return True
    if len(numbers) > 2 and numbers == [str(number) for number in range(len(numbers))]:
        return True
    asked = {name for name in choice.wanted if number_in(name) is None}
    names = [
        i for i, c in enumerate(first) if c in asked or (c.lower() in LABEL_NAMES and len(c) > 1)
    ]
    return any(all(records[0][i] not in r[i : i + 1] for r in records[1:]) for i in names)
