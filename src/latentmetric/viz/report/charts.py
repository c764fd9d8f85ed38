"""Coordinates of the charts; ``templates/charts.html`` draws them as SVG in the page's colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from latentmetric.characters import distinct_names
from latentmetric.evaluation.calibration import BINS, Calibration
from latentmetric.viz.report.text import NBSP, number, percent
from latentmetric.viz.summaries import Curve

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 46, 34
FLOOR, END = HEIGHT - BOTTOM, WIDTH - RIGHT
"""The lower and the right edge of the plot itself."""

FRAME = {
    "WIDTH": WIDTH, "HEIGHT": HEIGHT, "LEFT": LEFT, "TOP": TOP, "FLOOR": FLOOR, "END": END,
}  # fmt: skip
"""What the templates know of the frame."""

LETTER = 5.9
"""Width of a letter in a chart, on average, to place what follows a text."""

PLAIN_TICKS = 1e-3, 1e5
"""Numbers beside an axis are written out if all of them are between these, 0 aside."""

MIN_RANGE = 1e-300
"""A shorter range of values is drawn as a single value."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def line_chart(
    curve: Curve,
    title: str,
    description: str,
    x_label: str,
    *,
    marked: int | None = None,
    mark_text: str = "",
    level: float | None = None,
    level_text: str = "",
    divided: float | None = None,
    divided_text: str = "",
    logarithmic: bool = False,
    as_percent: bool = False,
    dots: bool = True,
) -> dict[str, Any]:
    """A curve with axes.

    A ring highlights the round ``marked``, dashed lines the value ``level`` and the point
    ``divided`` on the axis of rounds.
    """
    values = [*curve.values, *([] if level is None else [level])]
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
    notes = [
        (kind, text)
        for kind, text, shown in (
            ("ring", mark_text, marked),
            ("dashes", level_text, level),
            ("dashes", divided_text, divided),
        )
        if shown is not None
    ]
    lengths = [33 + LETTER * len(text) for _, text in notes]
    texts = tick_texts(ticks, as_percent, logarithmic)
    x_ticks = [x for x in nice_ticks(first, last, 6, whole=True) if first <= x <= last]
    write = percent if as_percent else number
    return {
        "title": title,
        "description": description,
        "x_label": x_label,
        "notes": [(12 + sum(lengths[:i]), *note) for i, note in enumerate(notes)],
        "y_ticks": [(up(tick), text) for tick, text in zip(ticks, texts, strict=True)],
        "x_ticks": [(across(tick), number(tick)) for tick in x_ticks],
        "level": None if level is None else up(level),
        "divided": None if divided is None else across(divided),
        "points": points,
        "marked": None if marked is None else points[curve.rounds.index(marked)],
        "dots": dots,
        "values": [(x, write(y)) for x, y in zip(curve.rounds, curve.values, strict=True)],
    }


def nice_ticks(low: float, high: float, n_ticks: int, whole: bool = False) -> list[float]:
    """About ``n_ticks`` round numbers, or whole numbers only, that cover the range."""
    if not high - low > MIN_RANGE:
        high = low + (abs(low) if abs(low) > MIN_RANGE else 1.0)
    rough = max((high - low) / n_ticks, 1.0 if whole else 0.0)
    power = 10.0 ** floor(log10(rough))
    steps = [power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= 0.999 * rough]
    step = next(step for step in steps if not whole or step.is_integer())
    return [step * index for index in range(floor(low / step), ceil(high / step - 1e-9) + 1)]


def power_ticks(low: float, high: float) -> list[float]:
    """Powers of ten that cover the range, with 2 and 5 times these where the range is short."""
    first, last = floor(log10(low)) - 1, ceil(log10(high)) + 1
    factors = (1, 2, 5) if high / low < 200 else (1,)
    powers = [*range(first, last, max(1, (last - first + 1) // 6)), last]
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    below = max(index for index, tick in enumerate(ticks) if tick <= low * (1 + 1e-9))
    above = min(index for index, tick in enumerate(ticks) if tick >= high * (1 - 1e-9))
    return ticks[below : max(above, below + 1) + 1]


def tick_texts(ticks: list[float], as_percent: bool, logarithmic: bool) -> list[str]:
    """The numbers beside an axis, all in one format."""
    sizes = [abs(tick) for tick in ticks if tick]
    if as_percent:
        return [f"{text}{NBSP}%" for text in _decimals([100 * tick for tick in ticks])]
    if sizes and not (PLAIN_TICKS[0] <= min(sizes) and max(sizes) <= PLAIN_TICKS[1]):
        return [_power(tick) for tick in ticks]
    return [f"{tick:,.12g}" for tick in ticks] if logarithmic else _decimals(ticks)


def _decimals(ticks: list[float]) -> list[str]:
    """Evenly spaced numbers with as many decimals as all of them need."""
    tolerance = 1e-6 * abs(ticks[1] - ticks[0])
    for decimals in range(8):
        if all(abs(round(tick, decimals) - tick) <= tolerance for tick in ticks):
            break
    return [f"{tick + 0.0:,.{decimals}f}" for tick in ticks]


def _power(tick: float) -> str:
    """A number as a factor times a power of ten."""
    factor, power = f"{tick:.2e}".split("e")
    if not tick:
        return "0"
    written = f"10{str(int(power)).translate(SUPERSCRIPTS)}"
    return written if float(factor) == 1 else f"{float(factor):g}·{written}"


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
    """A class of the style sheet: ``base``, ``alternative`` or none."""


def bar_chart(title: str, bars: Sequence[Bar]) -> dict[str, Any]:
    """Bars below each other, all from 0 and to the same scale, each below its name."""
    room = int((WIDTH - 24) / LETTER) - max((len(bar.text) for bar in bars), default=0) - 1
    names = distinct_names([bar.name for bar in bars], room)
    return {
        "title": title,
        "description": ", ".join(f"{bar.name} {bar.text}" for bar in bars),
        "bars": list(zip(names, bars, strict=True)),
        "scale": (WIDTH - 8) / (max((bar.value + bar.spread for bar in bars), default=0) or 1.0),
    }


def reliability_chart(found: Calibration) -> dict[str, Any]:
    """The accuracy over the probability, group by group; groups of few rows are less bold."""
    bold = np.sqrt(found.counts / found.counts.max(initial=1))
    return {
        "title": "Accuracy by probability",
        "description": f"expected calibration error {percent(found.error)}",
        "groups": list(zip(found.confidence.tolist(), found.accuracy.tolist(), bold, strict=True)),
        "n_bins": BINS,
    }
