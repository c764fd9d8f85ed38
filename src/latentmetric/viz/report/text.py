"""Values as the page shows them: labels as one visible line, numbers in a few digits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from latentmetric.characters import distinct_names, shortened, visible
from latentmetric.viz.report import limits

NBSP = "\N{NO-BREAK SPACE}"


def shown(value: Any, longest: int = limits.MAX_TEXT) -> str:
    """A label, name or path as one line of visible characters, at most ``longest`` long."""
    return shortened(_visible(value, longest), longest)


def distinct(labels: Iterable[Any]) -> list[str]:
    """Each label as it is shown; labels that would look the same are told apart."""
    return distinct_names((_visible(label, limits.MAX_TEXT) for label in labels), limits.MAX_TEXT)


def _visible(value: Any, longest: int) -> str:
    """Visible characters, made of no more of a text than ``longest`` of them may come from."""
    return visible(shortened(value, 4 * longest)) or "(empty)"


def number(value: float) -> str:
    """A number with about three digits, with commas between thousands."""
    if value != value:
        return "–"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1e9 or size < 1:
        return f"{value:.3g}"
    return f"{value:,.{max(0, 3 - len(str(int(size))))}f}"


def value_text(value: Any) -> str:
    """A cell of the caller's table: a number, a word, or a dash where there is none."""
    if value is None or value != value:
        return "–"
    return number(float(value)) if is_numeric(value) else shown(value, 40)


def is_numeric(value: Any) -> bool:
    """Whether a cell of the caller's table is a number."""
    return isinstance(value, int | float | np.number)


def percent(share: float) -> str:
    """A share as a percentage with two decimals."""
    return "–" if share != share else f"{100 * share:.2f}{NBSP}%"


def share(part: float) -> str:
    """A share as a percentage with as few decimals as it needs."""
    return f"{100 * part:g}{NBSP}%"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: ``1 row``, ``2 rows``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def coordinate(value: float) -> str:
    """A coordinate of a drawing with as many digits as a screen shows."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


FILTERS = {
    "commas": "{:,}".format,
    "coordinate": coordinate,
    "counted": counted,
    "name_parts": re.compile(r"(?<=[_/.\\])(?=\w)").split,  # not inside a word
    "number": number,
    "percent": percent,
    "points": lambda difference: f"{abs(100 * difference):.2f} percentage points",
    "share": share,
    "signed": lambda value: f"{value:+.1f}".replace("-", "−"),
}
"""What the templates may call."""
