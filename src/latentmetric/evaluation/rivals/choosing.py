"""The parameters with the fewest errors on rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.preprocessing import StandardScaler

from latentmetric.core.types import Floats, Ints
from latentmetric.evaluation.sampling import sample

FOLDS = 3
"""Parts of the cross-validation."""

Parameters = TypeVar("Parameters")

Answers = Callable[[Floats, Ints, Floats], Iterable[Ints]]
"""Takes rows, their codes and queries; gives the codes that each candidate answers, in order."""


@dataclass(frozen=True)
class Task:
    """Training rows with their codes, from 0 and without gaps."""

    rows: Any
    codes: Ints
    generator: np.random.Generator
    n_jobs: int | None = None
    bounded: bool = False
    """Whether the last fit may take fewer rows to save time."""

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.codes.max()) + 1

    @property
    def width(self) -> int:
        """Features times classes."""
        return int(self.rows.shape[1]) * self.n_classes

    def some(self, n_rows: int) -> Task:
        """At most so many of the rows, in float64; every class has its share."""
        chosen = np.sort(sample(self.codes, n_rows, self.generator))
        rows = np.asarray(self.rows[chosen], dtype=np.float64)
        return replace(self, rows=rows, codes=self.codes[chosen])


@dataclass(frozen=True)
class Chosen:
    """A classifier with the parameters that were chosen for it, before its fit."""

    classifier: Any
    scaling: bool
    """Whether its columns are standardised."""
    parameters: str
    """What was chosen beside the scaling, in words."""
    n_rows: int | None = None
    """Training rows that it is to be fitted to; None for all."""

    @property
    def words(self) -> str:
        """All that was chosen."""
        return f"{self.parameters}, columns {'standardised' if self.scaling else 'as they are'}"


def choose(
    task: Task, scalings: Sequence[bool], candidates: Sequence[Parameters], answers: Answers
) -> tuple[bool, Parameters]:
    """The scaling and the candidate with the fewest errors over all folds; of equals, the first."""
    wrong = np.zeros((len(scalings), len(candidates)), dtype=np.intp)
    for fitted, judged in folds(task.codes, task.generator):
        known_codes, truth = task.codes[fitted], task.codes[judged]
        for line, scaling in enumerate(scalings):
            known, asked = scaled(scaling, task.rows[fitted], task.rows[judged])
            for column, found in enumerate(answers(known, known_codes, asked)):
                wrong[line, column] += np.count_nonzero(found != truth)
    line, column = divmod(int(wrong.argmin()), len(candidates))
    return scalings[line], candidates[column]


def folds(codes: Ints, generator: np.random.Generator) -> Iterator[tuple[Ints, Ints]]:
    """Rows to fit and rows to judge, ``FOLDS`` times; the classes are spread over all parts."""
    shuffled = generator.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    parts = np.empty(len(codes), dtype=np.intp)
    parts[by_class] = np.arange(len(codes)) % FOLDS
    for part in range(FOLDS):
        fitted, judged = np.flatnonzero(parts != part), np.flatnonzero(parts == part)
        if len(judged) and len(np.unique(codes[fitted])) > 1:
            yield fitted, judged


def scaled(scaling: bool, known: Floats, *others: Floats) -> list[Floats]:
    """All as they are, or standardised by the rows that are known."""
    if not scaling:
        return [known, *others]
    scaler = StandardScaler().fit(known)
    return [scaler.transform(part) for part in (known, *others)]
