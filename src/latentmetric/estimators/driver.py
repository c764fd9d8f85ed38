"""One loop that runs the steps of any estimator's algorithm.

It also decides what happens around a step: which state to keep, when to stop early, what to write
to a checkpoint, whom to notify, and what an interrupt leaves. So all estimators behave the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from latentmetric.core.steps import AnyState, Record, State, Steps
from latentmetric.estimators.progress import Listener
from latentmetric.persistence.checkpoints import Checkpoints, Progress

PATIENCE = 3
"""Early stopping ends a fit after this many steps without a lower validation error."""


@dataclass(frozen=True)
class Policies:
    """What happens around the steps of one fit."""

    judge: str | None
    """Keep the state whose record has the lowest value of this name; None keeps the last one."""
    patience: int | None
    """End after this many steps without a better state; None runs all steps."""
    keep_on_interrupt: bool
    """On Ctrl-C, end with the state kept so far instead of raising."""
    checkpoints: Checkpoints | None
    fingerprint: Callable[[], dict[str, Any]]
    """Identifies the training data, for checkpoints."""


Kept = TypeVar("Kept", bound=State, contravariant=True)


class Outcome(Protocol[Kept]):
    """Turns the states of a fit into records and fitted attributes."""

    def measure(self, state: Kept) -> Record:
        """The record of a step for ``history_``, with a validation error if rows are held out."""

    def attributes(self, kept: Kept, history: list[Record], *, final: bool) -> dict[str, Any]:
        """The fitted attributes; ``final`` if no further step follows."""


class Driver(Generic[AnyState]):
    """Runs the steps of one fit."""

    def __init__(
        self, steps: Steps[AnyState], generator: np.random.Generator,
        outcome: Outcome[AnyState], policies: Policies, listener: Listener,
    ) -> None:  # fmt: skip
        self._steps, self._generator, self._outcome = steps, generator, outcome
        self._policies, self._listener = policies, listener
        self._state: AnyState | None = None
        self._kept: AnyState | None = None
        self._kept_error = inf
        self._history: list[Record] = []

    def follow(self) -> dict[str, Any]:
        """Run all steps and return the fitted attributes of the kept state."""
        self._listener.begins()
        finished = self._policies.checkpoints is not None and self._resume()
        try:
            while not finished:
                self._listener.begins()
                finished = self._step()
            attributes = self._finish()
        except KeyboardInterrupt:
            if not self._policies.keep_on_interrupt or self._kept is None:
                raise
            attributes = self._finish()
        try:
            self._listener.fit_ends(lambda: attributes)
        except KeyboardInterrupt:
            if not self._policies.keep_on_interrupt:
                raise
        return attributes

    def _finish(self) -> dict[str, Any]:
        assert self._kept is not None
        return self._outcome.attributes(self._kept, self._history, final=True)

    def _resume(self) -> bool:
        """Continue from the checkpoint, if there is one; True if its fit was finished."""
        checkpoints = self._policies.checkpoints
        assert checkpoints is not None
        found = checkpoints.resumed(self._policies.fingerprint(), self._steps)
        if found is None:
            return False
        self._state, self._kept, self._kept_error = found.state, found.kept, found.kept_error
        self._history = found.history
        self._generator.bit_generator.state = found.generator_state
        return found.finished

    def _step(self) -> bool:
        """Run one step; return True if it was the last."""
        steps, generator, judge = self._steps, self._generator, self._policies.judge
        if self._state is None or self._kept is None:
            state = steps.first(generator)
        else:
            state = steps.following(steps.onward(self._kept, self._state), generator)
        record = self._outcome.measure(state)
        error = inf if judge is None else record.get(judge, inf)
        history, kept = [*self._history, record], self._kept
        if kept is None or judge is None or error < self._kept_error:
            kept, self._kept_error = state, error
        self._state, self._kept, self._history = state, kept, history
        stop_requested = self._listener.step_ends(
            history, partial(self._outcome.attributes, kept, history, final=False)
        )
        done = state.record["round"]
        last = state.finished or done >= self._steps.limit
        patience = self._policies.patience
        last = last or (patience is not None and done - kept.record["round"] >= patience)
        if self._policies.checkpoints is not None:
            progress = Progress(
                state, kept, self._kept_error, history, generator.bit_generator.state, last
            )
            self._policies.checkpoints.write(progress)
        return last or stop_requested
