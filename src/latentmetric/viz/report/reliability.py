"""The reliability diagram: how often the model is right where it says that it is sure."""

from __future__ import annotations

import numpy as np

from latentmetric.evaluation.calibration import BINS, Calibration, calibration
from latentmetric.viz.report.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    drawing,
    places,
    text,
)
from latentmetric.viz.report.context import Context, figure, head_cell, paragraph, section, table
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, percent, points, tag

NOTICEABLE = 0.01
"""Probabilities that are off by less on average are called neither too high nor too low."""

FAINTEST_BAR, BOLDEST_BAR = 0.08, 0.45
FAINTEST_DOT, BOLDEST_DOT = 0.3, 1.0
"""Opacity of a group without rows, and of the one with the most."""


def reliability_section(evidence: Evidence, context: Context) -> Html:
    """The diagram, its numbers, and what they mean in words."""
    found = calibration(evidence.verdict.confidence, evidence.right)
    return section(
        "reliability",
        "Reliability",
        paragraph(_words(found)),
        tag("div", figure("reliability", _diagram(found)), _table(found), class_="charts"),
        paragraph(
            "Rows are grouped by the probability of the predicted class. A dot below the "
            "dashed line stands for probabilities that are too high. "
            "The fewer rows a group has, the paler its bar. "
            "The expected calibration error is the mean distance from the line, "
            f"weighted by rows. {_groups(found)}",
            class_="caption",
        ),
    )


def _groups(found: Calibration) -> str:
    n_empty = BINS - len(found.counts)
    said = f"There are {BINS} groups, each as wide as the others"
    return f"{said}; {n_empty} of them have no rows and are left out." if n_empty else f"{said}."


def _words(found: Calibration) -> str:
    error = f"the expected calibration error is {percent(found.error)}"
    if abs(found.surplus) < NOTICEABLE:
        return f"The probabilities are neither too high nor too low on average; {error}."
    how = "too high: the model is too sure" if found.surplus > 0 else "too low: it could be surer"
    return f"On average the probabilities are {points(found.surplus)} {how}; {error}."


def _diagram(found: Calibration) -> Html:
    """Bars of the accuracy over the probability; the dashed diagonal is where they should end."""
    floor, width = HEIGHT - BOTTOM, WIDTH - LEFT - RIGHT

    def up(share: float) -> float:
        return floor - share * (floor - TOP)

    parts = [text(4, 14, "Accuracy by probability", "chart-title")]
    parts.append(
        tag("g", tag("path", d="M-6 -4H6", class_="level"),
            text(11, 0, "perfect calibration", "tick"), transform="translate(12 32)")
    )  # fmt: skip
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts.append(tag("path", d=f"M{LEFT} {places(up(tick))}H{WIDTH - RIGHT}", class_="grid"))
        parts.append(
            text(LEFT - 6, up(tick) + 4, f"{100 * tick:.0f}\N{NO-BREAK SPACE}%", "tick end")
        )
        said = f"{100 * tick:.0f}\N{NO-BREAK SPACE}%"
        parts.append(text(LEFT + tick * width, floor + 16, said, "tick middle"))
    groups = list(zip(found.promised.tolist(), found.kept.tolist(), _boldness(found), strict=True))
    for promised, kept, bold in groups:
        left = LEFT + min(int(promised * BINS), BINS - 1) / BINS * width
        parts.append(
            tag("rect", x=places(left + 1), y=places(up(kept)), width=places(width / BINS - 2),
                height=places(floor - up(kept)), class_="fill",
                opacity=places(FAINTEST_BAR + bold * (BOLDEST_BAR - FAINTEST_BAR)))
        )  # fmt: skip
    parts.append(tag("path", d=f"M{LEFT} {floor}L{WIDTH - RIGHT} {TOP}", class_="level"))
    for promised, kept, bold in groups:
        x, y = places(LEFT + promised * width), places(up(kept))
        opacity = places(FAINTEST_DOT + bold * (BOLDEST_DOT - FAINTEST_DOT))
        parts.append(tag("circle", cx=x, cy=y, r=3.5, class_="dot", opacity=opacity))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(text(middle, HEIGHT - 3, "probability of the predicted class", "tick middle"))
    described = f"expected calibration error {percent(found.error)}"
    return drawing("Accuracy by probability", described, HEIGHT, parts)


def _boldness(found: Calibration) -> list[float]:
    """How much each group stands out, up to 1: by its rows, less steeply than in proportion."""
    bold: list[float] = np.sqrt(found.counts / found.counts.max(initial=1)).tolist()
    return bold


def _table(found: Calibration) -> Html:
    head = [
        head_cell("mean probability", "number"),
        head_cell("accuracy", "number"),
        head_cell("rows", "number"),
    ]
    lines = [
        [
            tag("td", percent(promised), class_="number", data_value=repr(promised)),
            tag("td", percent(kept), class_="number", data_value=repr(kept)),
            tag("td", f"{count:,}", class_="number", data_value=count),
        ]
        for promised, kept, count in zip(
            found.promised.tolist(), found.kept.tolist(), found.counts.tolist(), strict=True
        )
    ]
    return table("reliability", head, lines, aria_label="Accuracy by probability")
