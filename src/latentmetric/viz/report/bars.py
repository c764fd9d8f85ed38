"""Horizontal bars as inline SVG: a name above each bar, so that long names need no column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from latentmetric.characters import told_apart
from latentmetric.viz.report.charts import LETTER, WIDTH, drawing, places, text
from latentmetric.viz.report.markup import Html, tag

LINE, TOP = 31, 24
"""Height of a bar with its name, and where the first one begins."""


@dataclass(frozen=True)
class Bar:
    """A value with its name."""

    name: str
    value: float
    said: str
    """The value as it is written."""
    spread: float = 0.0
    """Length of the whisker on each side; 0 for none."""
    kind: str = ""
    """A class of the style sheet: ``base``, ``alternative`` or none."""


def bar_chart(title: str, description: str, bars: Sequence[Bar]) -> Html:
    """The bars below each other, all from 0 and to the same scale."""
    most = max((bar.value + bar.spread for bar in bars), default=0) or 1.0
    widest = WIDTH - 8
    parts = [text(4, 14, title, "chart-title")]
    for place, (bar, name) in enumerate(zip(bars, _fitting(bars), strict=True)):
        parts.extend(_bar(bar, name, TOP + place * LINE, widest / most))
    parts.append(tag("path", d=f"M4 {TOP}V{TOP + len(bars) * LINE}", class_="grid"))
    return drawing(title, description, TOP + len(bars) * LINE + 4, parts)


def _bar(bar: Bar, name: str, top: int, scale: float) -> list[Html]:
    parts = [
        text(8, top + 12, name, "bar-name"),
        text(WIDTH - 4, top + 12, bar.said, "bar-value end"),
        tag("rect", x=4, y=top + 17, width=places(bar.value * scale), height=9,
            class_=f"fill {bar.kind}".strip()),
    ]  # fmt: skip
    if bar.spread:
        low = 4 + scale * max(0, bar.value - bar.spread)
        high, middle = 4 + scale * (bar.value + bar.spread), top + 21.5
        parts.append(
            tag("path", class_="whisker",
                d=f"M{places(low)} {middle}H{places(high)}M{places(low)} {middle - 3.5}v7"
                f"M{places(high)} {middle - 3.5}v7")
        )  # fmt: skip
    return parts


def _fitting(bars: Sequence[Bar]) -> list[str]:
    """The names, shortened where they would run into the values."""
    room = int((WIDTH - 24) / LETTER) - max((len(bar.said) for bar in bars), default=0) - 1
    return told_apart([bar.name for bar in bars], room)
