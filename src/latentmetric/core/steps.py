"""An iterative algorithm as steps: each returns a state, from which the next one starts.

MaPML's rounds and the other estimators' iterations have this form, so one driver runs them all. A
state is a frozen dataclass of arrays, numbers, words and other such dataclasses: code that writes
it to a file needs to know nothing else about the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

Record = dict[str, Any]
"""Measurements of a step: its number ("round"), seconds by part, and more by algorithm.

Model files require numbers and dicts of numbers, except for the names of the start and of the kind
of bandwidth, and the list of what was "tried".
"""

NOT_STORED = {"stored": False}
"""Metadata of a state's field that checkpoints omit."""


class State(Protocol):
    """The result of a step."""

    @property
    def record(self) -> Record:
        """The measurements of the step."""

    @property
    def finished(self) -> bool:
        """Whether the algorithm has nothing left to do."""


AnyState = TypeVar("AnyState", bound=State)


def _the_last(best: AnyState, last: AnyState) -> AnyState:
    return last


@dataclass(frozen=True)
class Steps(Generic[AnyState]):
    """An algorithm with all its inputs bound except the random generator."""

    first: Callable[[np.random.Generator], AnyState]
    next: Callable[[AnyState, np.random.Generator], AnyState]
    """The state after one more step."""
    limit: int
    """The largest number of steps after the first state."""
    kind: type[AnyState]
    """The class of the states."""
    onward: Callable[[AnyState, AnyState], AnyState] = _the_last
    """The state to take the next step from, given the best one so far and the last one."""
