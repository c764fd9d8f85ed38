"""Charts as inline SVG, coloured by the page's style sheet so that they follow its theme."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

from latentmetric.viz.report.markup import Html, join, number, percent, tag
from latentmetric.viz.summaries import Curve

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 26, 34

LEAST_RANGE = 1e-300
"""A shorter range of values is drawn as a single value."""


@dataclass(frozen=True)
class Line:
    """A curve, and how to draw it."""

    curve: Curve
    title: str
    description: str
    x_label: str
    marked: int | None = None
    """A round to highlight."""
    mark_text: str = ""
    level: float | None = None
    """A value to compare with."""
    level_text: str = ""
    divided: float | None = None
    """Where on the axis of rounds something else begins."""
    divided_text: str = ""
    logarithmic: bool = False
    as_percent: bool = False
    dots: bool = True


def bar(share: float, error: float = 0.0, kind: str = "") -> Html:
    """A bar that fills this share of its width, with a whisker of one standard error each way.

    Its value is written beside it, so the bar is hidden from screen readers.
    """
    parts = [tag("rect", x=0, y=0, width=_places(100 * share), height=10, class_=f"fill {kind}")]
    if error:
        low, high = _places(100 * max(0, share - error)), _places(100 * min(1, share + error))
        parts.append(tag("path", d=f"M{low} 5H{high}M{low} 2V8M{high} 2V8", class_="whisker"))
    return tag(
        "svg", *parts, class_="bar", viewBox="0 0 100 10", preserveAspectRatio="none",
        aria_hidden="true", focusable="false",
    )  # fmt: skip


def line_chart(line: Line) -> Html:
    """A curve with axes; the title and the description are its text alternative."""
    low, high = _range(line)
    ticks = _power_ticks(low, high) if line.logarithmic else nice_ticks(low, high, 4)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    first, last = line.curve.rounds[0], line.curve.rounds[-1]

    def across(place: float) -> float:
        return LEFT + (place - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        if line.logarithmic:
            share = (log10(value) - log10(low)) / ((log10(high) - log10(low)) or 1)
        else:
            share = (value - low) / ((high - low) or 1)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    written = [_tick_text(line, tick) for tick in ticks]
    parts = [_text(LEFT - 40, 14, line.title, "chart-title")]
    for tick, text in zip(ticks, written, strict=True):
        height = _places(up(tick))
        parts.append(tag("path", d=f"M{LEFT} {height}H{WIDTH - RIGHT}", class_="grid"))
        parts.append(_text(LEFT - 6, up(tick) + 4, text, "tick end"))
    for tick in sorted({int(tick) for tick in nice_ticks(first, last, 6) if first <= tick <= last}):
        parts.append(_text(across(tick), HEIGHT - BOTTOM + 16, number(tick), "tick middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, line.x_label, "tick middle"))
    if line.level is not None:
        height = _places(up(line.level))
        parts.append(tag("path", d=f"M{LEFT} {height}H{WIDTH - RIGHT}", class_="level"))
        parts.append(_text(WIDTH - RIGHT, up(line.level) - 5, line.level_text, "tick end"))
    if line.divided is not None:
        parts.extend(_division(across(line.divided), line.divided_text))
    places = [
        (_places(across(place)), _places(up(value)))
        for place, value in zip(line.curve.rounds, line.curve.values, strict=True)
    ]
    parts.append(tag("path", d="M" + "L".join(f"{x} {y}" for x, y in places), class_="curve"))
    if line.dots:
        parts.extend(tag("circle", cx=x, cy=y, r=2.6, class_="dot") for x, y in places)
    if line.marked is not None:
        parts.extend(_mark(line, places))
    return tag(
        "svg", tag("title", line.title), tag("desc", line.description), *parts,
        class_="chart", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img",
        aria_label=f"{line.title}: {line.description}",
    )  # fmt: skip


def _division(place: float, text: str) -> list[Html]:
    """A vertical line, and what begins there to the right of it if there is room."""
    away, kind = (5, "tick") if place + 6 * len(text) < WIDTH - RIGHT else (-5, "tick end")
    return [
        tag("path", d=f"M{_places(place)} {TOP}V{HEIGHT - BOTTOM}", class_="level"),
        _text(place + away, TOP + 4, text, kind),
    ]


def _mark(line: Line, places: list[tuple[str, str]]) -> list[Html]:
    x, y = places[line.curve.rounds.index(line.marked)]  # type: ignore[arg-type]
    right_half = float(x) > WIDTH / 2
    above = float(y) > TOP + 30
    place = float(x) + (-8 if right_half else 8)
    return [
        tag("circle", cx=x, cy=y, r=5.5, class_="mark"),
        _text(place, float(y) + (-10 if above else 18), line.mark_text,
              "mark-text end" if right_half else "mark-text"),
    ]  # fmt: skip


def _range(line: Line) -> tuple[float, float]:
    values = [*line.curve.values, *([] if line.level is None else [line.level])]
    return (min(values), max(values)) if line.logarithmic else (min(0.0, *values), max(values))


def nice_ticks(low: float, high: float, n_ticks: int) -> list[float]:
    """About ``n_ticks`` round numbers that cover the range."""
    if not high - low > LEAST_RANGE:
        high = low + (abs(low) if abs(low) > LEAST_RANGE else 1.0)
    rough = (high - low) / n_ticks
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= 0.999 * rough)
    return [step * place for place in range(floor(low / step), ceil(high / step - 1e-9) + 1)]


def _power_ticks(low: float, high: float) -> list[float]:
    """Powers of ten that cover the range, with 2 and 5 times these where the range is short."""
    first, last = floor(log10(low)) - 1, ceil(log10(high)) + 1
    factors = (1, 2, 5) if high / low < 200 else (1,)
    powers = [*range(first, last, max(1, (last - first + 1) // 6)), last]
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    below = max(place for place, tick in enumerate(ticks) if tick <= low * (1 + 1e-9))
    above = min(place for place, tick in enumerate(ticks) if tick >= high * (1 - 1e-9))
    return ticks[below : max(above, below + 1) + 1]


def _tick_text(line: Line, tick: float) -> str:
    if line.as_percent:
        return f"{100 * tick:.3g}\N{NO-BREAK SPACE}%"
    if line.logarithmic and (tick >= 1e4 or tick < 1e-3):
        return f"{tick:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{tick:,.4g}"


def _text(x: float, y: float, text: str, kind: str) -> Html:
    return tag("text", text, x=_places(x), y=_places(y), class_=kind)


def _places(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def values_table(line: Line) -> Html:
    """The numbers of a curve as a table, also for readers who cannot see the chart."""
    rows = join(
        tag("tr", tag("td", place), tag("td", percent(value) if line.as_percent else number(value)))
        for place, value in zip(line.curve.rounds, line.curve.values, strict=True)
    )  # fmt: skip
    head = tag("thead", tag("tr", tag("th", line.x_label, scope="col"),
                            tag("th", line.title, scope="col")))  # fmt: skip
    return tag("table", head, tag("tbody", rows))
