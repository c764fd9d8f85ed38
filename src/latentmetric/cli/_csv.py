"""Answers as CSV that a spreadsheet shows and never runs.

A spreadsheet takes text such as ``=HYPERLINK(…)`` for a formula, even between quotes. An
apostrophe before it makes it text. Numbers stay as they are, and so do single marks, as in the
labels + and -.
"""

from __future__ import annotations

import csv
import re
from typing import Any

import numpy as np

from latentmetric.characters import visible

Columns = dict[str, np.ndarray[Any, Any]]
"""By name, each of the same length."""

ROWS_AT_A_TIME = 10_000

FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠].", re.DOTALL)
"""How text begins that a spreadsheet would run, the wide marks of East Asia included.

Also behind apostrophes: one more is added there, so that different texts stay different.
"""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


END = "\r\n"
"""Given to the csv module, which quotes cells that hold a character of it, so that none ends a row.

What is written ends in a newline alone.
"""


class _Lines:
    """A file to which rows are written without the carriage return at their end."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(f"{line.removesuffix(END)}\n")


def write_csv(columns: Columns, file: Any, delimiter: str) -> None:
    """Write columns with a header; a terminal gets codes for hidden characters."""
    as_shown = visible if file.isatty() else str
    writer = csv.writer(_Lines(file), delimiter=delimiter, lineterminator=END)
    writer.writerow([as_shown(as_text(name)) for name in columns])
    length = len(next(iter(columns.values())))
    for start in range(0, length, ROWS_AT_A_TIME):
        block = [column[start : start + ROWS_AT_A_TIME] for column in columns.values()]
        cells = [
            values.tolist()
            if values.dtype.kind in "biuf"
            else [as_shown(as_text(str(value))) for value in values.tolist()]
            for values in block
        ]
        writer.writerows(zip(*cells, strict=True))
    file.flush()


def as_text(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would run it."""
    is_formula = FORMULA.match(text) and not NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text
