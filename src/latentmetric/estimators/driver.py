"""One loop that runs the steps of any estimator's algorithm.

It also decides what happens around a step: which state to keep, when to stop early, what to write
to a checkpoint, whom to notify, and what an interrupt leaves. So all estimators behave the same.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from latentmetric.core.model import FittedModel, Neighbors
from latentmetric.core.steps import AnyState, Record, Steps
from latentmetric.core.types import Ints
from latentmetric.core.votes import VOTES, n_voters, temperature_from_held_out
from latentmetric.estimators.progress import Listener, iterations
from latentmetric.estimators.training import TrainingData
from latentmetric.persistence.checkpoints import Checkpoints, Progress

if TYPE_CHECKING:
    from latentmetric.estimators.base import ReferenceClassifier

PATIENCE = 3
"""Early stopping ends a fit after this many steps without a lower validation error."""


class Driver(Generic[AnyState]):
    """Runs the steps of one fit and turns its states into records and fitted attributes."""

    def __init__(
        self, estimator: ReferenceClassifier[AnyState], data: TrainingData, steps: Steps[AnyState],
        generator: np.random.Generator, listener: Listener, checkpoints: Checkpoints | None,
        keep_on_interrupt: bool,
    ) -> None:  # fmt: skip
        self._estimator, self._data, self._steps = estimator, data, steps
        self._generator, self._listener, self._checkpoints = generator, listener, checkpoints
        self._keep_on_interrupt = keep_on_interrupt
        self._judge, self._patience = estimator._stopping(data)
        self._state: AnyState | None = None
        self._kept: AnyState | None = None
        self._kept_error = inf
        self._history: list[Record] = []

    def run(self) -> dict[str, Any]:
        """Run all steps and return the fitted attributes of the kept state."""
        self._listener.begins()
        finished = self._checkpoints is not None and self._resume(self._checkpoints)
        try:
            while not finished:
                self._listener.begins()
                finished = self._step()
            attributes = self._finish()
        except KeyboardInterrupt:
            if not self._keep_on_interrupt or self._kept is None:
                raise
            attributes = self._finish()
        try:
            self._listener.ends(lambda: attributes, fit=True)
        except KeyboardInterrupt:
            if not self._keep_on_interrupt:
                raise
        return attributes

    def _finish(self) -> dict[str, Any]:
        assert self._kept is not None
        return self._attributes(self._kept, self._history, final=True)

    def _resume(self, checkpoints: Checkpoints) -> bool:
        """Continue from the checkpoint, if there is one; True if its fit was finished."""
        found = checkpoints.resumed(self._data.fingerprint(), self._steps)
        if found is None:
            return False
        self._state, self._kept, self._kept_error = found.state, found.kept, found.kept_error
        self._history = found.history
        self._generator.bit_generator.state = found.generator_state
        return found.finished

    def _step(self) -> bool:
        """Run one step; return True if it was the last."""
        steps, generator, judge = self._steps, self._generator, self._judge
        if self._state is None or self._kept is None:
            state = steps.first(generator)
        else:
            state = steps.following(steps.onward(self._kept, self._state), generator)
        record = self._measure(state)
        error = inf if judge is None else record.get(judge, inf)
        history, kept = [*self._history, record], self._kept
        if kept is None or judge is None or error < self._kept_error:
            kept, self._kept_error = state, error
        self._state, self._kept, self._history = state, kept, history
        stop_requested = self._listener.step_ends(
            history, partial(self._attributes, kept, history, final=False)
        )
        done = state.record["round"]
        last = state.finished or done >= steps.limit
        if self._patience is not None:
            last = last or done - kept.record["round"] >= self._patience
        if self._checkpoints is not None:
            now = generator.bit_generator.state
            progress = Progress(state, kept, self._kept_error, history, now, last)
            self._checkpoints.write(progress)
        return last or stop_requested

    def _measure(self, state: AnyState) -> Record:
        """The record of a step for ``history_``, with a validation error if rows are held out."""
        estimator, data = self._estimator, self._data
        record = estimator._record(data, state)
        if len(data.held_out):
            model = self._model(state)
            neighbors, codes = self._validation_voters(model)
            wrong = model.vote(neighbors, estimator.weights) != codes
            record["validation_error"] = float(np.average(wrong, weights=data.validation_weights))
        return record

    def _attributes(self, kept: AnyState, history: list[Record], *, final: bool) -> dict[str, Any]:
        """The fitted attributes; ``final`` if no further step follows."""
        estimator, data = self._estimator, self._data
        model = self._model(kept)
        if final and len(data.held_out):
            complete = estimator._fitted_model(data, kept, all_rows=True)
            model = replace(complete, temperature=model.temperature)
        features = ("n_features_in_", "feature_names_in_")
        return {
            **({} if model.components is None else {"components_": model.components}),
            **estimator._attributes(data, kept, model),
            **{name: getattr(estimator, name) for name in features if hasattr(estimator, name)},
            "classes_": data.classes,
            "history_": list(history),
            "n_iter_": iterations(history[-1]),
            "best_iter_": iterations(kept.record),
            "model_": model,
        }

    def _model(self, state: AnyState) -> FittedModel:
        """The model of a state; held-out rows set the temperature if the vote needs one."""
        model = self._estimator._fitted_model(self._data, state, all_rows=False)
        if not len(self._data.held_out) or not VOTES[self._estimator.weights].needs_temperature:
            return model
        neighbors, codes = self._validation_voters(model)
        correct = model.codes[neighbors.indices] == codes[:, None]
        weights = self._data.validation_weights
        temperature = temperature_from_held_out(neighbors.squared, correct, weights)
        return replace(model, temperature=temperature)

    def _validation_voters(self, model: FittedModel) -> tuple[Neighbors, Ints]:
        """The references that vote on the held-out rows, and the codes of these rows."""
        estimator, (rows, codes) = self._estimator, self._data.validation_rows
        k = n_voters(estimator.weights, estimator.n_neighbors, len(model.references))
        return model.nearest(rows, k, estimator.n_jobs), codes
