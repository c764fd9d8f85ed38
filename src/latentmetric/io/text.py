"""Tables in text, plain or packed by gzip: pyarrow splits them into cells and parses numbers.

What it does not decide is decided here: the delimiter, whether the first line is a header, what is
a label and what a number, and which line to name if a cell is wrong.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from io import BytesIO, TextIOWrapper
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.characters import shortened
from latentmetric.core.types import Floats
from latentmetric.io.choosing import Choice, is_label_name
from latentmetric.io.rows import advice_on, needs
from latentmetric.validation.labels import text_array
from latentmetric.validation.rows import first_not_finite

SAMPLE = 20
"""Records that are read to detect the delimiter, the header and the kinds of columns."""

BLOCK_BYTES = 2**23
"""Read at a time; a line must fit."""

BOOLEANS = {"true": 1.0, "false": 0.0}
"""Words that are numbers, in lower case."""

MISSING_NUMBERS = ("", "?", "na", "n/a", "nan", "null", "none", "<na>")
"""What a cell holds, in lower case, where a number is missing."""

MISSING_LABELS = ("", "nan", "NaN", "NaT", "<NA>")
"""What a cell of labels holds where NumPy or pandas wrote a missing one."""

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Text that an int64 gives back letter by letter."""

DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


class TextFile:
    """A table in text: its cells are in memory, numbers are parsed when they are needed.

    See ``ColumnFile`` for the attributes. Columns are known by their indices, as two may have one
    name; a file without a header calls them "column 1" and so on.
    """

    def __init__(
        self, source: Path | bytes, choice: Choice, name: str, delimiter: str | None = None
    ) -> None:
        self._choice, self.name = choice, name
        self._content = _as_utf8(source, choice.encoding or "utf-8", name)
        self._delimiter = delimiter or self._detect_delimiter()
        sample = [cells for _, cells in islice(self._records(), SAMPLE)]
        if not sample:
            raise ValueError(f"{name} is empty")
        self.first_line = [cell.strip() for cell in sample[0]]
        self.has_names = _is_header(sample, choice) if choice.header is None else choice.header
        self._table = self._read(len(sample[0])).slice(int(self.has_names))
        if not len(self._table) and len(sample[0]) > 1:
            raise ValueError(f"{name} has a header but no rows below it")
        given = self.first_line if self.has_names else [""] * len(sample[0])
        self.names = [cell or f"column {number}" for number, cell in enumerate(given, start=1)]
        is_index = self.has_names and given[0] in ("", "Unnamed: 0")
        self.index_column = 0 if is_index else None
        self.kinds: list[str] = []
        self._words: list[list[str]] = []
        """Of each column, those of the first cells that are no numbers."""
        for column in self._table.columns:
            cells = [cell.strip() for cell in column.slice(0, SAMPLE).to_pylist()]
            held = [c for c in cells if c and not (choice.missing and is_missing(c))]
            words = [c for c in held if not is_value(c, choice.decimal)]
            self.kinds.append("text" if 2 * len(words) > len(held) else "number")
            self._words.append(words)
        self._check_quotes()

    def _read(self, n_columns: int) -> Any:
        """All cells as text, by pyarrow; blank lines are left out."""
        reader = needs("pyarrow.csv", "cli", self.name)
        import pyarrow

        names = [str(column) for column in range(n_columns)]
        options = (
            reader.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
            reader.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            reader.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string())),
        )
        try:
            return reader.read_csv(BytesIO(self._content), *options)
        except pyarrow.ArrowInvalid:
            for line, cells in self._records():
                if len(cells) != n_columns:
                    raise ValueError(
                        f"{self.name}, line {line}: {len(cells)} cells, but {n_columns} in the "
                        f"first line; quote a cell that holds the delimiter {self._delimiter!r}, "
                        "or fill in what is missing"
                    ) from None
            raise

    def _lines(self, newline: str | None = None) -> TextIOWrapper:
        return TextIOWrapper(BytesIO(self._content), "utf-8", newline=newline)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Lines that are not blank, as cells, each with the number of the line it starts on."""
        reader, line = csv.reader(self._lines(newline=""), delimiter=self._delimiter), 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            message = f"{self.name}, line {line}: {error}; is a quote not closed?"
            raise ValueError(message) from error

    def _detect_delimiter(self) -> str:
        """What cuts the first lines into the same number of cells, two or more."""
        text = "".join(islice(self._lines(), SAMPLE))
        lines = [line for line in re.sub('"[^"]*"', "", text).split("\n") if line.strip()] or [""]
        cells = lines[0].split(" ")
        is_spaced = len(cells) > 1 and all(is_value(cell, self._choice.decimal) for cell in cells)
        marks = (",", " ", "|", ";", "\t") if is_spaced else (",", "|", ";", "\t")

        def rank(mark: str) -> tuple[bool, int, int]:
            counts = [line.count(mark) for line in lines]
            is_regular = min(counts) == max(counts) > 0
            # commas also occur within numbers and words: the last regular mark wins
            return is_regular, marks.index(mark) if is_regular else min(counts), counts[0]

        return max(marks, key=rank)

    def _check_quotes(self) -> None:
        """Refuse a quote that is not closed: the rows after it would be part of a cell."""
        import pyarrow.compute as pc

        numbers = [i for i, kind in enumerate(self.kinds) if kind == "number"]

        def is_row(line: str) -> bool:
            cells = line.split(self._delimiter)
            is_wide = len(cells) == len(self.names)
            return is_wide and all(is_value(cells[i], self._choice.decimal) for i in numbers)

        for i, column in enumerate(self._table.columns):
            if self.kinds[i] == "number":
                continue
            for row in np.flatnonzero(pc.match_substring(column, "\n").to_numpy()).tolist():
                if any(map(is_row, column[row].as_py().splitlines()[1:])):
                    raise ValueError(
                        f"{self._where(row, i)}: a quote opens a cell that holds whole rows; close "
                        "it, or write a quote within quotes twice"
                    )

    def described(self, column: int) -> str:
        """What a column of text holds, for messages."""
        cell = self._words[column][0]
        return f"text such as {shortened(cell, 40)!r}{self._comma_hint(cell)}"

    def _comma_hint(self, cell: str) -> str:
        if self._choice.decimal == "." and DECIMAL_COMMA.fullmatch(cell.strip()):
            return " (if that is a number with a decimal comma, add --decimal ,)"
        return ""

    def numbers(self, columns: Sequence[int], missing: bool = False) -> Floats:
        """Columns as float64; a cell that is no finite number is refused with its line."""
        rows = np.empty((len(self._table), len(columns)))
        for k, column in enumerate(columns):
            rows[:, k] = self._parsed(column)
        bad = first_not_finite(rows, missing)
        if bad is not None:
            raise ValueError(
                f"{self._where(bad[0], columns[bad[1]])}: {rows[bad]} is not a finite number; "
                f"{advice_on(rows[bad], self._choice.for_model)}"
            )
        return rows

    def _parsed(self, column: int) -> Floats:
        """The numbers of a column: by pyarrow, or cell by cell if it refuses one."""
        import pyarrow
        import pyarrow.compute as pc

        cells = plain = pc.utf8_trim_whitespace(self._table.column(column))
        if self._choice.decimal == ",":  # a point is then no part of a number
            plain = pc.replace_substring(pc.replace_substring(cells, ".", "?"), ",", ".")
        if self._choice.missing:
            gaps = pc.is_in(pc.utf8_lower(cells), pyarrow.array(MISSING_NUMBERS))
            plain = pc.if_else(gaps, "nan", plain)
        try:
            numbers: Floats = pc.cast(plain, pyarrow.float64()).to_numpy()
        except pyarrow.ArrowInvalid:
            words = enumerate(cells.to_pylist())
            numbers = np.array([self._number(cell, row, column) for row, cell in words])
        return numbers

    def _number(self, cell: str, row: int, column: int) -> float:
        choice = self._choice
        if choice.missing and is_missing(cell):
            return nan
        try:
            return value(cell, choice.decimal)
        except ValueError:
            pass
        what = f"{shortened(cell, 40)!r} is not a number" if cell else "the cell is empty"
        remedy = "fix it, or leave the column out with --ignore"
        if choice.for_model and is_missing(cell):
            remedy = "fill it in, or fit the model again with --impute"
        elif choice.for_model:
            remedy = "fix it, because the model needs the column"
        elif not cell:
            what += " (fit and compare fill it in with --impute median)"
        if row == 0 and not self.has_names:
            remedy += "; if it names the column, add --header"
        raise ValueError(f"{self._where(row, column)}: {what}{self._comma_hint(cell)}; {remedy}")

    def _where(self, row: int, column: int) -> str:
        line = next(islice(self._records(), row + int(self.has_names), None))[0]
        return f"{self.name}, line {line}, column {self.names[column]!r}"

    def texts(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column, as it is written."""
        return text_array(self._table.column(column).to_pylist(), self.name)

    def labels(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column as labels; raise if one is missing."""
        texts = self.texts(column)
        missing = np.isin(texts, MISSING_LABELS)
        if missing.any():
            raise ValueError(
                f"{self._where(int(missing.argmax()), column)}: the label is missing; fill it in "
                "or remove the row"
            )
        return as_labels(texts)

    def ids(self, column: int) -> np.ndarray[Any, Any]:
        """A whole column: whole numbers where these print exactly as the text, else text."""
        texts = self.texts(column)
        are_whole = all(map(WHOLE_NUMBER.fullmatch, texts.tolist()))
        return texts.astype(np.int64) if are_whole else texts


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


def is_missing(cell: str) -> bool:
    """Whether a cell says that its number is missing."""
    return cell.strip().lower() in MISSING_NUMBERS


def value(cell: str, decimal: str = ".") -> float:
    """The number or Boolean that a cell holds; raise ``ValueError`` if it holds none."""
    word = cell.strip()
    if word.lower() in BOOLEANS:
        return BOOLEANS[word.lower()]
    if "_" in word or (decimal == "," and "." in word):
        raise ValueError(f"{word!r} is not a number")
    return float(word.replace(",", ".") if decimal == "," else word)


def is_value(cell: str, decimal: str = ".") -> bool:
    """Whether a cell holds a number or a Boolean."""
    try:
        value(cell, decimal)
    except ValueError:
        return False
    return True


def as_labels(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole numbers where these print exactly as the texts, other numbers likewise, else the texts.

    So no two texts become one label: 1.0 and 1.00 differ, and 007 is a name.
    """
    distinct, indices = np.unique(texts, return_inverse=True)
    words = distinct.tolist()
    if all(map(WHOLE_NUMBER.fullmatch, words)):
        return distinct.astype(np.int64)[indices]
    if all(
        is_value(word) and isfinite(value(word)) and repr(value(word)) == word for word in words
    ):
        numbers = distinct.astype(np.float64)
        if len(np.unique(numbers)) == len(numbers):  # 0.0 and -0.0 are equal
            return numbers[indices]
    return texts


def _is_header(records: Sequence[Sequence[str]], choice: Choice) -> bool:
    """Whether the first of some records names the columns.

    It does if no cell of it is a number. With numbers, it does if these count from 0 as pandas
    names columns, if it has all names that a model knows, or if one of its other cells, which does
    not occur again below, is a name that was asked for or that people give to labels.
    """
    first = [cell.strip() for cell in records[0]]
    numbers = [c for c in first if is_value(c, choice.decimal) or DECIMAL_COMMA.fullmatch(c)]
    if not numbers:
        return not all(map(is_missing, first))
    if choice.names and {*choice.names} <= {*first}:
        return True
    if len(numbers) > 2 and numbers == [str(number) for number in range(len(numbers))]:
        return True
    asked = {name for name in choice.wanted if not is_value(name)}
    names = [i for i, c in enumerate(first) if c in asked or (is_label_name(c) and len(c) > 1)]
    return any(all(records[0][i] not in r[i : i + 1] for r in records[1:]) for i in names)
