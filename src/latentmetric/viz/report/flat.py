"""A second view of the map: a metric of rank 2, learned on a sample of the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.starts import STARTS
from latentmetric.core.types import Floats
from latentmetric.estimators.mapml import MaPML
from latentmetric.evaluation.sampling import sample
from latentmetric.viz.report.context import Context
from latentmetric.viz.report.evidence import Evidence

FITTED_ROWS = 2_000
"""Training rows that the map is learned on."""


def learned_plane(evidence: Evidence, context: Context) -> Any:
    """A fitted MaPML of rank 2; None where it would tell nothing new, or time is to be saved."""
    model = evidence.latent_model
    if model is None or context.quick or not evidence.has_training_rows:
        return None
    rows, codes = evidence.originals.rows, evidence.originals.codes
    if len(evidence.model.components_) <= 2 or len(np.unique(codes)) < 2:
        return None
    context.about_to("map of rank 2")
    chosen = np.sort(sample(codes, FITTED_ROWS, np.random.default_rng(0)))
    start = model.history_[0].get("start") if model.history_ else None
    learning = MaPML(
        n_components=2, start=start if start in STARTS else "auto", random_state=0,
        n_jobs=model.n_jobs,
    )  # fmt: skip
    return learning.fit(rows[chosen], codes[chosen])


def on_plane(fitted: Any, rows: Floats) -> Floats:
    """Rows on the learned plane, (n, 2), in float64."""
    flat = np.zeros((len(rows), 2))
    placed = fitted.transform(rows)
    flat[:, : placed.shape[1]] = placed
    return flat
