"""Tables in text: .csv, .tsv and .txt, with numbers, quoted fields, one column of labels.

NumPy's own reader does the work, some 5 million numbers a second, so that plain text needs no
further library. Where something is wrong, the file is gone through once more to name the line.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.core.types import Floats
from latentmetric.io.rows import first_not_finite

SUFFIXES = (".csv", ".tsv", ".txt")

DELIMITERS = "\t;|,"
"""Tried in this order: commas also occur within numbers and words."""

SAMPLE = 20
"""Records that are looked at to tell delimiter and header."""

LABEL_NAMES = ("label", "labels", "y", "target", "targets", "class", "classes", "category")
"""What people call the column or array of labels, in lower case."""


@dataclass(frozen=True)
class TextFile:
    """How a file of text is laid out."""

    path: Path
    encoding: str
    delimiter: str
    names: list[str]
    """Of the columns; "column 1" and so on where the file has no header."""
    has_header: bool
    lines_before: int
    """Lines before the first record of data."""
    first: list[str]
    """The first record of data."""

    def is_number(self, place: int) -> bool:
        """Whether the first cell of a column is a number, or might be one that is missing."""
        return _is_number(self.first[place]) or not self.first[place].strip()

    def read(
        self, features: Sequence[int], label: int | None
    ) -> tuple[Floats, np.ndarray[Any, Any] | None]:
        """The columns of features as numbers, and that of the labels as text."""
        codes: dict[str, int] = {}
        read: dict[int | str, Any] = {
            place: _skip for place in range(len(self.names)) if place not in set(features)
        }
        if label is not None:
            read[label] = lambda cell: codes.setdefault(cell.strip(), len(codes))
        try:
            numbers = np.loadtxt(
                str(self.path), delimiter=self.delimiter, comments=None, quotechar='"', ndmin=2,
                encoding=self.encoding, skiprows=self.lines_before, converters=read,
            )  # fmt: skip
        except UnicodeError as error:
            raise self._undecodable(error) from error
        except ValueError as error:
            raise self._fault(set(features), error) from error
        rows = numbers if not read else np.ascontiguousarray(numbers[:, list(features)])
        bad = first_not_finite(rows)
        if bad is not None:
            name = self.names[features[bad[1]]]
            raise ValueError(
                f"{self.path}, line {self._line(bad[0])}, column {name!r}: {rows[bad]} is not a "
                "finite number; fill it or leave the row out"
            )
        return rows, None if label is None else self._labels(numbers[:, label], codes, label)

    def _labels(self, read: Floats, codes: dict[str, int], label: int) -> np.ndarray[Any, Any]:
        indices = read.astype(np.intp)
        if "" in codes:
            line = self._line(int(np.argmax(indices == codes[""])))
            raise ValueError(
                f"{self.path}, line {line}, column {self.names[label]!r}: the label is missing; "
                "fill it or leave the row out"
            )
        return np.array(list(codes))[indices]

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The line each record of data starts on, and its cells."""
        yield from islice(_records(self.path, self.encoding, self.delimiter), self.has_header, None)

    def _line(self, row: int) -> int:
        return next(islice(self._records(), row, None))[0]

    def _fault(self, features: set[int], error: ValueError) -> ValueError:
        """What is wrong with the first record that cannot be read."""
        n_columns = len(self.names)
        for line, cells in self._records():
            if len(cells) != n_columns:
                return ValueError(
                    f"{self.path}, line {line}: {len(cells)} cells, but {n_columns} in the first "
                    "line; quote a cell that holds the delimiter "
                    f"{self.delimiter!r}, or fill what is missing"
                )
            for place in sorted(features):
                if not _is_number(cells[place]):
                    what = f"{cells[place][:40]!r} is not a number"
                    if not cells[place].strip():
                        what = "the cell is empty"
                    return ValueError(
                        f"{self.path}, line {line}, column {self.names[place]!r}: {what}; mend "
                        "it, or leave the column out with --ignore"
                    )
        return ValueError(f"{self.path} cannot be read: {' '.join(str(error).split())}")

    def _undecodable(self, error: UnicodeError) -> ValueError:
        return _undecodable(self.path, self.encoding, error)


