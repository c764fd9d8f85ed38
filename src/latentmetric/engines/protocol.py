"""What an engine does, so that estimators need not know where rows are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from latentmetric.core.population import Population
from latentmetric.core.types import Floats, Ints
from latentmetric.validation.weights import RowWeights

Progress = Callable[[int, int], None]
"""Called with the number of rows read so far and the number of all rows."""

BlockFunction = Callable[[Floats, int], Any]
"""Called with a block of checked rows and the number of its first row."""


@dataclass(frozen=True)
class Partition:
    """Training rows sorted by class once, for algorithms that see one class at a time."""

    population: Population
    rows: Any = None
    """Rows that this process can slice, an array or a file; None if they are on a cluster."""
    codes: Ints | None = None
    """The class code of each of ``rows``."""
    order: Ints | None = None
    """The caller's row number of each of ``rows``, if they were reordered."""
    weights: RowWeights | None = None
    """The weights of ``rows``; None if each counts as one."""


@dataclass(frozen=True)
class LabelledRows:
    """Checked training rows with their labels."""

    engine: Engine
    rows: Any
    classes: np.ndarray[Any, Any]
    """The distinct labels, sorted."""
    codes: Any
    """The class code of each row."""
    weights: RowWeights | None = None


class Engine(Protocol):
    """A kind of storage for rows."""

    in_process: bool
    """Whether this process can read the rows itself."""

    def holds(self, X: Any) -> bool:
        """Whether this engine is responsible for ``X``; does not import any library."""

    def validate(self, X: Any, estimator: Any, *, training: bool) -> Any:
        """Check shape, dtype and features, and return ``X`` in the form the other methods take.

        Training stores the features on the estimator; queries are compared with them.
        """

    def labelled(self, rows: Any, y: Any, owner: str) -> LabelledRows:
        """Checked rows with their labels; ``owner`` is the estimator's name, for messages."""

    def partition(self, labelled: LabelledRows, n_threads: int, progress: Progress) -> Partition:
        """Sort the rows by class and check all values."""

    def map_blocks(self, function: BlockFunction, rows: Any, dtype: Any, width: int | None) -> Any:
        """Call ``function(block, start)`` on every block of checked queries.

        Answers have ``width`` columns, or one value per row if it is None. They are computed where
        the rows are: immediately in this process, lazily on a cluster.
        """

    def gather(self, rows: Any, caller: str) -> Floats:
        """All checked rows as one array; raise ``TypeError`` if they must stay on a cluster.

        ``caller`` is the name of the method that needs them, for the error message.
        """
