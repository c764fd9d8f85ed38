"""How the metric was learned: what was chosen and why, and the rounds of the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from latentmetric.core.starts import STARTS
from latentmetric.core.tuning import MIN_GAIN, REL_TOL
from latentmetric.viz.report.charts import Line, line_chart, values_table
from latentmetric.viz.report.chosen import chosen
from latentmetric.viz.report.context import Context, figure, head_cell, paragraph, section, table
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, number, percent, tag
from latentmetric.viz.summaries import Curve, curve, is_number, last_before_refinement

CURVES = (
    ("objective", "Objective", False),
    ("validation_error", "Error on held-out rows", True),
    ("loss", "Leave-one-out loss", False),
    ("loo_error", "Leave-one-out error", True),
)
"""What is drawn over the rounds if it was measured: name in the history, title, in percent."""


def convergence_section(evidence: Evidence, context: Context) -> Html:
    """The objective, and what the rounds were judged by, over the rounds."""
    model = evidence.model
    charts = []
    for quantity, title, as_percent in CURVES:
        measured = curve(model.history_, quantity)
        if len(measured.rounds) > 1:
            line = _rounds(measured, title, as_percent, model)
            charts.append(figure(quantity.replace("_", "-"), line_chart(line), _numbers(line)))
    if not charts:
        said = (
            f"This {type(model).__name__} recorded fewer than two rounds, so there is no curve to "
            "show."
        )
        return section(
            "convergence", "What was chosen", chosen(evidence), paragraph(said), *_start(model)
        )
    return section(
        "convergence",
        "What was chosen",
        chosen(evidence),
        tag("div", *charts, class_="charts"),
        paragraph(_explanation(evidence), class_="caption"),
        *_start(model),
    )


def _rounds(measured: Curve, title: str, as_percent: bool, model: Any) -> Line:
    first, last, kept = measured.values[0], measured.values[-1], model.best_iter_
    write = percent if as_percent else number
    described = (
        f"from {write(first)} in {measured.unit} {measured.rounds[0]} to {write(last)} in "
        f"{measured.unit} {measured.rounds[-1]}"
    )
    before = last_before_refinement(model.history_)
    if before is not None and measured.rounds[0] <= before < measured.rounds[-1]:
        described += f"; the refinement begins after round {before}"
    else:
        before = None
    return Line(
        measured,
        title,
        described,
        measured.unit,
        marked=kept if kept in measured.rounds else None,
        mark_text=_kept(measured, kept, write),
        divided=None if before is None else before + 0.5,
        divided_text="refinement begins",
        as_percent=as_percent,
    )


def _kept(measured: Curve, kept: int, write: Callable[[float], str]) -> str:
    if kept not in measured.rounds:
        return ""
    value = measured.values[measured.rounds.index(kept)]
    return f"kept: {measured.unit} {kept}, {write(value)}"


def _numbers(line: Line) -> Html:
    return tag("details", tag("summary", "Show the numbers"), values_table(line), class_="small")


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
    return f"{said}{_about_rounds(model)} {_about_choice(model)}"


def _about_rounds(model: Any) -> str:
    said = (
        "The objective is the mean loss of triplets drawn at the start of the fit, and may rise "
        "again while the error still falls. "
    )
    before = last_before_refinement(model.history_)
    if before is not None:
        said += (
            f"The refinement, from round {before + 1:,} on, has no objective: it makes the labels "
            "of the training rows likelier. "
        )
    start = _first_record(model).get("start")
    first = (
        f"that of the start \N{LEFT DOUBLE QUOTATION MARK}{start}\N{RIGHT DOUBLE QUOTATION MARK}"
        if start is not None
        else "Euclidean unless the fit was a warm start"
    )
    return (
        f"{said}Round {model.best_iter_} of {model.n_iter_} was kept; round 0 is the metric before "
        f"learning, which is {first}."
    )


def _about_choice(model: Any) -> str:
    """Why the round that was kept was kept."""
    if curve(model.history_, "validation_error").rounds:
        return "It has the lowest error on the held-out rows."
    if curve(model.history_, "loss").rounds:
        return (
            "No rows were held out: the leave-one-out loss decided, that is, how unlikely the "
            "labels of training rows are with each row left out of its own latent example. The "
            "refinement learns from these rows, so expect more errors on new ones."
        )
    return (
        'No rows were held out, and the last round is kept; keep="best" keeps the one with the '
        "lowest leave-one-out loss instead."
    )


def _first_record(model: Any) -> Mapping[str, Any]:
    """The record of round 0; empty without a history."""
    return model.history_[0] if model.history_ else {}


def _start(model: Any) -> list[Html]:
    """The starts that were tried, and what they led to on rows not seen."""
    first = _first_record(model)
    losses, errors = (
        {name: value for name, value in found.items() if is_number(value)}
        if isinstance(found := first.get(measured), Mapping)
        else {}
        for measured in ("start_losses", "start_errors")
    )
    tried = [name for name in STARTS if name in losses and name in errors]
    if not tried:
        return []
    lines = [
        [
            tag("th", name, scope="row"),
            tag("td", f"{losses[name]:,.4f}", class_="number", data_value=repr(losses[name])),
            tag("td", percent(errors[name]), class_="number"),
            tag("td", "chosen" if name == first.get("start") else ""),
        ]
        for name in tried
    ]
    head = [
        head_cell("start"),
        head_cell("loss", "number"),
        head_cell("error", "number"),
        tag("th", tag("span", "choice", class_="unseen"), scope="col"),
    ]
    return [
        tag("h3", "The start"),
        table("starts", head, lines, aria_label="Loss and error of each start"),
        paragraph(_about_starts(), class_="caption"),
    ]


def _about_starts() -> str:
    return (
        "Each start of the metric had a short fit to a sample of the rows, and was judged by rows "
        "of the sample that the fit had not seen. A start wins only if its loss is at least "
        f"{100 * REL_TOL:g}\N{NO-BREAK SPACE}% lower than that of a simpler one, and “denoised” "
        f"only if its loss is at least {100 * MIN_GAIN:g}\N{NO-BREAK SPACE}% lower: noise that "
        "hides classes in a sample hides less in all rows."
    )
