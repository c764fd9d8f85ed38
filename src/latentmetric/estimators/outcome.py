"""What an estimator makes of the states of one fit: records, fitted attributes, the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from latentmetric.core.model import FittedModel, Neighbors
from latentmetric.core.steps import AnyState, Record
from latentmetric.core.types import Ints
from latentmetric.core.votes import VOTES, n_voters, temperature_from_held_out
from latentmetric.estimators.progress import iterations
from latentmetric.estimators.training import TrainingData

if TYPE_CHECKING:
    from latentmetric.estimators.base import ReferenceClassifier

OF_FEATURES = ("n_features_in_", "feature_names_in_")
"""Fitted attributes that the estimator has from the moment when its rows are admitted."""


@dataclass(frozen=True)
class FitOutcome(Generic[AnyState]):
    """The results of one fit, computed from its states; see ``driver.Outcome``."""

    _estimator: ReferenceClassifier[AnyState]
    """The copy that is being fitted, with plain parameters."""
    _data: TrainingData

    def measure(self, state: AnyState) -> Record:
        """See ``driver.Outcome``."""
        estimator, data = self._estimator, self._data
        record = estimator._record(data, state)
        if len(data.held_out):
            model = self._model(state)
            neighbors, codes = self._validation_voters(model)
            wrong = model.vote(neighbors, estimator.weights) != codes
            weights = data.validation_weights
            record["validation_error"] = float(np.average(wrong, weights=weights))
        return record

    def attributes(self, kept: AnyState, history: list[Record], *, final: bool) -> dict[str, Any]:
        """See ``driver.Outcome``."""
        estimator, data = self._estimator, self._data
        model = self._model(kept)
        if final and len(data.held_out):
            complete = estimator._fitted_model(data, kept, all_rows=True)
            model = replace(complete, temperature=model.temperature)
        attributes = estimator._attributes(data, kept, model)
        if model.components is not None:
            attributes = {"components_": model.components} | attributes
        named = {name: value for name, value in vars(estimator).items() if name in OF_FEATURES}
        return (
            attributes
            | named
            | {
                "classes_": data.classes,
                "history_": list(history),
                "n_iter_": iterations(history[-1]),
                "best_iter_": iterations(kept.record),
                "model_": model,
            }
        )

    def _model(self, state: AnyState) -> FittedModel:
        """The model of a state; held-out rows set the temperature if the vote needs one."""
        model = self._estimator._fitted_model(self._data, state, all_rows=False)
        needed = VOTES[self._estimator.weights].needs_temperature
        if not len(self._data.held_out) or not needed:
            return model
        neighbors, codes = self._validation_voters(model)
        correct = model.codes[neighbors.indices] == codes[:, None]
        temperature = temperature_from_held_out(
            neighbors.squared, correct, self._data.validation_weights
        )
        return replace(model, temperature=temperature)

    def _validation_voters(self, model: FittedModel) -> tuple[Neighbors, Ints]:
        """The references that vote on the held-out rows, and the codes of these rows."""
        estimator, (rows, codes) = self._estimator, self._data.validation_rows
        k = n_voters(estimator.weights, estimator.n_neighbors, len(model.references))
        return model.nearest(rows, k, estimator.n_jobs), codes
