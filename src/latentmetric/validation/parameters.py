"""Rules for parameters, with messages that say what was passed and what is accepted.

An estimator defines one rule per parameter. A check also returns the value as one of Python's own
types: numbers of NumPy's small types, or fractions, would compute in their own ways.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, Protocol, TypeVar

import numpy as np
from sklearn.utils import check_random_state

MAX_COUNT = 10**12
"""The largest count that is accepted: with more, a fit would never finish."""


MAX_SEED = 2**32 - 1
"""The largest integer that NumPy takes as a seed."""


class Rule(Protocol):
    """The accepted values of a parameter."""

    def check(self, name: str, value: Any) -> Any:
        """The value to compute with; raise ``TypeError`` or ``ValueError`` on a wrong one."""


@dataclass(frozen=True)
class Integer:
    """An integer (not a bool, unless ``or_bool``) from ``low`` to ``high``."""

    low: int
    high: int = MAX_COUNT
    or_bool: bool = False

    def check(self, name: str, value: Any) -> int:
        """See ``Rule``."""
        is_bool = isinstance(value, bool | np.bool_)
        if not (self.or_bool if is_bool else isinstance(value, Integral)):
            raise _wrong_type(name, "an integer", value)
        number = int(value)
        if not self.low <= number <= self.high:
            raise _out_of_range(name, f"at least {self.low}", self.high, value)
        return number


@dataclass(frozen=True)
class Number:
    """A finite number (not a bool) from ``low`` to ``high``; with ``open_low``, above ``low``."""

    low: float
    high: float = inf
    open_low: bool = False

    def check(self, name: str, value: Any) -> float:
        """See ``Rule``."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise _wrong_type(name, "a number", value)
        number = float(value)
        if not isfinite(number):
            raise ValueError(f"{name} must be finite, got {value!r}")
        if not self.low <= number <= self.high or (self.open_low and number == self.low):
            accepted = f"{'above' if self.open_low else 'at least'} {self.low}"
            raise _out_of_range(name, accepted, self.high, value)
        return number


def _wrong_type(name: str, accepted: str, value: Any) -> TypeError:
    return TypeError(f"{name} must be {accepted}, got {value!r} of type {type(value).__name__}")


def _out_of_range(name: str, accepted: str, high: float, value: Any) -> ValueError:
    if value > high or high not in (MAX_COUNT, inf):
        accepted += f" and at most {high}"
    return ValueError(f"{name} must be {accepted}, got {value!r:.40}")


@dataclass(frozen=True)
class Boolean:
    """True or False."""

    def check(self, name: str, value: Any) -> bool:
        """See ``Rule``."""
        if not isinstance(value, bool | np.bool_):
            raise _wrong_type(name, "True or False", value)
        return bool(value)


@dataclass(frozen=True)
class OneOf:
    """One of a few words, or of the names in a registry."""

    words: Collection[str]

    def check(self, name: str, value: Any) -> str:
        """See ``Rule``."""
        if not isinstance(value, str) or value not in self.words:
            listed = ", ".join(repr(word) for word in self.words)
            raise ValueError(f"{name} must be one of {listed}, got {value!r}")
        return value


@dataclass(frozen=True)
class Or:
    """One value, None or a word, or what another rule accepts."""

    other: str | None
    rule: Rule

    def check(self, name: str, value: Any) -> Any:
        """See ``Rule``."""
        is_other = isinstance(value, type(self.other)) and value == self.other
        return value if is_other else self.rule.check(name, value)


@dataclass(frozen=True)
class Accepted:
    """What a function accepts: ``check(name, value)`` returns the value or raises."""

    check: Callable[[str, Any], Any]


def count_or_share(name: str, value: Any) -> Any:
    """A count for each class (int), a share of its rows (float), or counts by class (mapping)."""
    if isinstance(value, Mapping):
        return {
            label: Integer(1).check(f"{name} of class {label!r}", value[label]) for label in value
        }
    if isinstance(value, Integral):
        return Integer(1).check(f"{name} as a number for each class", value)
    return Number(0, 1, open_low=True).check(name, value)


def jobs(name: str, value: Any) -> int | None:
    """None, or a number of threads that is not 0."""
    if value == 0:
        raise ValueError(f"{name} must be None, -1 or a number of threads, got 0")
    return None if value is None else Integer(-(2**31), 2**31 - 1).check(name, value)


def label(name: str, value: Any) -> Any:
    """A label: a whole number, a word or a Boolean."""
    plain = value.item() if isinstance(value, np.generic) else value
    whole = isinstance(plain, float) and plain.is_integer()
    if not whole and not isinstance(plain, Integral | str):
        raise _wrong_type(name, "None or a label", value)
    return plain


def seed(name: str, value: Any) -> Any:
    """What scikit-learn accepts as ``random_state``."""
    try:
        check_random_state(value)
    except ValueError as error:
        raise ValueError(
            f"{name} must be None, an integer from 0 to {MAX_SEED} or a RandomState, got "
            f"{value!r:.60}"
        ) from error
    return value


Estimator = TypeVar("Estimator")

VOTING = ("n_jobs", "n_neighbors", "weights")
"""The parameters that decide how references vote; they may be set after a fit."""


def validated_copy(estimator: Estimator, names: Iterable[str] | None = None) -> Estimator:
    """A shallow copy of an estimator to compute with, its parameters checked and plain.

    ``names`` are the parameters that matter; None means all. The estimator itself keeps what its
    user set, and what it becomes later does not affect the copy.
    """
    copied: Any = object.__new__(type(estimator))
    values = copied.__dict__
    values.update(vars(estimator))
    rules: Mapping[str, Rule] = copied._parameter_rules
    for name in rules if names is None else names:
        if name in values:
            values[name] = rules[name].check(name, values[name])
    if names is None:
        copied._check_combinations()
    checked: Estimator = copied
    return checked


def check_keys(
    name: str, by_class: Mapping[Any, Any], classes: list[Any], *, every: bool = False
) -> None:
    """Raise unless the keys are classes, with ``every`` all of them."""
    known = set(classes)
    unknown = [label for label in by_class if label not in known]
    if unknown:
        raise ValueError(
            f"{name} has {len(unknown)} labels that y does not have, such as {unknown[0]!r}; y has "
            f"{len(classes)} classes, from {classes[0]!r} to {classes[-1]!r}"
        )
    missing = [label for label in classes if label not in by_class]
    if every and missing:
        raise ValueError(
            f"{name} has {len(by_class)} of the {len(classes)} classes of y; it lacks "
            f"{len(missing)}, such as {missing[0]!r}"
        )
