"""What a cell of text holds: a number, a Boolean, a word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isnan

BOOLEANS = {"true": 1.0, "false": 0.0}
"""Words that are numbers, in lower case."""

DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


MISSING_NUMBERS = ("", "?", "na", "n/a", "nan", "null", "none", "<na>")
"""What a cell holds, in lower case, where a number is missing."""


def is_missing(cell: str) -> bool:
    """Whether a cell says that its number is missing."""
    return cell.strip().lower() in MISSING_NUMBERS


def advice_on(number: float, for_model: bool) -> str:
    """What to do about a number that is not finite; a model needs every number of its rows."""
    if for_model and isnan(number):
        return "fill it in, or fit the model again with --impute"
    return "fill it in or remove the row"


def value(cell: str, decimal: str) -> float:
    """The number that a cell holds; raise ``ValueError`` if it holds none."""
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


def may_be_value(cell: str, decimal: str) -> bool:
    """Whether a cell looks like a number, also with a decimal comma, which is reported later."""
    return is_value(cell, decimal) or bool(DECIMAL_COMMA.fullmatch(cell.strip()))


def mostly_values(cells: Sequence[str], decimal: str) -> bool:
    """Whether at least half of the cells of a column look like numbers."""
    return 2 * sum(may_be_value(cell, decimal) for cell in cells) >= len(cells)


def is_boolean(cell: str) -> bool:
    """Whether a cell holds the word true or false."""
    return cell.strip().lower() in BOOLEANS


def booleans_in(records: Iterable[list[str]], places: Sequence[int]) -> set[int]:
    """The columns, among these, that hold a Boolean somewhere."""
    found: set[int] = set()
    for cells in records:
        found |= {place for place in places if place < len(cells) and is_boolean(cells[place])}
    return found
