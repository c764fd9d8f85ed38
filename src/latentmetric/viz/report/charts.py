"""Charts as inline SVG, coloured by the page's style sheet so that they follow its theme."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

from latentmetric.viz.report.markup import Html, join, number, percent, tag
from latentmetric.viz.summaries import Curve

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 46, 34

LETTER = 5.9
"""Width of a letter in a chart, on average, to place what follows a text."""

PLAIN_TICKS = 1e-3, 1e5
"""Numbers beside an axis are written out if all of them are between these, 0 aside."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

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
    parts = [tag("rect", x=0, y=0, width=places(100 * share), height=10, class_=f"fill {kind}")]
    if error:
        low, high = places(100 * max(0, share - error)), places(100 * min(1, share + error))
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

    written = tick_texts(ticks, line.as_percent, line.logarithmic)
    parts = [text(4, 14, line.title, "chart-title"), *_notes(line)]
    for tick, said in zip(ticks, written, strict=True):
        parts.append(_across_all(up(tick), "grid"))
        parts.append(text(LEFT - 6, up(tick) + 4, said, "tick end"))
    for tick in nice_ticks(first, last, 6, whole=True):
        if first <= tick <= last:
            parts.append(text(across(tick), HEIGHT - BOTTOM + 16, number(tick), "tick middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, line.x_label, "tick middle"))
    if line.level is not None:
        parts.append(_across_all(up(line.level), "level"))
    if line.divided is not None:
        place = places(across(line.divided))
        parts.append(tag("path", d=f"M{place} {TOP}V{HEIGHT - BOTTOM}", class_="level"))
    drawn = [
        (places(across(place)), places(up(value)))
        for place, value in zip(line.curve.rounds, line.curve.values, strict=True)
    ]
    parts.append(tag("path", d="M" + "L".join(f"{x} {y}" for x, y in drawn), class_="curve"))
    if line.dots:
        parts.extend(tag("circle", cx=x, cy=y, r=2.6, class_="dot") for x, y in drawn)
    if line.marked is not None:
        x, y = drawn[line.curve.rounds.index(line.marked)]
        parts.append(tag("circle", cx=x, cy=y, r=5.5, class_="mark"))
    return drawing(line.title, line.description, HEIGHT, parts)


def _across_all(height: float, kind: str) -> Html:
    return tag("path", d=f"M{LEFT} {places(height)}H{WIDTH - RIGHT}", class_=kind)


def drawing(title: str, description: str, height: int, parts: list[Html]) -> Html:
    """A chart of these parts; the title and the description are its text alternative."""
    return tag(
        "svg", tag("title", title), tag("desc", description), *parts,
        class_="chart", viewBox=f"0 0 {WIDTH} {height}", role="img",
        aria_label=f"{title}: {description}",
    )  # fmt: skip


def _notes(line: Line) -> list[Html]:
    """What the ring and the dashed lines mean, in a line of its own above the curve."""
    notes = []
    if line.marked is not None:
        notes.append((tag("circle", cx=0, cy=-4, r=4.5, class_="mark"), line.mark_text))
    dashed = tag("path", d="M-6 -4H6", class_="level")
    if line.level is not None:
        notes.append((dashed, line.level_text))
    if line.divided is not None:
        notes.append((dashed, line.divided_text))
    parts, place = [], 12.0
    for symbol, said in notes:
        parts.append(
            tag("g", symbol, text(11, 0, said, "tick"), transform=f"translate({place:g} 32)")
        )
        place += 11 + LETTER * len(said) + 22
    return parts


def _range(line: Line) -> tuple[float, float]:
    values = [*line.curve.values, *([] if line.level is None else [line.level])]
    return (min(values), max(values)) if line.logarithmic else (min(0.0, *values), max(values))


def nice_ticks(low: float, high: float, n_ticks: int, whole: bool = False) -> list[float]:
    """About ``n_ticks`` round numbers, or whole numbers only, that cover the range."""
    if not high - low > LEAST_RANGE:
        high = low + (abs(low) if abs(low) > LEAST_RANGE else 1.0)
    rough = max((high - low) / n_ticks, 1.0 if whole else 0.0)
    power = 10.0 ** floor(log10(rough))
    steps = [power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= 0.999 * rough]
    step = next(step for step in steps if not whole or step.is_integer())
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


def tick_texts(ticks: list[float], as_percent: bool, logarithmic: bool) -> list[str]:
    """The numbers beside an axis, all in one format."""
    sizes = [abs(tick) for tick in ticks if tick]
    if as_percent:
        return [f"{said}\N{NO-BREAK SPACE}%" for said in _decimals([100 * tick for tick in ticks])]
    if sizes and not (PLAIN_TICKS[0] <= min(sizes) and max(sizes) <= PLAIN_TICKS[1]):
        return [_power(tick) for tick in ticks]
    return [f"{tick:,.12g}" for tick in ticks] if logarithmic else _decimals(ticks)


def _decimals(ticks: list[float]) -> list[str]:
    """Evenly spaced numbers with as many decimals as all of them need."""
    for decimals in range(8):
        if all(
            abs(round(tick, decimals) - tick) <= 1e-6 * abs(ticks[1] - ticks[0]) for tick in ticks
        ):
            break
    return [f"{tick + 0.0:,.{decimals}f}" for tick in ticks]


def _power(tick: float) -> str:
    """A number as a factor times a power of ten."""
    factor, power = f"{tick:.2e}".split("e")
    factor, power = f"{float(factor):g}", f"10{str(int(power)).translate(SUPERSCRIPTS)}"
    if not tick:
        return "0"
    return power if factor == "1" else f"{factor}·{power}"


def text(x: float, y: float, said: str, kind: str) -> Html:
    """Text in a chart."""
    return tag("text", said, x=places(x), y=places(y), class_=kind)


def places(value: float) -> str:
    """A coordinate with as many digits as a screen shows."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def values_table(line: Line) -> Html:
    """The numbers of a curve as a table, also for readers who cannot see the chart."""
    rows = join(
        tag("tr", tag("td", place), tag("td", percent(value) if line.as_percent else number(value)))
        for place, value in zip(line.curve.rounds, line.curve.values, strict=True)
    )  # fmt: skip
    head = tag("thead", tag("tr", tag("th", line.x_label, scope="col"),
                            tag("th", line.title, scope="col")))  # fmt: skip
    name = line.title.lower().replace(" ", "-")
    return tag("table", head, tag("tbody", rows), data_name=name)
