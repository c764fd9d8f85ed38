"""For tables: the features that the metric weighs most, and the directions it stretches.

Of a pipeline, features are columns after its steps.
"""

from __future__ import annotations

import numpy as np

from latentmetric.core.types import Floats
from latentmetric.viz.report.bars import Bar, bar_chart
from latentmetric.viz.report.context import Context, figure, head_cell, paragraph, table
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, breakable, percent, tag
from latentmetric.viz.summaries import class_means
from latentmetric.viz.weights import Direction, feature_effects, leading_directions

SHOWN_FEATURES = 12
"""Features in the chart."""

SHOWN_DIRECTIONS = 3
"""Directions in the table."""

LOADINGS = 5
"""Features listed for each direction."""

NAMELESS_FEATURES = 64
"""Rows with more features than this, and no names for them, are no table."""


def is_table(evidence: Evidence, context: Context) -> bool:
    """Whether single features mean something: they have names, or they are few and no pixels."""
    few = evidence.originals.given.shape[1] <= NAMELESS_FEATURES
    return context.pictures is None and (context.feature_names is not None or few)


def feature_parts(evidence: Evidence, context: Context) -> list[Html | None]:
    """A chart of the features and a table of the directions; nothing where rows are no table."""
    if not is_table(evidence, context):
        return []
    rows, components = evidence.originals.rows, evidence.model.components_
    deviations: Floats = rows.std(axis=0, dtype=np.float64)
    effects = feature_effects(components, deviations)
    if not effects.any():
        return []
    directions = leading_directions(components, deviations, SHOWN_DIRECTIONS)
    return [
        tag("h3", "The features it weighs most"),
        _steps_words(evidence),
        tag("div", figure("features", _chart(effects, context)), class_="charts"),
        paragraph(
            "How far a row moves under the metric if one feature grows by one standard deviation "
            "and the others stay, in percent of the farthest of these moves. This is how much a "
            "feature counts in a distance, and no proof that it helps: a feature that has nothing "
            "to do with the classes has a weight, too, and from a start that standardises the "
            "columns all weights begin equal. Features that vary together share their weight.",
            class_="caption",
        ),
        tag("h3", "The directions it stretches most"),
        _directions(directions, deviations, evidence, context),
        paragraph(
            "A direction is a mix of features, each in standard deviations: along it, features "
            "with + grow while features with − fall. Its share is its part of the sum of squared "
            "stretches of all directions, with features in standard deviations. The classes at its "
            "ends are those whose means lie farthest to each side.",
            class_="caption",
        ),
    ]


def _steps_words(evidence: Evidence) -> Html | None:
    """What a feature is, where a pipeline has changed the columns."""
    if evidence.piped.steps is None:
        return None
    return paragraph(
        "The metric sees rows after the steps, so features are the columns that the steps make, "
        "named after the columns that you gave where each comes from one of these."
    )


def _chart(effects: Floats, context: Context) -> Html:
    strongest = np.argsort(-effects, kind="stable")[:SHOWN_FEATURES].tolist()
    shares = {feature: float(effects[feature] / effects.max()) for feature in strongest}
    bars = [
        Bar(context.columns[feature].name, share, f"{100 * share:.0f}\N{NO-BREAK SPACE}%")
        for feature, share in shares.items()
    ]
    described = ", ".join(f"{bar.name} {bar.said}" for bar in bars)
    return bar_chart("Effect of one standard deviation, % of largest", described, bars)


def _directions(
    directions: list[Direction], deviations: Floats, evidence: Evidence, context: Context
) -> Html:
    ends = _ends(directions, deviations, evidence)
    lines = [
        [
            tag("th", f"{place + 1}", scope="row"),
            tag("td", percent(direction.share), class_="number", data_value=repr(direction.share)),
            tag("td", _mix(direction, context), class_="words"),
            tag("td", context.label(low)),
            tag("td", context.label(high)),
        ]
        for place, (direction, (low, high)) in enumerate(zip(directions, ends, strict=True))
    ]
    head = [
        head_cell("direction"),
        head_cell("share", "number"),
        head_cell("features"),
        head_cell("low end"),
        head_cell("high end"),
    ]
    return table("directions", head, lines, aria_label="The directions it stretches most")


def _mix(direction: Direction, context: Context) -> Html:
    """The features of a direction, the largest first, each with its sign."""
    loadings = direction.loadings
    largest = np.argsort(-np.abs(loadings), kind="stable")[:LOADINGS].tolist()
    return tag(
        "ul",
        *(
            tag("li", f"{'+' if loadings[feature] >= 0 else '−'} ",
                tag("bdi", breakable(context.columns[feature].name)),
                tag("small", f" {abs(loadings[feature]):.2f}"))
            for feature in largest
        ),
        class_="mix",
    )  # fmt: skip


def _ends(
    directions: list[Direction], deviations: Floats, evidence: Evidence
) -> list[tuple[int, int]]:
    """The classes whose means are lowest and highest along each direction."""
    present, means, _ = class_means(evidence.originals.rows, evidence.originals.codes)
    scaled = means / np.where(deviations > 0, deviations, 1)
    ends = []
    for direction in directions:
        along = scaled @ direction.loadings
        ends.append((int(present[along.argmin()]), int(present[along.argmax()])))
    return ends
