"""Thresholds for ``predict(reject_below=…)``, from rows that the references do not contain.

They are the held-out rows of early stopping, or else training rows, each left out of its own latent
example. These are nearer than new rows where features are many; how much, the choice of the start
has measured on rows that it held out, with ``start="auto"``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.alternation import State, reduced
from latentmetric.core.distances import References
from latentmetric.core.likelihood import left_out_distances
from latentmetric.core.model import FittedModel
from latentmetric.core.population import LocalPopulation, positions_of, weights_of
from latentmetric.core.tuning import JUDGED_ROWS
from latentmetric.core.types import Floats
from latentmetric.estimators.setup import settings_of
from latentmetric.estimators.training import TrainingData

QUANTILES = np.linspace(0, 1, 101)
"""The shares of rows for which the scores are kept."""


def score_quantiles(
    estimator: Any, data: TrainingData, state: State, model: FittedModel
) -> Floats | None:
    """The scores of ``score_samples`` below which each share of new rows is expected to be.

    None if no rows may be read for it.
    """
    if len(data.held_out):
        scores = model.scores(model.nearest(data.validation_rows[0], 1, estimator.n_jobs))
        return np.quantile(scores.astype(np.float64), QUANTILES)
    rows, numbers = data.training, state.judges
    if not len(numbers) and isinstance(rows, LocalPopulation):  # a cluster's rows stay there
        n_rows = int(rows.sizes.sum())
        numbers = np.linspace(0, n_rows - 1, min(n_rows, JUDGED_ROWS)).astype(np.intp)
        numbers = np.unique(numbers)
    if not len(numbers):
        return None
    components = state.start.fold(reduced(state, settings_of(estimator).final_rank))
    squared = left_out_distances(
        rows.sample(numbers) @ components.T, positions_of(rows, numbers),
        References.of(state.latents @ components.T), state.class_starts, state.counts,
        weights_of(rows, numbers),
    )  # fmt: skip
    scores = -model.distances(squared) * state.start.gap
    return np.quantile(scores.astype(np.float64), QUANTILES)


def threshold(quantiles: Floats, share: float) -> float:
    """The score below which this share of new rows is expected to be."""
    return float(np.interp(share, QUANTILES, quantiles))
