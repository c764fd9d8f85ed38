"""What was learned, how and on what: the metric, what was chosen and why, the rounds, the data.

Of a pipeline, the metric's features are columns after its steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.starts import STARTS
from latentmetric.core.tuning import MIN_GAIN, REL_TOL
from latentmetric.core.types import Floats
from latentmetric.viz.report import limits
from latentmetric.viz.report.charts import Bar, bar_chart, line_chart
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.text import NBSP, number, percent, share, shown
from latentmetric.viz.summaries import (
    Curve,
    Spectrum,
    candidates,
    class_means,
    curve,
    feature_effects,
    last_before_refinement,
    leading_directions,
    spectrum,
    starts,
)

CURVES = (
    ("objective", "Objective", False),
    ("validation_error", "Error on held-out rows", True),
    ("loss", "Leave-one-out loss", False),
    ("loo_error", "Leave-one-out error", True),
)
"""What is drawn over the rounds if it was measured: name in the history, title, in percent."""


def metric_section(evidence: Evidence) -> dict[str, Any]:
    """The features that it weighs, and its eigenvalues beside the Euclidean 1."""
    if not evidence.is_metric:
        return {"spectrum": None}
    found = spectrum(evidence.model.components_)
    if not found.rank:
        return {"spectrum": found}
    return {
        "spectrum": found,
        "chart": _eigenvalue_chart(found),
        "n_stretched": int((found.values > 1.001).sum()),
        "n_shrunk": int((found.values < 0.999).sum()),
        "weights": _weights(evidence) if evidence.is_table else None,
    }


def _eigenvalue_chart(found: Spectrum) -> dict[str, Any]:
    n_drawn = min(found.rank, limits.MAX_EIGENVALUES)
    indices = np.unique(np.linspace(0, found.rank - 1, n_drawn).astype(int))
    values = found.values[indices].tolist()
    return line_chart(
        Curve((indices + 1).tolist(), values),
        "Eigenvalues of the metric",
        "direction, strongest first",
        level=(1.0, "Euclidean: 1"),
        logarithmic=True,
        dots=len(values) <= 40,
    )


def _weights(evidence: Evidence) -> dict[str, Any] | None:
    """A chart of the features and the leading directions; None if no feature has an effect."""
    components, columns = evidence.model.components_, evidence.columns
    deviations: Floats = evidence.originals.rows.std(axis=0, dtype=np.float64)
    effects = feature_effects(components, deviations)
    if not effects.any():
        return None
    shares = effects / effects.max()
    strongest = np.argsort(-effects, kind="stable")[: limits.MAX_FEATURES]
    bars = [
        Bar(columns[feature].name, part, f"{100 * part:.0f}{NBSP}%")
        for feature, part in zip(strongest, shares[strongest].tolist(), strict=True)
    ]
    present, means, _ = class_means(evidence.originals.rows, evidence.originals.codes)
    scaled = means / np.where(deviations > 0, deviations, 1)
    directions = []
    for part, loadings in leading_directions(components, deviations, limits.MAX_DIRECTIONS):
        along = scaled @ loadings
        largest = np.argsort(-np.abs(loadings), kind="stable")[: limits.MAX_LOADINGS]
        directions.append(
            {
                "share": part,
                "low": evidence.labels[present[along.argmin()]],
                "high": evidence.labels[present[along.argmax()]],
                "features": [
                    ("+" if loadings[feature] >= 0 else "−", columns[feature].name,
                     f"{abs(loadings[feature]):.2f}")
                    for feature in largest
                ],
            }
        )  # fmt: skip
    title = "Effect of one standard deviation, % of largest"
    return {"chart": bar_chart(title, bars), "directions": directions}


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
        "candidates": candidates(history)[: limits.MAX_CANDIDATES],
        "starts": [name for name in STARTS if name in tried.losses and name in tried.errors],
        "rel_tol": REL_TOL,
        "min_gain": MIN_GAIN,
    }


def _round_chart(measured: Curve, title: str, as_percent: bool, model: Any) -> dict[str, Any]:
    """A quantity over the rounds, with the round that was kept and the begin of the refinement."""
    kept, before = model.best_iter_, last_before_refinement(model.history_)
    unit, rounds = measured.unit, measured.rounds
    write, write_tick = (percent, share) if as_percent else (number, "{:,.6g}".format)
    marked = divided = None
    if before is not None and rounds[0] <= before < rounds[-1]:
        divided = before + 0.5, "refinement begins"
    if kept in rounds:
        value = write(measured.values[rounds.index(kept)])
        marked = kept, f"kept: {unit} {kept}, {value}"
    return line_chart(
        measured, title, unit, marked=marked, divided=divided, write=write, write_tick=write_tick
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
