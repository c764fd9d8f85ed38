"""The pictures of peers.py: error against the time of a fit, and that time against n."""

from __future__ import annotations

import textwrap
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.findings import Findings
from side_by_side.plan import PEERS, Peer

IMAGES = Path(__file__).parents[2] / "docs" / "images"

OURS = "latentmetric"
STYLES = {
    OURS: ("#D55E00", "o"),
    "scikit-learn": ("#0072B2", "s"),
    "metric-learn": ("#009E73", "D"),
    "pytorch-metric-learning": ("#A0528A", "^"),
    "sklvq": ("#7A6A00", "v"),
    "faiss": ("#444444", "P"),
}
"""Colours that colour-blind readers can tell apart, and markers that need no colour."""

SHORTEST_SECONDS = 0.01
"""Shorter fits are drawn at the left edge."""
LABEL_SIZE = 7.5
OFFSETS = sorted(
    product((-1, 0, 1), range(-6, 7)), key=lambda step: abs(step[0] - 1) + abs(step[1])
)
"""Where a label may go around its dot, in widths and half heights of a line: the nearest first."""
LABEL_SPACING = 0.045
"""Least distance between labels at the ends of lines, as a share of a panel's height."""

End = tuple[int, float, Peer, float | None]
"""The last point of a line, its method, and the exponent of n if there are enough points."""


