"""Which method to use, in words, from the results of a comparison.

Methods whose errors differ by less than chance explains are counted as equally good; of these the
one that answers fastest is recommended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from latentmetric.characters import percent
from latentmetric.comparison.cross_validation import Outcome
from latentmetric.core.types import Floats

STANDARD_ERRORS = 2
"""A difference of errors counts if it is more than this many of its standard errors."""

FEWEST_ERRORS = 5
"""A difference of fewer errors in all folds does not count: a coin falls five times on the same
side with a probability of 3 %."""


@dataclass(frozen=True)
class Advice:
    """The recommended method, and why."""

    method: str
    """Its name in ``METHODS``."""
    words: str
    """Why, in one or two sentences."""


def advise(outcomes: Iterable[Outcome]) -> Advice | None:
    """Which method to use.

    Parameters
    ----------
    outcomes : iterable of Outcome
        What ``compare`` yields. Folds that not all methods have finished are left out.

    Returns
    -------
    Advice or None
        None unless two methods have finished two folds.

    Examples
    --------
    >>> from latentmetric.comparison import Outcome, advise
    >>> found = [
    ...     Outcome(method, fold, error, 0.1, 0.1, 100, 10)
    ...     for fold in range(3)
    ...     for method, error in (("Euclid", 0.2), ("MaPML", 0.1))
    ... ]
    >>> advise(found).words
    'Use MaPML. Its error, 10.00 %, is the lowest, by more than chance explains.'
    """
    results = _Results.of(outcomes)
    if results is None:
        return None
    best = results.best
    equal = [method for method in results.errors if results.equals_best(method)]
    chosen = min(equal, key=lambda method: (results.query_seconds[method], method != best))
    words = [f"Use {chosen}.", _reason(results, chosen, equal)]
    words += _about_mapml(results, chosen, equal)
    return Advice(chosen, " ".join(words))


@dataclass(frozen=True)
class _Results:
    """Errors of each method on the folds that all of them have finished."""

    errors: dict[str, Floats]
    query_seconds: dict[str, float]
    n_queries: int

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> _Results | None:
        table: dict[str, dict[int, Outcome]] = {}
        for outcome in outcomes:
            table.setdefault(outcome.method, {})[outcome.fold] = outcome
        folds = sorted(set.intersection(*map(set, table.values()))) if table else []
        if len(table) < 2 or len(folds) < 2:
            return None
        first = next(iter(table.values()))
        return cls(
            {name: np.array([own[fold].error for fold in folds]) for name, own in table.items()},
            {
                name: float(np.median([own[fold].query_seconds for fold in folds]))
                for name, own in table.items()
            },
            sum(first[fold].n_queries for fold in folds),
        )

    @property
    def best(self) -> str:
        return min(self.errors, key=lambda method: float(self.errors[method].mean()))

    def share(self, method: str) -> str:
        return percent(float(self.errors[method].mean()))

    def named(self, methods: list[str]) -> list[str]:
        """Methods with their errors."""
        return [f"{method} ({self.share(method)})" for method in methods]

    def excess(self, method: str) -> float:
        """How much larger the error is than the lowest."""
        return float((self.errors[method] - self.errors[self.best]).mean())

    def equals_best(self, method: str) -> bool:
        """Whether chance explains how much larger the error is than the lowest.

        The training rows of folds overlap: the variance is corrected for that as Nadeau and
        Bengio propose.
        """
        difference = self.errors[method] - self.errors[self.best]
        n_folds = len(difference)
        variance = float(difference.var(ddof=1)) * (1 / n_folds + 1 / (n_folds - 1))
        few = self.excess(method) * self.n_queries < FEWEST_ERRORS - 0.5
        return few or bool(difference.mean() <= STANDARD_ERRORS * variance**0.5)


def _reason(results: _Results, chosen: str, equal: list[str]) -> str:
    """Why the method is recommended."""
    error, best = results.share(chosen), results.best
    others = [method for method in equal if method != chosen]
    if not others:
        return f"Its error, {error}, is the lowest, by more than chance explains."
    if chosen == best:
        return (
            f"Its error, {error}, is the lowest. {_listed(results.named(others))} "
            f"{'is' if len(others) == 1 else 'are'} too close to tell from it on these folds, and "
            f"{'answers' if len(others) == 1 else 'answer'} more slowly."
        )
    return (
        f"Its error, {error}, cannot be told from the lowest, {best}'s {results.share(best)}, on "
        "these folds, and of the methods that are this close it answers fastest."
    )


def _about_mapml(results: _Results, chosen: str, equal: list[str]) -> list[str]:
    """What to know of MaPML where another method is recommended."""
    if chosen == "MaPML" or "MaPML" not in results.errors:
        return []
    if "MaPML" in equal:
        return [
            f"Take MaPML ({results.share('MaPML')}) if you want to search, to see what answers "
            "rest on, to reject unknown rows or to add classes later."
        ]
    points = 100 * results.excess("MaPML")
    return [f"MaPML's error is {points:.2f} percentage points above that of {results.best}."]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
