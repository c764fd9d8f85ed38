"""Tables in text: numbers, quoted fields, columns of labels; plain or packed by gzip.

NumPy's own reader does the work, some 5 million numbers a second, so that plain text needs no
further library. Where something is wrong, the file is read once more to name the line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import nan
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import numpy as np

from latentmetric.characters import shortened
from latentmetric.core.types import Floats
from latentmetric.io.cells import (
    DECIMAL_COMMA,
    advice_on,
    booleans_in,
    is_missing,
    is_value,
    value,
)
from latentmetric.io.headers import are_names, is_header, is_header_for
from latentmetric.io.quoting import CannotSplitError, QuoteError, content, marked
from latentmetric.validation.labels import text_array
from latentmetric.validation.rows import first_not_finite

DELIMITERS = "\t;|,"
"""Tried in this order: commas also occur within numbers and words."""

SAMPLE = 20
"""Records that are read to detect the delimiter, the header and the kinds of columns."""

MISSING = ("", "nan", "NaN", "NaT", "<NA>")
"""What a cell of labels holds where NumPy or pandas wrote a missing one."""

GZIP_MARK = b"\x1f\x8b"

MARKS = {
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-8": (codecs.BOM_UTF8,),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
"""Byte order marks; that of UTF-32 begins like one of UTF-16."""

MOST_LINE = 2**24
"""Characters of a line in a packed file, of which a few kilobytes can hold gigabytes."""

MOST_CELLS = 2**20
"""Cells of a line, each of which takes some 200 bytes before it is a number."""


@dataclass(frozen=True)
class TextFile:
    """How a file of text is laid out."""

    path: Path
    name: str
    """What messages call the file."""
    encoding: str
    delimiter: str
    decimal: str
    """The mark before the decimals: a point or a comma."""
    names: list[str]
    """Of the columns; "column 1" and so on where the file has no header."""
    has_header: bool
    has_index: bool
    """Whether the header leaves the first column without a name, as pandas does with an index."""
    lines_before: int
    """Lines before the first record of data."""
    sample: list[list[str]]
    """The first records of data."""
    missing: bool = False
    """Whether numbers may be missing."""
    for_model: bool = False
    """Whether a model that is fitted already needs the columns."""

    def kind(self, place: int) -> str:
        """What most of the first cells of a column hold: "number" (Booleans are) or "text"."""
        cells = self._first_cells(place)
        values = sum(is_value(cell, self.decimal) for cell in cells)
        return "number" if 2 * values >= len(cells) else "text"

    def described(self, place: int) -> str:
        """What a column of text holds, for messages."""
        cell = next(c for c in self._first_cells(place) if not is_value(c, self.decimal))
        return f"text such as {shortened(cell, 40)!r}{self._hint(cell)}"

    def _first_cells(self, place: int) -> list[str]:
        cells = [record[place].strip() for record in self.sample if place < len(record)]
        return [cell for cell in cells if cell and not (self.missing and is_missing(cell))]

    def _hint(self, cell: str) -> str:
        if self.decimal == "." and DECIMAL_COMMA.fullmatch(cell.strip()):
            return " (if that is a number with a decimal comma, add --decimal ,)"
        return ""

    def read(
        self, features: Sequence[int], texts: Sequence[int] = ()
    ) -> tuple[Floats, list[np.ndarray[Any, Any]]]:
        """Columns as numbers, and others as text."""
        with _faults_named(self.path, self.name, self.encoding):
            converted = booleans_in(self.sample, features)
            if self.decimal != "." or self.missing:
                converted = set(features)
            try:
                return self._read(features, texts, converted)
            except (UnicodeError, QuoteError):
                raise
            except ValueError as error:
                # Plain numbers are read fastest; Booleans that come late are looked for only here.
                booleans = booleans_in((cells for _, cells in self._records()), features)
                if booleans <= converted:
                    raise self._fault(set(features), error) from error
            try:
                return self._read(features, texts, booleans | converted)
            except ValueError as error:
                raise self._fault(set(features), error) from error

    def _read(
        self, features: Sequence[int], texts: Sequence[int], converted: set[int]
    ) -> tuple[Floats, list[np.ndarray[Any, Any]]]:
        wanted, codes = set(features), [dict[str, int]() for _ in texts]
        converters: dict[int | str, Any] = {
            place: _skip for place in range(len(self.names)) if place not in wanted
        }
        converters |= dict.fromkeys(converted, self._number)
        for place, known in zip(texts, codes, strict=True):
            converters[place] = _encoder(known)
        with _opened(self.path, self.encoding) as file:
            lines = islice(file, self.lines_before, None)
            first = self.lines_before + 1
            table = np.loadtxt(
                marked(lines, self.name, self.delimiter, first, self._row_detector()),
                delimiter=self.delimiter, comments=None, quotechar='"', ndmin=2,
                encoding=self.encoding, converters=converters,
            )  # fmt: skip
        found = [
            text_array(list(known), self.name, len(table))[table[:, place].astype(np.intp)]
            for place, known in zip(texts, codes, strict=True)
        ]
        is_whole = list(features) == list(range(len(self.names)))
        return table if is_whole else np.ascontiguousarray(table[:, list(features)]), found

    def _row_detector(self) -> Callable[[str], bool]:
        """Tells whether a line could be a row: as many cells, and numbers where these belong."""
        n_columns = len(self.names)
        numbers = [place for place in range(n_columns) if self.kind(place) == "number"]

        def is_row(line: str) -> bool:
            cells = line.split(self.delimiter)
            is_as_wide = bool(numbers) and len(cells) == n_columns > 1
            return is_as_wide and all(is_value(cells[place], self.decimal) for place in numbers)

        return is_row

    def check_finite(self, rows: Floats, features: Sequence[int]) -> None:
        """Refuse NaN, unless numbers may be missing, and infinity, with line and column."""
        bad = first_not_finite(rows, self.missing)
        if bad is not None:
            raise ValueError(
                f"{self._place(bad[0], features[bad[1]])}: {rows[bad]} is not a finite number; "
                f"{advice_on(rows[bad], self.for_model)}"
            )

    def check_labels(self, labels: np.ndarray[Any, Any], place: int) -> None:
        """Refuse cells that are empty or say that the label is missing, with line and column."""
        missing = np.isin(labels, MISSING)
        if missing.any():
            raise ValueError(
                f"{self._place(int(missing.argmax()), place)}: the label is missing; fill it in "
                "or remove the row"
            )

    def _place(self, row: int, column: int) -> str:
        line = next(islice(self._records(), row, None))[0]
        return f"{self.name}, line {line}, column {self.names[column]!r}"

    def _number(self, cell: str) -> float:
        return nan if self.missing and is_missing(cell) else value(cell, self.decimal)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The line each record of data starts on, and its cells."""
        records = _records(self.path, self.name, self.encoding, self.delimiter)
        yield from islice(records, self.has_header, None)

    def _fault(self, features: set[int], error: ValueError) -> ValueError:
        """What is wrong with the first record that cannot be read."""
        n_columns, first = len(self.names), None
        for line, cells in self._records():
            first = first or line
            if len(cells) != n_columns:
                return ValueError(
                    f"{self.name}, line {line}: {len(cells)} cells, but {n_columns} in the first "
                    "line; quote a cell that holds the delimiter "
                    f"{self.delimiter!r}, or fill in what is missing"
                )
            for place in sorted(features):
                if not is_value(cells[place], self.decimal) and not (
                    self.missing and is_missing(cells[place])
                ):
                    is_first = line == first and not self.has_header
                    is_name = "; if it names the column, add --header" if is_first else ""
                    return ValueError(
                        f"{self.name}, line {line}, column {self.names[place]!r}: "
                        f"{self._no_number(cells[place])}{is_name}"
                    )
        return ValueError(f"{self.name} cannot be read: {' '.join(str(error).split())}")

    def _no_number(self, cell: str) -> str:
        """What is wrong with a cell, and what to do: a model needs all of its columns."""
        is_empty = not cell.strip()
        what = "the cell is empty" if is_empty else f"{shortened(cell, 40)!r} is not a number"
        if not self.for_model:
            filled = " (fit and compare fill it in with --impute median)" if is_empty else ""
            return (
                f"{what}{self._hint(cell)}{filled}; fix it, or leave the column out with --ignore"
            )
        if is_missing(cell):
            return f"{what}; fill it in, or fit the model again with --impute"
        return f"{what}{self._hint(cell)}; fix it, because the model needs the column"


