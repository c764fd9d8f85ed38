"""Characters that a terminal or a browser would act on instead of showing them; imports nothing.

Labels, names, paths and messages come from outside. Everything that is shown goes through here.
"""

from __future__ import annotations

import io
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from os.path import commonprefix
from typing import Any

JOINERS = "\u200c\u200d"
"""Invisible characters that are kept, because some scripts and emoji need them."""

HIDDEN = frozenset({"Cc", "Cf", "Cn", "Cs", "Zl", "Zp"})
"""Categories of Unicode: control and bidi characters, ends of lines, half pairs, unassigned."""


def is_hidden(character: str) -> bool:
    """Whether a character has no shape of its own: it moves, colours, reverses or ends the text."""
    return unicodedata.category(character) in HIDDEN and character not in JOINERS


def visible(text: Any) -> str:
    """Text as one line, with a code such as \\x1b for each hidden character."""
    return "".join(
        character.encode("unicode_escape").decode() if is_hidden(character) else character
        for character in str(text)
    )


def shortened(text: Any, longest: int) -> str:
    """Text of at most ``longest`` characters, "…" in the place of those left out of its middle."""
    whole = str(text)
    if len(whole) <= longest:
        return whole
    end = (longest - 1) // 2
    return f"{whole[: longest - 1 - end]}…{whole[len(whole) - end :]}"


def in_a_sentence(names: Sequence[str]) -> str:
    """Names as a sentence lists them: ``a``, ``a and b``, ``a, b and c``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def distinct_names(names: Iterable[Any], longest: int) -> list[str]:
    """Names of at most ``longest`` characters that are as different as the whole names.

    Names that only differ in what would be cut out show their beginning and what follows from
    where they differ; names that still look the same get a number.
    """
    whole = [str(name) for name in names]
    alike: dict[str, list[str]] = {}
    for name in whole:
        alike.setdefault(shortened(name, longest), []).append(name)
    starts = {text: _difference(same) for text, same in alike.items()}
    shown = [_parted(name, starts[shortened(name, longest)], longest) for name in whole]
    times = Counter(shown)
    return [f"{name} (#{index})" if times[name] > 1 else name for index, name in enumerate(shown)]


def _difference(names: list[str]) -> int:
    """Where names begin to differ, at the first digit of a number; 0 if they are all the same."""
    same = commonprefix(names)  # noqa: RUF071 characters, not parts of a path
    return 0 if len(set(names)) == 1 else len(same.rstrip("0123456789"))


def _parted(name: str, start: int, longest: int) -> str:
    """The beginning of a name, and what follows from ``start`` if that would be cut out."""
    begin = longest // 3
    if start <= begin:
        return shortened(name, longest)
    return f"{name[:begin]}…{shortened(name[start:], longest - begin - 1)}"


def percent(share: float) -> str:
    """A share of 1 as it is shown everywhere: "8.25 %"."""
    return f"{100 * share:.2f} %"


def set_stdio_errors() -> None:
    """Write characters that the encoding of standard output or error lacks as codes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
