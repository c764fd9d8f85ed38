"""Whether the first line of a text names the columns or is data.

A line that is dropped is lost, and all rows after it are shifted. So the first line counts as a
header only if it cannot be data, and where it may be both, the user is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from latentmetric.io.cells import may_be_value, mostly_values

LABEL_NAMES = ("label", "labels", "y", "target", "targets", "class", "classes", "category")
"""What people call the column or array of labels, in lower case."""

MISSING_NUMBERS = (
    "NA", "N/A", "n/a", "na", "#N/A", "<NA>", "NaT", "null", "NULL", "None", "none", "missing",
    "-", "--", "?", ".", "*",
)  # fmt: skip
"""What people write for a number that they do not have."""

MANY = 8
"""So many column numbers in a row are no coincidence."""

WHOLE = re.compile(r"[+-]?\d+")


def is_header(records: Sequence[Sequence[str]], decimal: str) -> bool | None:
    """Whether the first of some records names the columns; None if it may be data as well."""
    line = _FirstLine.of(records, decimal)
    if not line.numbers:
        return _is_header_of_words(line)
    if not line.values:
        return _is_header_of_names(line)
    if line.counts_up:
        return _is_header_of_numbers(line)
    is_doubtful = line.has_known or bool(line.names) or line.is_whole_above_fractions
    return None if is_doubtful else False


def is_header_for(wanted: Sequence[str], records: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first record has the name of a column that the user wants.

    None if that word occurs again below it; False if no name is there.
    """
    names = {name for name in wanted if not may_be_value(name, ".")}
    places = [place for place, cell in enumerate(records[0]) if cell in names]
    if any(records[0][p] in [r[p] for r in records[1:] if p < len(r)] for p in places):
        return None
    return bool(places)


def are_names(known: Sequence[str], first: Sequence[str], decimal: str) -> bool:
    """Whether a line has all names that a model knows, and these cannot be data."""
    can_be_data = len(known) < MANY and all(may_be_value(name, decimal) for name in known)
    return not can_be_data and set(known) <= set(first)


@dataclass(frozen=True)
class _FirstLine:
    """The first line, compared with the columns below it."""

    cells: list[str]
    values: list[str]
    """Cells that may be numbers."""
    numbers: list[int]
    """The places of the columns of numbers."""
    names: list[str]
    """Words above numbers that occur nowhere below and do not say that a number is missing."""
    is_repeated: bool
    """Whether a word occurs again below it, as labels do and names do not."""
    has_known: bool
    """Whether a cell is what people call labels, and no label."""
    is_only_y: bool
    """Whether that is the letter y, which may be a label as well."""
    has_fractions: bool
    """Whether no number below a number is whole."""
    has_value_above_words: bool
    """Whether a number stands above words, and not again among them."""

    @classmethod
    def of(cls, records: Sequence[Sequence[str]], decimal: str) -> _FirstLine:
        first = [cell.strip() for cell in records[0]]
        below = [[r[p].strip() for r in records[1:] if p < len(r)] for p in range(len(first))]
        held = [[cell for cell in cells if cell] for cells in below]
        numbers = [p for p, cells in enumerate(held) if cells and mostly_values(cells, decimal)]
        values = [p for p, cell in enumerate(first) if may_be_value(cell, decimal)]
        words = [p for p, cell in enumerate(first) if cell and p not in values]
        new = [p for p in words if first[p] not in below[p]]
        known = {first[p].lower() for p in new} & set(LABEL_NAMES)
        return cls(
            first,
            [first[p] for p in values],
            numbers,
            [first[p] for p in new if p in numbers and first[p] not in MISSING_NUMBERS],
            len(new) < len(words),
            bool(known),
            known == {"y"},
            not any(WHOLE.fullmatch(cell) for p in values if p in numbers for cell in held[p]),
            any(held[p] and p not in numbers and first[p] not in held[p] for p in values),
        )

    @property
    def is_whole_above_fractions(self) -> bool:
        """Whether the numbers are of another kind than those below, as wavelengths or years are."""
        are_whole = all(WHOLE.fullmatch(cell) for cell in self.values)
        return len(self.values) > 1 and are_whole and self.has_fractions

    @property
    def counts_up(self) -> bool:
        """Whether the numbers are 0, 1, 2 and so on, as pandas names columns."""
        is_run = self.values == [str(place) for place in range(len(self.values))]
        return is_run and (len(self.values) > 1 or self.has_known or not self.cells[0])


def _is_header_of_words(line: _FirstLine) -> bool | None:
    """Without a column of numbers below, only what people call labels is a name."""
    if not line.has_known:
        return False
    return None if line.values or line.is_repeated or line.is_only_y else True


def _is_header_of_names(line: _FirstLine) -> bool | None:
    """No number in the line, but numbers below."""
    if line.is_repeated:
        return None if line.names or line.has_known else False
    if line.names:
        return True
    return None if line.has_known else False


def _is_header_of_numbers(line: _FirstLine) -> bool | None:
    """Column numbers as pandas writes them, unless they are data that happens to count up."""
    n_numbers, has_name = len(line.values), line.has_known and not line.is_only_y
    is_clear = (
        not line.cells[0]
        or n_numbers >= MANY
        or (n_numbers > 2 and line.has_value_above_words)
        or (n_numbers > 1 and (line.has_fractions or has_name))
    )
    if line.is_repeated:
        return None if is_clear else False
    return True if is_clear else None


def is_header_of_labels(labels: Sequence[str]) -> bool | None:
    """Whether the first line of a file of labels is no label; None if it may be either.

    A label occurs again, or is a number among numbers. A header is what people call labels, or a
    word above numbers. It may be any word if that is the only one to occur once.
    """
    first, counts = labels[0], Counter(labels[1:])
    if first in counts or not counts or may_be_value(first, "."):
        return False
    are_numbers = all(may_be_value(label, ".") for label in counts)
    if are_numbers:
        return first not in MISSING_NUMBERS
    are_letters = all(len(label) == 1 for label in counts)
    if first.lower() in LABEL_NAMES and not (are_letters and len(first) == 1):
        return True
    return None if len(first) > 1 and min(counts.values()) > 1 else False