def open_text(
    path: Path,
    name: str = "",
    *,
    header: bool | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    known: Sequence[str] | None = None,
    wanted: Sequence[str] = (),
    missing: bool = False,
    for_model: bool = False,
) -> TextFile:
    """Read the first lines and detect what is None.

    A header is recognised by the names that a model has, ``known``, and those given, ``wanted``.
    """
    name = name or str(path)
    if decimal not in (".", ","):
        raise ValueError(f"the decimal mark is {decimal!r}; it must be a point or a comma")
    with _faults_named(path, name, encoding or ""):
        encoding = _encoding(path, name, encoding)
    with _faults_named(path, name, encoding):
        delimiter = delimiter or _delimiter(path, name, encoding, decimal)
        sample = list(islice(_records(path, name, encoding, delimiter), SAMPLE))
    if not sample:
        raise ValueError(f"{name} is empty")
    records = [cells for _, cells in sample]
    has_header = header
    if has_header is None:
        has_header = _has_header(records, name, decimal, known, wanted)
    names = [f"column {place}" for place in range(1, len(records[0]) + 1)]
    has_index = has_header and records[0][0].strip() in ("", "Unnamed: 0")
    if has_header:
        names = [
            cell if cell.strip() else given for cell, given in zip(records[0], names, strict=True)
        ]
        if len(sample) == 1:
            raise ValueError(f"{name} has a header but no rows below it")
    line, first = sample[int(has_header)]
    if len(first) != len(names):
        raise ValueError(
            f"{name}, line {line}: {len(first)} cells, but {len(names)} in the first line"
        )
    below = records[int(has_header) :]
    return TextFile(
        path, name, encoding, delimiter, decimal, names, has_header, has_index, line - 1, below,
        missing, for_model,
    )  # fmt: skip


