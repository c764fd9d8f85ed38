"""The rounds of one call of ``MaPML.fit``: which is kept, when to end, and who is told."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.core.alternation import Settings, State
from latentmetric.estimators._checkpoints import Checkpoints, Progress
from latentmetric.estimators._progress import RoundReporter, round_is_over
from latentmetric.estimators._training_data import TrainingData

if TYPE_CHECKING:
    from latentmetric.estimators.mapml import MaPML

PATIENCE = 3
"""Early stopping gives up after this many rounds without a lower validation error."""


class Rounds:
    """The rounds of one call of ``fit``."""

    def __init__(
        self, model: MaPML, data: TrainingData, settings: Settings,
        checkpoints: Checkpoints | None, keep_on_interrupt: bool,
    ) -> None:  # fmt: skip
        self._model, self._data, self._settings = model, data, settings
        self._checkpoints, self._keep_on_interrupt = checkpoints, keep_on_interrupt
        self._history: list[dict[str, Any]] = []
        self._state: State | None = None
        self._kept: State | None = None
        self._kept_error = inf

    def attributes(self, X: Any, y: Any) -> dict[str, Any]:
        """The fitted attributes of the round that is kept; callbacks are told of X and y."""
        reporter = RoundReporter(self._model, self._model.max_iter + 1)
        reporter.fit_begins(X, y)
        finished = self._resume()
        try:
            while not finished:
                reporter.round_begins(X, y)
                finished = self._round(reporter, X, y)
            attributes = self._final()
        except KeyboardInterrupt:
            if not self._keep_on_interrupt or self._kept is None:
                raise
            attributes = self._final()
        reporter.fit_ends(X, y, lambda: attributes)
        return attributes

    def _final(self) -> dict[str, Any]:
        """The attributes of the round that is kept, with all rows as references where asked."""
        model, data, kept = self._model, self._data, self._kept
        assert kept is not None
        attributes = model._attributes(data, kept, self._history)
        if model.reference == "original" and len(data.held_out):
            everyone = np.arange(len(data.rows))
            attributes |= model._original_references(data, kept, everyone)
        return attributes

    def _resume(self) -> bool:
        """Take up what a checkpoint holds; True if it is of a fit that was finished."""
        before = self._checkpoints and self._checkpoints.resumed(self._data.fingerprint())
        if not before:
            return False
        self._state, self._kept, self._kept_error = before.state, before.kept, before.kept_error
        self._history = before.history
        self._data.generator.bit_generator.state = before.generator.bit_generator.state
        return before.finished

    def _round(self, reporter: RoundReporter, X: Any, y: Any) -> bool:
        """One round; True if it is the last."""
        model, data = self._model, self._data
        state = model._next_state(self._state, data, self._settings)
        record = model._measured(data, state)
        error = record.get("validation_error", inf)
        history = [*self._history, record]
        kept = self._kept
        if kept is None or not model.early_stopping or error < self._kept_error:
            kept, self._kept_error = state, error
        self._state, self._kept, self._history = state, kept, history
        asked = round_is_over(type(model).__name__, history, model.max_iter, model.verbose)
        asked |= reporter.round_ends(X, y, partial(model._attributes, data, kept, history))
        last = state.round >= model.max_iter or state.round - kept.round >= PATIENCE
        if self._checkpoints is not None:
            progress = Progress(
                state, kept, self._kept_error, history, data.generator, finished=last
            )
            self._checkpoints.write(progress)
        return last or asked