def draw(findings: Findings, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in (
        ("peers_error", errors(findings)),
        ("peers_growth", growth(findings)),
    ):
        save(figure, name, out)


def save(figure: Any, name: str, out: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": name}):
        figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    figure.savefig(out / f"{name}.png", dpi=150)
    figure.savefig(IMAGES / f"{name}.png", dpi=150)


def library(peer: Peer) -> str:
    """The first word of a name, or ours."""
    return OURS if peer.ours else peer.name.split()[0]


def label(peer: Peer) -> str:
    """The name without its library: colours and markers say that."""
    first, _, rest = peer.name.partition(" ")
    if first != library(peer):
        return peer.name
    return f"{rest} (ours)" if peer.ours else rest


def panels(
    findings: Findings, height: float, libraries: list[str]
) -> tuple[Any, list[tuple[str, Any]]]:
    """A figure with a panel for each set, two in a row, and a legend of the libraries."""
    from matplotlib.figure import Figure

    names = findings.sets()
    n_rows = (len(names) + 1) // 2
    figure = Figure(figsize=(12, height * n_rows + 0.5), layout="constrained")
    axes = figure.subplots(n_rows, 2, squeeze=False).ravel()
    for spare in axes[len(names) :]:
        spare.set_axis_off()
    figure.legend(
        handles=legend_handles(libraries), loc="outside lower center", ncols=6, frameon=False
    )
    return figure, list(zip(names, axes, strict=False))


def legend_handles(libraries: list[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    styles = [(name, *STYLES[name]) for name in libraries]
    return [
        Line2D([], [], color=color, marker=marker, linestyle="", label=name)
        for name, color, marker in styles
    ]


# Error against time


def errors(findings: Findings) -> Any:
    figure, parts = panels(findings, 4.6, list(STYLES))
    for name, axes in parts:
        error_panel(findings, name, axes)
    figure.draw_without_rendering()
    for _, axes in parts:
        place_labels(axes)
    return figure


def error_panel(findings: Findings, name: str, axes: Any) -> None:
    size = findings.picture_size(name)
    panel(axes, f"{name}, {size:,} training rows{stopped_note(findings, name, size)}")
    for method in findings.methods(name):
        cell = findings.finished(name, method).get(size)
        if cell is None:
            continue
        peer = PEERS[method]
        color, marker = STYLES[library(peer)]
        seconds = max(cell["fit_cpu_seconds"], SHORTEST_SECONDS)
        axes.plot(seconds, cell["error"], marker, color=color, ms=9 if peer.ours else 6, zorder=3)
        axes.annotate(
            label(peer),
            (seconds, cell["error"]),
            color=color,
            fontsize=LABEL_SIZE + (1.5 if peer.ours else 0),
            fontweight="bold" if peer.ours else "normal",
            xytext=(0, 0),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": color, "lw": 0.5, "shrinkB": 3},
        )
    axes.margins(x=0.12, y=0.12)
    axes.set_xlabel("processor time of the fit, s (one thread)")
    axes.set_ylabel("test error, %")
    plain_ticks(axes.xaxis, (1,))
    plain_ticks(axes.yaxis, (1, 2, 3, 5))


def stopped_note(findings: Findings, name: str, size: int) -> str:
    """A second line of the title: the methods without a dot because they passed a limit."""
    missing = [
        method
        for method in findings.methods(name)
        if size not in findings.finished(name, method) and findings.passed_limit(name, method, size)
    ]
    return "\n" + textwrap.fill(f"over the limit: {', '.join(missing)}", 78) if missing else ""


def panel(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(which="major", color="#DDDDDD", lw=0.5)


def plain_ticks(axis: Any, digits: tuple[int, ...]) -> None:
    """Numbers such as 5 and 20 rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def place_labels(axes: Any) -> None:
    """Put each label at the nearest place that touches no other label and no dot."""
    from matplotlib.transforms import Bbox

    points = axes.get_figure().dpi / 72
    frame = axes.get_window_extent()
    dots = axes.transData.transform([line.get_xydata()[0] for line in axes.lines])
    taken = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in dots]
    for text, (x, y) in zip(list(axes.texts), dots, strict=True):
        box = text.get_window_extent()
        for across, up in OFFSETS:
            left = {1: 8, 0: -box.width / 2, -1: -8 - box.width}[across]
            bottom = -box.height / 2 + up * 0.55 * box.height
            moved = Bbox.from_bounds(x + left, y + bottom, box.width, box.height)
            inside = frame.x0 < moved.x0 and moved.x1 < frame.x1
            if inside and not any(moved.overlaps(other) for other in taken):
                break
        taken.append(moved)
        text.set_position((left / points, bottom / points))


# Time against n


def growth(findings: Findings) -> Any:
    figure, parts = panels(findings, 5.0, [name for name in STYLES if name != "faiss"])
    ends = [growth_panel(findings, name, axes) for name, axes in parts]
    figure.draw_without_rendering()
    for (_, axes), own in zip(parts, ends, strict=True):
        label_ends(axes, own)
    return figure


def growth_panel(findings: Findings, name: str, axes: Any) -> list[End]:
    """A line for each method that learns something, more than rows to look up; their ends."""
    panel(axes, name)
    ends = []
    for method in (method for method in findings.methods(name) if "3-NN" not in method):
        seconds, power = findings.fit_seconds(name, method), findings.exponent(name, method)
        if not seconds:
            continue
        peer = PEERS[method]
        color, marker = STYLES[library(peer)]
        width = 2.4 if peer.ours else 1
        axes.plot(list(seconds), list(seconds.values()), f"{marker}-", color=color, lw=width, ms=4)
        ends.append((max(seconds), seconds[max(seconds)], peer, power))
    sizes = sorted({size for method in PEERS for size in findings.by_size(name, method)})
    axes.set_xticks(sizes, [f"{size / 1000:g}k" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("training rows n")
    axes.set_ylabel("processor time of the fit, s (one thread)")
    plain_ticks(axes.yaxis, (1,))
    return ends


def label_ends(axes: Any, ends: list[End]) -> None:
    """Names and exponents in a column beside the panel, in the order of the ends of the lines."""
    to_axes = axes.transData + axes.transAxes.inverted()
    points = [to_axes.transform((size, seconds)) for size, seconds, _, _ in ends]
    order = sorted(range(len(ends)), key=lambda index: points[index][1])
    heights = spread([float(points[index][1]) for index in order], LABEL_SPACING)
    for index, height in zip(order, heights, strict=True):
        size, seconds, peer, power = ends[index]
        color, _ = STYLES[library(peer)]
        axes.annotate(
            label(peer) + ("" if power is None else f"  $n^{{{power:.2f}}}$"),
            (size, seconds),
            xytext=(1.06, height),
            textcoords="axes fraction",
            va="center",
            color=color,
            fontsize=LABEL_SIZE + (1 if peer.ours else 0),
            fontweight="bold" if peer.ours else "normal",
            arrowprops={"arrowstyle": "-", "color": color, "lw": 0.5, "relpos": (0, 0.5)},
        )


def spread(heights: list[float], least: float) -> list[float]:
    """Rising heights, moved as little as it takes to be far enough apart and not over 1."""
    from sklearn.isotonic import isotonic_regression

    if not heights:
        return []
    steps = least * np.arange(len(heights))
    moved = isotonic_regression(np.array(heights) - steps) + steps
    return list(moved - max(0.0, moved[-1] - 1))
