"""Quotes around cells of text: each must be closed, and what they hold is kept letter by letter.

Neither NumPy nor the csv module says whether a cell was quoted. So each quoted cell gets a mark
before its text, which readers of numbers skip as a space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from math import inf

MARK = "\x1f"
"""Begins the text of a quoted cell. It counts as a space, but nobody writes it around a cell."""

BODY = '[^"]*(?:""[^"]*)*'
"""What is between quotes, where two quotes stand for one."""


class CannotSplitError(ValueError):
    """A record cannot be cut into cells: perhaps the delimiter is another one."""


class QuoteError(CannotSplitError):
    """A quote does not fit what is around it."""

    def __init__(self, message: str, n_cells: int) -> None:
        super().__init__(message)
        self.n_cells = n_cells
        """Of the line where the quote opened, if quotes had no meaning."""


def content(cell: str) -> str:
    """What a marked cell holds: quoted text letter by letter, other text without outer spaces."""
    return cell[1:] if cell.startswith(MARK) else cell.strip()


def marked(
    lines: Iterable[str],
    name: str,
    delimiter: str,
    first: int = 1,
    is_row: Callable[[str], bool] = lambda line: False,
    longest: float = inf,
) -> Iterator[str]:
    """Lines with quoted cells marked; raise ``QuoteError`` where a quote does not fit.

    Parameters
    ----------
    lines : iterable of str
        With their ends; the first begins a record.
    name : str
        What messages call the file.
    delimiter : str
        Between cells, one character.
    first : int, default=1
        The number of the first line.
    is_row : callable, default=none is
        Whether a line would be a row of the table if quotes had no meaning.
    longest : float, default=inf
        Characters of the lines that one cell may go over.
    """
    quotes = _Quotes(name, delimiter, is_row, longest)
    for number, line in enumerate(lines, first):
        yield quotes.marked(number, line) if quotes.are_open or '"' in line else line
    if quotes.are_open:
        raise quotes.not_closed("the file ends within the cell")


class _Quotes:
    """Follows the quotes from line to line."""

    def __init__(
        self, name: str, delimiter: str, is_row: Callable[[str], bool], longest: float
    ) -> None:
        self._longest, self._length = longest, 0
        self._name, self._delimiter, self._is_row = name, delimiter, is_row
        between, blanks = re.escape(delimiter), " \t".replace(delimiter, "")
        rest = f'({BODY})("?)[{blanks}]*([^{between}\r\n])?'
        self._rest = re.compile(rest)
        self._cell = re.compile(f'"(?:(?<={between}")|(?<=\\A")){rest}')  # fast: begins plainly
        self._opened, self._opening = 0, ""

    @property
    def are_open(self) -> bool:
        """Whether the next line begins within a quoted cell."""
        return self._opened > 0

    def marked(self, number: int, line: str) -> str:
        """The line with a mark in each quoted cell that begins on it."""
        before, line = self._continued(number, line) if self.are_open else ("", line)

        def with_mark(cell: re.Match[str]) -> str:
            body, end, more = cell.groups()
            if more:
                raise self._more_text(number, line, cell[0])
            if not end:
                self._opened, self._opening, self._length = number, line, len(line)
            return f'"{MARK}{body}{end}'

        return before + self._cell.sub(with_mark, line)

    def _continued(self, number: int, line: str) -> tuple[str, str]:
        """What of a line belongs to the open cell, and what follows it."""
        if self._is_row(self._opening) and self._is_row(line):
            raise self.not_closed(f"line {number} within the cell looks like a row")
        self._length += len(line)
        if self._length > self._longest:
            raise self.not_closed(f"not within {self._longest:,} characters")
        match = self._rest.match(line)
        assert match is not None
        body, end, more = match.groups()
        if more:
            raise self.not_closed(f"text follows the next quote, in line {number}")
        if end:
            self._opened = 0
        return body + end, line[match.end() :]

    def _more_text(self, number: int, line: str, cell: str) -> QuoteError:
        return QuoteError(
            f"{self._name}, line {number}: more text follows the quote that closes a cell, "
            f"{cell[-40:]!r}; write a quote within quotes twice",
            self._n_cells(line),
        )

    def not_closed(self, why: str) -> QuoteError:
        """The error of a quote that swallows what comes after it."""
        return QuoteError(
            f"{self._name}, line {self._opened}: a quote opens a cell and is not closed where the "
            f'cell ends ({why}); close it, or write a cell that begins with a quote as """…"',
            self._n_cells(self._opening),
        )

    def _n_cells(self, line: str) -> int:
        return line.count(self._delimiter) + 1
