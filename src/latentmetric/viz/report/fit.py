"""How the metric was learned and on what: what was chosen and why, the rounds, the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.starts import STARTS
from latentmetric.core.tuning import MIN_GAIN, REL_TOL
from latentmetric.viz.report import limits
from latentmetric.viz.report.charts import line_chart
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.text import number, percent, shown
from latentmetric.viz.summaries import Curve, curve, last_before_refinement, starts

CURVES = (
    ("objective", "Objective", False),
    ("validation_error", "Error on held-out rows", True),
    ("loss", "Leave-one-out loss", False),
    ("loo_error", "Leave-one-out error", True),
)
"""What is drawn over the rounds if it was measured: name in the history, title, in percent."""


def fit_section(evidence: Evidence) -> dict[str, Any]:
    """What was chosen, and what the rounds were judged by."""
    model, history = evidence.model, evidence.model.history_
    tried = starts(history)
    charts = []
    for quantity, title, as_percent in CURVES:
        measured = curve(history, quantity)
        if len(measured.rounds) > 1:
            chart = _round_chart(measured, title, as_percent, model)
            charts.append((quantity.replace("_", "-"), chart))
    objective = curve(history, "objective")
    change = None
    if len(objective.values) > 1 and objective.values[0] > 0:
        change = objective.values[-1] / objective.values[0] - 1
    judges = {"validation_error": "held out", "loss": "left out"}
    judged = next((words for name, words in judges.items() if curve(history, name).rounds), "last")
    return {
        "charts": charts,
        "unit": objective.unit,
        "change": change,
        "judged": judged,
        "before": last_before_refinement(history),
        "tried": tried,
        "starts": [name for name in STARTS if name in tried.losses and name in tried.errors],
        "rel_tol": REL_TOL,
        "min_gain": MIN_GAIN,
    }


def _round_chart(measured: Curve, title: str, as_percent: bool, model: Any) -> dict[str, Any]:
    kept, before = model.best_iter_, last_before_refinement(model.history_)
    write, unit, rounds = percent if as_percent else number, measured.unit, measured.rounds
    described = (
        f"from {write(measured.values[0])} in {unit} {rounds[0]} to {write(measured.values[-1])} "
        f"in {unit} {rounds[-1]}"
    )
    divided = None
    if before is not None and rounds[0] <= before < rounds[-1]:
        described += f"; the refinement begins after round {before}"
        divided = before + 0.5
    mark_text = ""
    if kept in rounds:
        mark_text = f"kept: {unit} {kept}, {write(measured.values[rounds.index(kept)])}"
    return line_chart(
        measured,
        title,
        described,
        unit,
        marked=kept if kept in rounds else None,
        mark_text=mark_text,
        divided=divided,
        divided_text="refinement begins",
        as_percent=as_percent,
    )


def data_section(evidence: Evidence, source: str | None) -> dict[str, Any]:
    """The data that the page is about, and the parameters of the model."""
    given, originals = evidence.given, evidence.originals
    names = evidence.feature_names or []
    sizes = np.bincount(originals.codes, minlength=len(evidence.labels))
    low, high = originals.value_range
    kind = "numbers and words" if originals.given.dtype.kind == "O" else originals.given.dtype
    steps = [] if evidence.piped.steps is None else evidence.piped.steps.steps
    pools = [("rows", given)]
    if evidence.has_training_rows:
        pools.append(("training rows", originals))
    return {
        "source": None if source is None else shown(source, 200),
        "feature_names": ", ".join(names[: limits.MAX_NAMES]),
        "n_more_names": max(0, len(names) - limits.MAX_NAMES),
        "smallest": (evidence.labels[sizes.argmin()], int(sizes.min())),
        "largest": (evidence.labels[sizes.argmax()], int(sizes.max())),
        "values": f"from {number(low)} to {number(high)}, {kind}",
        "steps": ", ".join(
            f"{shown(name, 40)} ({step if isinstance(step, str) else type(step).__name__})"
            for name, step in steps
        ),
        "left_out": [(name, rows) for name, rows in pools if rows.left_out],
        "parameters": {
            name: shown(repr(value), 80)
            for name, value in evidence.model.get_params(deep=False).items()
        },
    }
