"""HTML that is escaped by construction, and any label as text that can be shown.

``tag`` escapes everything that is not already ``Html``, so labels, names and paths never
become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

from latentmetric.characters import is_hidden, shortened, told_apart

LONGEST_TEXT = 60
"""Characters of a label or name that are shown; longer ones are cut in the middle."""

VOID_TAGS = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})


class Html(str):
    """Markup that is already escaped."""

    __slots__ = ()


Content = Html | str | int | None


def tag(name: str, /, *content: Content, **attributes: Any) -> Html:
    """One element. ``class_`` is class, ``data_x`` is data-x; None and False leave one out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID_TAGS:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(content)}</{name}>")


def join(parts: Iterable[Content], separator: str = "") -> Html:
    """Parts one after the other, each escaped unless it is markup."""
    return Html(
        separator.join(
            part if isinstance(part, Html) else escape(str(part))
            for part in parts
            if part is not None
        )
    )


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{escape(str(value))}"'


def shown(value: Any, longest: int = LONGEST_TEXT) -> str:
    """A label, name or path as one line of visible characters, at most ``longest`` long."""
    return shortened(_readable(value, longest), longest)


def _readable(value: Any, longest: int) -> str:
    """Visible characters, made of no more of a text than ``longest`` of them may come from."""
    return "".join(map(_visible, shortened(value, 4 * longest))) or "(empty)"


def _visible(character: str) -> str:
    code = ord(character)
    if code < 32:
        return chr(0x2400 + code)
    return f"\\u{{{code:x}}}" if is_hidden(character) else character


def breakable(text: str) -> Html:
    """Text that may begin a new line after an underscore, a slash or a dot, not inside a word."""
    return join(re.split(r"(?<=[_/.\\])(?=\w)", text), separator="<wbr>")


def code(text: str) -> Html:
    """An option or an argument, which is never broken into two lines."""
    return tag("code", text)


def distinct(labels: Iterable[Any]) -> list[str]:
    """Each label as it is shown; labels that would look the same are told apart."""
    return told_apart((_readable(label, LONGEST_TEXT) for label in labels), LONGEST_TEXT)


def number(value: float) -> str:
    """A number with about three digits, with commas between thousands."""
    if value != value:
        return "–"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1e9 or 0 < size < 1e-3:
        return f"{value:.3g}"
    return f"{value:,.{max(0, 3 - len(str(int(size))))}f}" if size >= 1 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share as a percentage with two decimals."""
    return "–" if share != share else f"{100 * share:.2f}\N{NO-BREAK SPACE}%"


def points(difference: float) -> str:
    """A difference of two shares in percentage points."""
    return f"{abs(100 * difference):.2f} percentage points"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: ``1 row``, ``2 rows``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
