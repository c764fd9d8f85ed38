"""What a place that holds rows must offer, so that estimators need not know where rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from latentmetric.core.population import Population
from latentmetric.core.types import Floats, Ints

Progress = Callable[[int, int], None]
"""Called with the number of rows read and of all rows."""


@dataclass(frozen=True)
class Partition:
    """Training rows sorted by class once, for algorithms that see one class at a time."""

    population: Population
    rows: Any = None
    """Rows this process can slice, an array or a file; None where none holds them all."""
    codes: Ints | None = None
    """The class of each of ``rows``."""
    order: Ints | None = None
    """The caller's number of each of ``rows``, where they were put into another order."""


class LabelledRows(Protocol):
    """Admitted rows with admitted labels."""

    in_process: ClassVar[bool]
    """Whether this process can read the rows itself."""

    @property
    def classes(self) -> np.ndarray[Any, Any]:
        """The different labels, in order."""

    def partition(self, n_threads: int, progress: Progress) -> Partition:
        """Sort the rows by class; all values are checked on the way."""

    def in_memory(self, asking: str) -> tuple[Floats, Ints]:
        """All rows and codes as arrays; ``TypeError`` where rows must not leave their place.

        ``asking`` names the method that needs them, for the message.
        """


class Engine(Protocol):
    """A place where rows may be."""

    in_process: bool
    """Whether this process can read the rows itself."""

    def holds(self, X: Any) -> bool:
        """Whether ``X`` is such rows; found out without importing a library."""

    def admit(self, X: Any, estimator: Any, *, training: bool) -> Any:
        """``X`` if shape, type and features are right, in the form the other methods take.

        Training notes the features on the estimator; queries are compared with them.
        """

    def labelled(self, rows: Any, y: Any, owner: str) -> LabelledRows:
        """Admitted rows with their labels; ``owner`` is the class that asks, for messages."""

    def answer(
        self, rows: Any, estimator: Any, method: str, dtype: Any, width: int | None,
        **keywords: Any,
    ) -> Any:  # fmt: skip
        """``estimator.method(block, start, **keywords)`` of every block of admitted queries.

        ``start`` is the number of the block's first row. Answers have ``width`` columns, or are
        one value a row where that is None. They are computed where the rows are: at once in this
        process, lazily on a cluster.
        """

    def gather(self, rows: Any, asking: str) -> Floats:
        """Admitted queries as one array; ``TypeError`` where rows must not leave their place."""
