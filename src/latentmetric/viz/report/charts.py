"""Coordinates of the charts; ``templates/charts.html`` draws them as SVG in the page's colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from latentmetric.characters import distinct_names
from latentmetric.viz.report.text import number
from latentmetric.viz.summaries import Curve

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 46, 34
FLOOR, END = HEIGHT - BOTTOM, WIDTH - RIGHT
"""The lower and the right edge of the plot itself."""

LETTER = 5.9
"""Width of a letter in a chart, on average, to place what follows a text."""

Note = tuple[float, str] | None
"""A value to highlight and what the legend calls it."""


def line_chart(
    curve: Curve,
    title: str,
    description: str,
    x_label: str,
    *,
    marked: Note = None,
    level: Note = None,
    divided: Note = None,
    logarithmic: bool = False,
    write: Callable[[float], str] = number,
    write_tick: Callable[[float], str] = "{:,.6g}".format,
    dots: bool = True,
) -> dict[str, Any]:
    """A curve with axes; ``write`` makes the text of a value.

    A ring highlights the round ``marked``, dashed lines the value ``level`` and the point
    ``divided`` on the axis of rounds.
    """
    values = [*curve.values, *([level[0]] if level else [])]
    low, high = min(values), max(values)
    ticks = power_ticks(low, high) if logarithmic else nice_ticks(min(low, 0.0), high, 4)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    first, last = curve.rounds[0], curve.rounds[-1]
    scale = log10 if logarithmic else float

    def across(position: float) -> float:
        return LEFT + (position - first) / ((last - first) or 1) * (END - LEFT)

    def up(value: float) -> float:
        share = (scale(value) - scale(low)) / ((scale(high) - scale(low)) or 1)
        return FLOOR - share * (FLOOR - TOP)

    points = [(across(x), up(y)) for x, y in zip(curve.rounds, curve.values, strict=True)]
    kinds = {"ring": marked, "level": level, "divided": divided}
    notes, left = [], 12.0
    for kind, note in kinds.items():
        if note is not None:
            notes.append((left, kind, note[1]))
            left += 33 + LETTER * len(note[1])
    x_ticks = [x for x in nice_ticks(first, last, 6, whole=True) if first <= x <= last]
    return {
        "title": title,
        "description": description,
        "x_label": x_label,
        "notes": notes,
        "y_ticks": [(up(tick), write_tick(tick)) for tick in ticks],
        "x_ticks": [(across(tick), number(tick)) for tick in x_ticks],
        "level": up(level[0]) if level else None,
        "divided": across(divided[0]) if divided else None,
        "points": points,
        "marked": points[curve.rounds.index(int(marked[0]))] if marked else None,
        "dots": dots,
        "values": [(x, write(y)) for x, y in zip(curve.rounds, curve.values, strict=True)],
    }


def nice_ticks(low: float, high: float, n_ticks: int, whole: bool = False) -> list[float]:
    """About ``n_ticks`` round numbers, or whole numbers only, that cover the range."""
    span = high - low if high - low > 1e-300 else abs(low) or 1.0
    rough = max(span / n_ticks, 1.0 if whole else 1e-300)
    power = 10.0 ** floor(log10(rough))
    steps = [power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= 0.999 * rough]
    step = next(step for step in steps if not whole or step.is_integer())
    ends = floor(low / step), ceil((low + span) / step - 1e-9)
    return [step * index for index in range(ends[0], ends[1] + 1)]


def power_ticks(low: float, high: float) -> list[float]:
    """Powers of ten that cover the range, with 2 and 5 times these where the range is short."""
    first, last = floor(log10(low)) - 1, ceil(log10(high)) + 1
    factors = (1, 2, 5) if high / low < 200 else (1,)
    powers = [*range(first, last, max(1, (last - first + 1) // 6)), last]
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    below = max(index for index, tick in enumerate(ticks) if tick <= low * (1 + 1e-9))
    above = min(index for index, tick in enumerate(ticks) if tick >= high * (1 - 1e-9))
    return ticks[below : max(above, below + 1) + 1]


@dataclass(frozen=True)
class Bar:
    """A value with its name."""

    name: str
    value: float
    text: str
    """The value as it is written."""
    spread: float = 0.0
    """Length of the whisker on each side; 0 for none."""
    kind: str = ""
    """A class of the style sheet."""


def bar_chart(title: str, bars: Sequence[Bar]) -> dict[str, Any]:
    """Bars below each other, all from 0 and to the same scale, each below its name."""
    room = int((WIDTH - 24) / LETTER) - max(len(bar.text) for bar in bars) - 1
    names = distinct_names([bar.name for bar in bars], room)
    return {
        "title": title,
        "description": ", ".join(f"{bar.name} {bar.text}" for bar in bars),
        "bars": list(zip(names, bars, strict=True)),
        "scale": (WIDTH - 8) / (max(bar.value + bar.spread for bar in bars) or 1.0),
    }


def matrix_chart(labels: list[str], cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Cells in rows and columns, with names beside and above them."""
    names = distinct_names(labels, 24)
    size = max(12.0, min(34.0, 560 / len(names)))
    margin = 12 + LETTER * max(map(len, names))
    return {
        "title": "Confusion matrix",
        "names": names,
        "cells": cells,
        "size": size,
        "margin": margin,
        "side": size * len(names),
        "top": margin if size <= 15 else 0.75 * margin + 8,
    }
