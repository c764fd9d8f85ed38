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
from latentmetric.core.likelihood import JUDGED_ROWS, left_out_distances
from latentmetric.core.model import FittedModel
from latentmetric.core.population import LocalPopulation, Population, positions_of, weights_of
from latentmetric.core.types import Floats, Ints
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
        rows, _ = data.validation_rows
        scores = model.scores(model.nearest(rows, 1, estimator.n_jobs))
    else:
        numbers = _sample(data.training, state)
        if not len(numbers):
            return None
        left_out = _left_out(estimator, data.training, state, numbers)
        scores = -model.distances(left_out) * state.start.gap
    return np.quantile(scores.astype(np.float64), QUANTILES)


def _sample(rows: Population, state: State) -> Ints:
    """The rows that the state was judged by; otherwise some, but none of a cluster's."""
    if len(state.judges) or not isinstance(rows, LocalPopulation):
        return state.judges
    n_rows = int(rows.sizes.sum())
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, JUDGED_ROWS)).astype(np.intp))


def _left_out(estimator: Any, population: Population, state: State, numbers: Ints) -> Floats:
    """Squared distances of these training rows to the nearest reference without them."""
    components = state.start.fold(reduced(state, settings_of(estimator).final_rank))
    points = population.sample(numbers) @ components.T
    return left_out_distances(
        points, positions_of(population, numbers), References.of(state.latents @ components.T),
        state.class_starts, state.counts, weights_of(population, numbers),
    )  # fmt: skip


def threshold(quantiles: Floats, share: float) -> float:
    """The score below which this share of new rows is expected to be."""
    return float(np.interp(share, QUANTILES, quantiles))