def _has_header(
    records: list[list[str]],
    name: str,
    decimal: str,
    known: Sequence[str] | None,
    wanted: Sequence[str],
) -> bool:
    """Whether the first record is a header; raise if it may be data as well."""
    found = is_header_for(wanted, records)
    if found is False:
        found = is_header(records, decimal)
    if found is None and known is not None and are_names(known, records[0], decimal):
        return True
    if found is None:
        shown = shortened(", ".join(records[0]), 60)
        raise ValueError(
            f"{name}: the first line, {shown!r}, may name the columns or be data; say which with "
            "--header or --no-header"
        )
    return found


def _opened(path: Path, encoding: str) -> TextIO:
    """The text with its line ends as they are, after the byte order mark."""
    codecs.lookup(encoding)  # before the file is open, so that nothing is left open
    unread = _opened_bytes(path)
    kind = _Lines if isinstance(unread, gzip.GzipFile) else io.TextIOWrapper
    file = kind(unread, encoding=encoding, newline="")
    try:
        if file.read(1) != "\ufeff":
            file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


class _Lines(io.TextIOWrapper):
    """Text whose lines are of a bounded length; that of plain files is bounded by their size."""

    def __next__(self) -> str:  # type: ignore[override]
        line = self.readline(MOST_LINE + 1)
        if len(line) > MOST_LINE:
            raise ValueError(
                f"a line has more than {MOST_LINE:,} characters; unpack the file, or store the "
                "table as .npy or .parquet"
            )
        if not line:
            raise StopIteration
        return line


def _opened_bytes(path: Path) -> BinaryIO:
    """The bytes of the text, unpacked if need be."""
    with path.open("rb") as file:
        is_packed = file.read(len(GZIP_MARK)) == GZIP_MARK
    return cast(BinaryIO, gzip.open(path)) if is_packed else path.open("rb")


