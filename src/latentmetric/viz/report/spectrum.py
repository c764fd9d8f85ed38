"""What the metric is: the features that it weighs, and its spectrum."""

from __future__ import annotations

import numpy as np

from latentmetric.viz.report.charts import Line, line_chart
from latentmetric.viz.report.context import Context, figure, paragraph, section
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.features import feature_parts, is_table
from latentmetric.viz.report.markup import Html, counted, number, tag
from latentmetric.viz.summaries import Curve, Spectrum, spectrum

SPECTRUM_POINTS = 240
"""At most this many eigenvalues are drawn, evenly spaced among all of them."""


def spectrum_section(evidence: Evidence, context: Context) -> Html:
    """The features that it weighs, and its eigenvalues beside the Euclidean 1."""
    if not evidence.is_metric:
        said = (
            f"This {type(evidence.model).__name__} learned a similarity, so there is no spectrum."
        )
        return section("spectrum", "The metric", paragraph(said))
    found = spectrum(evidence.model.components_)
    if not found.rank:
        said = (
            "All eigenvalues of the metric are 0: every distance is 0 and the metric tells no rows "
            "apart, so there is no spectrum. The fit collapsed; relax what limits the metric, such "
            "as max_norm, or fit with other parameters."
        )
        return section("spectrum", "The metric", paragraph(said))
    line = _eigenvalues(found)
    return section(
        "spectrum",
        "The metric",
        *feature_parts(evidence, context),
        tag("h3", "How many directions matter"),
        tag("div", figure("eigenvalues", line_chart(line)), class_="charts"),
        paragraph(_stretching(found), _units(evidence, context), class_="caption"),
    )


def _eigenvalues(found: Spectrum) -> Line:
    places = np.unique(np.linspace(0, found.rank - 1, min(found.rank, SPECTRUM_POINTS)).astype(int))
    values = found.values[places]
    return Line(
        Curve([int(place) + 1 for place in places], [float(value) for value in values]),
        "Eigenvalues of the metric",
        f"from {number(float(values[0]))} down to {number(float(values[-1]))}, "
        f"rank {found.rank} of {len(found.values)}",
        "direction, strongest first",
        level=1.0,
        level_text="Euclid: 1",
        logarithmic=True,
        dots=len(values) <= 40,
    )


def _stretching(found: Spectrum) -> str:
    stretched = int((found.values > 1.001).sum())
    shrunk = int((found.values < 0.999).sum())
    return (
        f"The metric stretches {counted(stretched, 'direction')} of the feature space and shrinks "
        f"{shrunk:,}; its rank is {found.rank:,} of {len(found.values):,}. Half of the sum "
        f"of its eigenvalues comes from {counted(found.directions_for(0.5), 'direction')}, nine "
        f"tenths from {found.directions_for(0.9):,}; the effective rank is "
        f"{found.effective_rank:,.0f}."
    )


def _units(evidence: Evidence, context: Context) -> str:
    """Why eigenvalues depend on units, and shares of directions do not."""
    after = "" if evidence.piped.steps is None else " after the steps"
    said = (
        " An eigenvalue is the square of the factor by which a direction is stretched, in the "
        f"units of the columns{after}: where columns have different units, those with small "
        "numbers need the large eigenvalues, and few of them make up the sum."
    )
    if is_table(evidence, context):
        said += (
            " The shares in the table of directions are measured in standard deviations instead, "
            "so they differ from the shares of this sum."
        )
    return said
