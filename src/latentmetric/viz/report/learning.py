"""How the metric was learned and what it is: the rounds of the fit, and the spectrum."""

from __future__ import annotations

import numpy as np

from latentmetric.viz.report.charts import Line, line_chart, values_table
from latentmetric.viz.report.context import Context, paragraph, section
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, counted, number, percent, tag
from latentmetric.viz.summaries import Curve, Spectrum, curve, spectrum

SPECTRUM_POINTS = 240
"""At most this many eigenvalues are drawn, evenly spaced among all of them."""


def convergence_section(evidence: Evidence, context: Context) -> Html:
    """The objective, and the error on held-out rows, over the rounds."""
    model = evidence.model
    history = getattr(model, "history_", [])
    kept = getattr(model, "best_iter_", None)
    charts = []
    for quantity, title, as_percent in (
        ("objective", "Objective", False),
        ("validation_error", "Error on held-out rows", True),
    ):
        measured = curve(history, quantity)
        if len(measured.rounds) > 1:
            line = _rounds(measured, title, as_percent, kept)
            charts.append(tag("figure", line_chart(line), _numbers(line)))
    if not charts:
        said = (
            f"This {type(model).__name__} recorded fewer than two rounds, so there is no curve to "
            "show."
        )
        return section("convergence", "Convergence", paragraph(said))
    return section(
        "convergence",
        "Convergence",
        tag("div", *charts, class_="charts"),
        paragraph(_explanation(evidence), class_="caption"),
    )


def _rounds(measured: Curve, title: str, as_percent: bool, kept: int | None) -> Line:
    first, last = measured.values[0], measured.values[-1]
    write = percent if as_percent else number
    return Line(
        measured,
        title,
        f"from {write(first)} in {measured.unit} {measured.rounds[0]} to {write(last)} in "
        f"{measured.unit} {measured.rounds[-1]}",
        measured.unit,
        marked=kept if kept in measured.rounds else None,
        mark_text=f"kept: {write(measured.values[measured.rounds.index(kept)])}"
        if kept in measured.rounds
        else "",
        as_percent=as_percent,
    )


def _numbers(line: Line) -> Html:
    table = tag("div", values_table(line), class_="scroll")
    return tag("details", tag("summary", "Show the numbers"), table, class_="small")


def _explanation(evidence: Evidence) -> str:
    model = evidence.model
    measured = curve(model.history_, "objective")
    said = ""
    if len(measured.values) > 1 and measured.values[0] > 0:
        change = measured.values[-1] / measured.values[0] - 1
        way = "fell" if change <= 0 else "rose"
        said = (
            f"From the first {measured.unit} to the last, the objective {way} by "
            f"{percent(abs(change))}. "
        )
    if evidence.latent_model is None:
        return said
    kept, ran = evidence.latent_model.best_iter_, evidence.latent_model.n_iter_
    said += (
        "It is the mean loss of triplets drawn at the start of the fit, and may rise again while "
        f"the error still falls. Round {kept} of {ran} was kept; round 0 is the metric before "
        "learning, which is Euclidean unless the fit was a warm start."
    )
    if not curve(model.history_, "validation_error").rounds:
        said += (
            " No rows were held out; early_stopping=True also records the error on held-out rows."
        )
    return said


def spectrum_section(evidence: Evidence, context: Context) -> Html:
    """The eigenvalues of the metric beside the Euclidean 1."""
    if not evidence.is_metric:
        said = (
            f"This {type(evidence.model).__name__} learned a similarity, so there is no spectrum."
        )
        return section("spectrum", "The metric", paragraph(said))
    found = spectrum(evidence.model.components_)
    line = _eigenvalues(found)
    return section(
        "spectrum",
        "The metric",
        tag("div", tag("figure", line_chart(line)), class_="charts"),
        paragraph(_stretching(found), class_="caption"),
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