def open_text(path: Path, header: bool | None = None, encoding: str | None = None) -> TextFile:
    """Look at the first lines; None for header and encoding means to find out."""
    encoding = encoding or _encoding_by_mark(path)
    with _faults_named(path, encoding):
        delimiter = _delimiter(path, encoding)
        sample = list(islice(_records(path, encoding, delimiter), SAMPLE))
    if not sample:
        raise ValueError(f"{path} is empty")
    has_header = _is_header([cells for _, cells in sample]) if header is None else header
    names = [f"column {place}" for place in range(1, len(sample[0][1]) + 1)]
    if has_header:
        names = [cell.strip() or name for cell, name in zip(sample[0][1], names, strict=True)]
        if len(sample) == 1:
            raise ValueError(f"{path} has a header but no rows below it")
    line, first = sample[int(has_header)]
    if len(first) != len(names):
        raise ValueError(
            f"{path}, line {line}: {len(first)} cells, but {len(names)} in the first line"
        )
    return TextFile(path, encoding, delimiter, names, has_header, line - 1, first)


def as_labels(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole numbers where all the texts are such, other numbers likewise, else the texts.

    What a number would not give back stays text: 007 is a name.
    """
    distinct, places = np.unique(texts, return_inverse=True)
    if not all(_is_number(text) and not re.match(r"[+-]?0\d", text) for text in distinct.tolist()):
        return texts
    numbers = distinct.astype(np.float64)
    if not (np.abs(numbers) < 2**53).all():
        return texts
    whole = (numbers == np.rint(numbers)).all()
    return (numbers.astype(np.int64) if whole else numbers)[places]


def _encoding_by_mark(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(2**16)
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if start.startswith(mark):
            return encoding
    if b"\0" in start:
        raise ValueError(f"{path} holds zero bytes: it is not a table in text")
    return "utf-8"


def _records(path: Path, encoding: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank, as cells, each with the number of the line it starts on."""
    with path.open(encoding=encoding, newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        line = 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(f"{path}, line {line} cannot be cut into cells: {error}") from error


def _delimiter(path: Path, encoding: str) -> str:
    """What cuts the first records into the same number of cells, two or more."""
    if path.suffix == ".tsv":
        return "\t"
    widths = {}
    for delimiter in DELIMITERS:
        sample = [cells for _, cells in islice(_records(path, encoding, delimiter), SAMPLE)]
        widths[delimiter] = {len(cells) for cells in sample}
        if len(widths[delimiter]) == 1 and widths[delimiter] != {1}:
            return delimiter
    spaced = next(_records(path, encoding, " "), (1, []))[1]
    if len(spaced) > 1 and all(_is_number(cell) for cell in spaced):
        return " "
    return max(reversed(DELIMITERS), key=lambda delimiter: max(widths[delimiter], default=0))


def _is_header(sample: list[list[str]]) -> bool:
    """Names above numbers; or column numbers from 0 on, as pandas writes them; or a known name."""
    first, below = sample[0], sample[1:2]
    if any(cell.strip().lower() in LABEL_NAMES for cell in first):
        return True
    unnamed = first[1:] if first and not first[0].strip() else first
    if len(unnamed) > 1 and unnamed == [str(place) for place in range(len(unnamed))]:
        return True
    return any(
        bool(cell.strip()) and not _is_number(cell) and _is_number(beneath)
        for row in below
        for cell, beneath in zip(first, row, strict=False)
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _skip(cell: str) -> float:
    return 0.0


@contextmanager
def _faults_named(path: Path, encoding: str) -> Iterator[None]:
    try:
        yield
    except UnicodeError as error:
        raise _undecodable(path, encoding, error) from error
    except LookupError as error:
        raise ValueError(f"{encoding!r} is not an encoding that Python knows") from error


def _undecodable(path: Path, encoding: str, error: UnicodeError) -> ValueError:
    """Name the line and the byte, where lines can be told before decoding."""
    advice = "name its encoding, for example --encoding latin-1"
    if encoding.startswith("utf-8"):
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode(encoding)
                except UnicodeDecodeError as fault:
                    return ValueError(
                        f"{path}, line {number}: byte 0x{line[fault.start]:02x} is not UTF-8; "
                        f"{advice}"
                    )
    return ValueError(f"{path} is not text in {encoding} ({error}); {advice}")