def _encoding(path: Path, name: str, given: str | None) -> str:
    """The encoding that is given or marked; refuse what these two or zero bytes rule out."""
    with _opened_bytes(path) as file:
        start = file.read(2**16)
    found = next((family for family, marks in MARKS.items() if start.startswith(marks)), None)
    if given is not None:
        family = codecs.lookup(given).name
        if found is not None and not family.startswith(found):
            raise ValueError(
                f"{name} begins with the mark of {found}, but --encoding says {given}; leave that "
                "out"
            )
        return given
    if found is None and b"\0" in start:
        raise ValueError(f"{name} holds zero bytes: it is not a table in text")
    return found or "utf-8"


def _records(
    path: Path, name: str, encoding: str, delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank, as cells, each with the number of the line it starts on."""
    with _opened(path, encoding) as file:
        lines = marked(file, name, delimiter, longest=csv.field_size_limit())
        reader = csv.reader(lines, delimiter=delimiter)
        line = 1
        try:
            for cells in reader:
                if len(cells) > MOST_CELLS:
                    raise ValueError(
                        f"{name}, line {line}: {len(cells):,} cells, more than {MOST_CELLS:,}; "
                        "store a table of so many columns as .npy or .parquet"
                    )
                if cells:
                    yield line, [content(cell) for cell in cells]
                line = reader.line_num + 1
        except csv.Error as error:
            message = f"{name}, line {line} cannot be split into cells: {error}"
            raise CannotSplitError(message) from error


def _delimiter(path: Path, name: str, encoding: str, decimal: str) -> str:
    """What cuts the first records into the same number of cells, two or more."""
    widths = {}
    for delimiter in DELIMITERS:
        if delimiter == decimal and _is_spaced(path, name, encoding, decimal):
            return " "
        widths[delimiter] = _widths(path, name, encoding, delimiter)
        if len(widths[delimiter]) == 1 and widths[delimiter] != {1}:
            return delimiter
    if _is_spaced(path, name, encoding, decimal):
        return " "
    return max(reversed(DELIMITERS), key=lambda delimiter: max(widths[delimiter], default=0))


def _widths(path: Path, name: str, encoding: str, delimiter: str) -> set[int]:
    """How many cells the first records have; nothing if the delimiter leaves one too long."""
    found = set()
    try:
        for _, cells in islice(_records(path, name, encoding, delimiter), SAMPLE):
            found.add(len(cells))
    except QuoteError as error:
        return found | {error.n_cells}
    except CannotSplitError:
        return set()
    return found


def _is_spaced(path: Path, name: str, encoding: str, decimal: str) -> bool:
    """Whether the first record is numbers with spaces between."""
    try:
        cells = next(_records(path, name, encoding, " "), (1, []))[1]
    except CannotSplitError:
        return False
    return len(cells) > 1 and all(is_value(cell, decimal) for cell in cells)


def _skip(cell: str) -> float:
    return 0.0


def _encoder(codes: dict[str, int]) -> Any:
    """A converter that numbers texts by their first occurrence."""
    return lambda cell: codes.setdefault(content(cell), len(codes))


@contextmanager
def _faults_named(path: Path, name: str, encoding: str) -> Iterator[None]:
    try:
        yield
    except UnicodeError as error:
        raise _undecodable(path, name, encoding, error) from error
    except CannotSplitError as error:
        raise ValueError(str(error)) from error
    except LookupError as error:
        raise ValueError(f"{encoding!r} is not an encoding that Python knows") from error


def _undecodable(path: Path, name: str, encoding: str, error: UnicodeError) -> ValueError:
    """Name the line and the byte, where lines can be found before decoding."""
    advice = "name its encoding, for example --encoding latin-1"
    if encoding.startswith("utf-8"):
        with _opened_bytes(path) as file:
            lines = iter(lambda: file.readline(MOST_LINE), b"")
            for number, line in enumerate(lines, start=1):
                try:
                    line.decode(encoding)
                except UnicodeDecodeError as fault:
                    return ValueError(
                        f"{name}, line {number}: byte 0x{line[fault.start]:02x} is not UTF-8; "
                        f"{advice}"
                    )
    return ValueError(f"{name} is not text in {encoding} ({error}); {advice}")
