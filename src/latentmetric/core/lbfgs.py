"""L-BFGS on matrices: a descent that keeps its estimate of the curvature between calls.

For losses that are never negative. Every step is found by a line search, so the loss falls and
cannot diverge. Memory: two matrices per correction, in the dtype of x; inner products are
summed in float64. Time: four passes over each correction per iteration, plus the loss itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from latentmetric.core.tuning import CORRECTIONS, MAX_TRIALS
from latentmetric.core.types import Floats

SUFFICIENT_SHARE = 1e-4
"""A step must lower the loss by at least this share of what the slope predicts."""


class Evaluated(Protocol):
    """A loss and its gradient at some x."""

    @property
    def loss(self) -> float:
        """The loss, never negative."""

    @property
    def gradient(self) -> Floats:
        """The gradient, in the shape of x."""


At = TypeVar("At", bound=Evaluated)


@dataclass(frozen=True)
class Correction:
    """A step and the change of the gradient along it."""

    step: Floats
    change: Floats
    curving: float
    """Their inner product."""


class InverseHessian:
    """How the gradient changed along the last steps: an estimate of the inverse Hessian.

    The estimate is positive definite, so it turns any gradient into a direction of descent, even
    if the loss has changed in the meantime.
    """

    def __init__(
        self, corrections: Iterable[Correction] = (), n_corrections: int = CORRECTIONS
    ) -> None:
        self._corrections = deque(corrections, maxlen=n_corrections)

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """The corrections in use, oldest first."""
        return tuple(self._corrections)

    def __len__(self) -> int:
        return len(self._corrections)

    def forget(self) -> None:
        """Drop all corrections."""
        self._corrections.clear()

    def learn(self, step: Floats, change: Floats) -> None:
        """Add a step and the change of the gradient along it, unless the curvature is too small."""
        curving = inner(step, change)
        if curving > np.finfo(step.dtype).eps * inner(change, change) * self._scale():
            self._corrections.append(Correction(step, change, curving))

    def _scale(self) -> float:
        """The scale of H: ⟨step, change⟩ / ⟨change, change⟩ of the last correction; 0 if none."""
        if not self._corrections:
            return 0.0
        last = self._corrections[-1]
        return last.curving / inner(last.change, last.change)

    def direction(self, at: Evaluated) -> Floats:
        """−H g; without corrections, the step that would halve the loss if it were linear."""
        gradient = at.gradient
        if not self._corrections:
            squared = inner(gradient, gradient) or 1.0
            return gradient * gradient.dtype.type(-at.loss / 2 / squared)
        direction = -gradient
        weights = []
        for known in reversed(self._corrections):
            weights.append(inner(known.step, direction) / known.curving)
            direction -= direction.dtype.type(weights[-1]) * known.change
        direction *= direction.dtype.type(self._scale())
        for known, weight in zip(self._corrections, reversed(weights), strict=True):
            left = weight - inner(known.change, direction) / known.curving
            direction += direction.dtype.type(left) * known.step
        return direction


def descend(
    evaluate: Callable[[Floats], At],
    x: Floats,
    at: At,
    curvature: InverseHessian,
    n_iterations: int,
) -> tuple[Floats, int]:
    """Take up to ``n_iterations`` steps; stop early if the loss is halved or no step lowers it.

    Returns the last x and the number of steps taken.
    """
    halved, made = at.loss / 2, 0
    while made < n_iterations and at.loss > halved:
        found = _line_search(evaluate, x, at, curvature.direction(at))
        if found is None and len(curvature):
            curvature.forget()
            found = _line_search(evaluate, x, at, curvature.direction(at))
        if found is None:
            break
        step, there = found
        curvature.learn(step, there.gradient - at.gradient)
        x, at, made = x + step, there, made + 1
    return x, made


def _line_search(
    evaluate: Callable[[Floats], At], x: Floats, at: At, direction: Floats
) -> tuple[Floats, At] | None:
    """The first trial step along a direction that lowers the loss enough; None if none does.

    Shortens ``direction`` in place.
    """
    slope = inner(direction, at.gradient)
    if not slope < 0:
        return None
    for _ in range(MAX_TRIALS):
        there = evaluate(x + direction)
        if there.loss <= at.loss + SUFFICIENT_SHARE * slope:
            return direction, there
        # The minimum of the parabola through the known values, kept away from both ends.
        share = min(0.5, max(0.1, -slope / (2 * (there.loss - at.loss - slope))))
        direction *= direction.dtype.type(share)
        slope *= share
    return None


def inner(left: Floats, right: Floats) -> float:
    """⟨left, right⟩ summed in float64, without converting the whole matrices."""
    return float(np.einsum("ij,ij->", left, right, dtype=np.float64))
