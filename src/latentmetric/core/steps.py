"""An iterative algorithm as steps, each leaving a state that the next one starts from.

MaPML's rounds and the rivals' iterations have this form, so that one driver follows them all. A
state is a frozen dataclass of arrays, numbers and other such dataclasses: whoever writes it to a
file needs to know nothing else about the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

Record = dict[str, Any]
"""What a step measured: its number ("round"), seconds by part, and what the algorithm knows."""

NOT_STORED = {"stored": False}
"""Metadata of a state's field that a checkpoint leaves out."""


class State(Protocol):
    """What a step leaves."""

    @property
    def record(self) -> Record:
        """What was measured on the way here."""

    @property
    def finished(self) -> bool:
        """Whether the algorithm has nothing left to do."""


AnyState = TypeVar("AnyState", bound=State)


@dataclass(frozen=True)
class Steps(Generic[AnyState]):
    """An algorithm with everything but its random generator already given."""

    first: Callable[[np.random.Generator], AnyState]
    following: Callable[[AnyState, np.random.Generator], AnyState | None]
    """The state after one step more; None where there is none."""
    limit: int
    """Steps after the first state, at most."""
    kind: type[AnyState]
    """The class of the states."""
    check: Callable[[AnyState], None]
    """Raises ``ValueError`` unless a state fits this data: one from a file may be anything."""


def check_arrays(shape: tuple[int, ...], *arrays: np.ndarray[Any, Any]) -> None:
    """Raise unless arrays have this shape and finite numbers only."""
    for array in arrays:
        if array.shape != shape:
            raise ValueError(f"an array has the shape {array.shape}, but this data needs {shape}")
        if not np.isfinite(array).all():
            raise ValueError("an array holds numbers that are not finite")
