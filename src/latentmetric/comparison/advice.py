"""Which method to use, in words, from the results of a comparison.

Methods whose errors differ by less than chance explains are counted as equally good; of these the
one that answers fastest is recommended. Chance is judged row by row, as in the line after a fit and
in the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from latentmetric.characters import in_a_sentence, percent
from latentmetric.comparison.cross_validation import Outcome
from latentmetric.core.types import Bools, Floats
from latentmetric.evaluation.significance import paired


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
    >>> import numpy as np
    >>> from latentmetric.comparison import Outcome, advise
    >>> found = [
    ...     Outcome(method, fold, np.arange(100) < n_right, 0.1, 0.1, 10)
    ...     for fold in range(3)
    ...     for method, n_right in (("Euclid", 80), ("MaPML", 90))
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
    """Answers of each method on the folds that all of them have finished."""

    errors: dict[str, Floats]
    """Of each fold."""
    right: dict[str, Bools]
    """Of each row."""
    query_seconds: dict[str, float]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> _Results | None:
        table: dict[str, dict[int, Outcome]] = {}
        for outcome in outcomes:
            table.setdefault(outcome.method, {})[outcome.fold] = outcome
        folds = sorted(set.intersection(*map(set, table.values()))) if table else []
        if len(table) < 2 or len(folds) < 2:
            return None
        found = {name: [own[fold] for fold in folds] for name, own in table.items()}
        return cls(
            {name: np.array([fold.error for fold in own]) for name, own in found.items()},
            {name: np.concatenate([fold.right for fold in own]) for name, own in found.items()},
            {
                name: float(np.median([fold.query_seconds for fold in own]))
                for name, own in found.items()
            },
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
        """Whether chance explains how much larger the error is than the lowest."""
        return not paired(self.right[self.best], self.right[method]).beyond_chance


def _reason(results: _Results, chosen: str, equal: list[str]) -> str:
    """Why the method is recommended."""
    error, best = results.share(chosen), results.best
    others = [method for method in equal if method != chosen]
    if not others:
        return f"Its error, {error}, is the lowest, by more than chance explains."
    if chosen == best:
        return (
            f"Its error, {error}, is the lowest. {in_a_sentence(results.named(others))} "
            f"{'is' if len(others) == 1 else 'are'} too close to tell from it on these rows, and "
            f"{'answers' if len(others) == 1 else 'answer'} more slowly."
        )
    return (
        f"Its error, {error}, cannot be told from the lowest, {best}'s {results.share(best)}, on "
        "these rows, and of the methods that are this close it answers fastest."
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
