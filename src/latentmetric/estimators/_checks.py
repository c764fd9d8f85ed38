"""Checks of parameters at the door, with messages that say what was given and what is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

MOST = 10**12
"""Of anything that is counted: more would outlast whoever waits for it."""


def check_integer(name: str, value: Any, low: int, high: int = MOST) -> None:
    """An integer (not a bool) from ``low`` to ``high``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    _check_range(name, value, low, high, open_low=False)


def check_real(
    name: str, value: Any, low: float, high: float = inf, open_low: bool = False
) -> None:
    """A finite number (not a bool) from ``low`` to ``high``, or above ``low`` if that is open."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    try:
        finite = isfinite(value)
    except OverflowError:  # an integer or a fraction beyond all floats
        finite = False
    if not finite:
        raise ValueError(f"{name} must be finite, got {value!r:.40}")
    _check_range(name, value, low, high, open_low)


def check_bool(name: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(
            f"{name} must be True or False, got {value!r} of type {type(value).__name__}"
        )


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")


def check_verbose(value: Any) -> None:
    """A number from 0 on, or True or False as scikit-learn takes them."""
    check_integer("verbose", int(value) if isinstance(value, bool | np.bool_) else value, 0)


def check_n_jobs(value: Any) -> None:
    """None, or a number of threads that is not 0."""
    if value is not None:
        check_integer("n_jobs", value, -(2**31), 2**31 - 1)
        if value == 0:
            raise ValueError("n_jobs must be None, -1 or a number of threads, got 0")


def check_counts_by_class(name: str, counts: Mapping[Any, Any], classes: list[Any]) -> None:
    """A positive integer for every class and for nothing else."""
    missing = [label for label in classes if label not in counts]
    unknown = [label for label in counts if label not in classes]
    if missing or unknown:
        raise ValueError(
            f"{name} must name the {len(classes)} classes of y: "
            f"it lacks {missing[:5]} and names {unknown[:5]}, which y does not hold"
        )
    for label in classes:
        check_integer(f"{name} of class {label!r}", counts[label], 1)


def _check_range(name: str, value: Any, low: float, high: float, open_low: bool) -> None:
    if value < low or value > high or (open_low and value == low):
        above = f"above {low}" if open_low else f"at least {low}"
        told = high != inf and (high != MOST or value > high)
        span = f"{above} and at most {high}" if told else above
        raise ValueError(f"{name} must be {span}, got {value!r:.40}")


def set_attributes(estimator: Any, attributes: Mapping[str, Any]) -> None:
    """All of them at once, once they are all computed."""
    vars(estimator).update(attributes)


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Leave the estimator's fitted attributes as they were if the block does not finish."""

    def fitted() -> dict[str, Any]:
        return {name: value for name, value in vars(estimator).items() if name.endswith("_")}

    before = fitted()
    try:
        yield
    except BaseException:
        for name in fitted().keys() - before.keys():
            delattr(estimator, name)
        set_attributes(estimator, before)
        raise


def check_known_labels(labels: Any, classes: Any) -> None:
    """Labels that a fitted model knows."""
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(
            f"y holds {len(unknown)} label(s) that the model was not fitted with, "
            f"such as {unknown.tolist()[0]!r}; it knows {len(classes)} classes"
        )
