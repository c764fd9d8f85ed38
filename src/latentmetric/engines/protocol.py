"""What engines exchange with estimators, which need not know where rows are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.examples import Ids
from latentmetric.core.population import Population
from latentmetric.core.types import Floats, Ints
from latentmetric.validation.weights import RowWeights

Progress = Callable[[int, int], None]
"""Called with the number of rows read so far and the number of all rows."""

BlockFunction = Callable[[Floats, int], Any]
"""Called with a block of checked rows and the number of its first row."""


LabelledBlockFunction = Callable[[Floats, Ints, int], Any]
"""Called with a block of checked rows, their codes and the number of the first row."""


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

    engine: Any
    """A ``LocalEngine``, or what has its methods."""
    rows: Any
    classes: np.ndarray[Any, Any]
    """The distinct labels, sorted."""
    codes: Any
    """The class code of each row."""
    weights: RowWeights | None = None
    ids: Ids | None = None
    """The id of each row, if the model keeps some of them."""
