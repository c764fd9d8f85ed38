"""Rows in this process's memory: arrays, frames, lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import validate_data

from latentmetric.core.population import LocalPopulation
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.protocol import Partition, Progress
from latentmetric.validation.features import is_plain_table
from latentmetric.validation.labels import (
    check_classes,
    check_same_length,
    checked_labels,
    classes_and_codes,
)
from latentmetric.validation.rows import (
    as_floats,
    check_number_dtype,
    refuse_sparse,
    refuse_what_is_no_number,
    refusing_overflow,
)
from latentmetric.validation.weights import RowWeights, row_weights


@dataclass(frozen=True)
class LabelledArray:
    """Rows as floats, with their codes."""

    in_process: ClassVar[bool] = True
    rows: Floats
    codes: Ints
    classes: np.ndarray[Any, Any]
    weights: RowWeights | None = None

    def weighed(self, sample_weight: Any, class_weight: Any) -> LabelledArray:
        """See ``LabelledRows``."""
        weights = row_weights(sample_weight, class_weight, self.codes, self.classes)
        return replace(self, weights=weights)

    def partition(self, n_threads: int, progress: Progress) -> Partition:
        """See ``LabelledRows``."""
        of_rows = None if self.weights is None else self.weights.of_rows
        population = LocalPopulation.of(self.rows, self.codes, n_threads, of_rows)
        return Partition(population, self.rows, self.codes, weights=self.weights)

    def in_memory(self, caller: str) -> tuple[Floats, Ints]:
        """See ``LabelledRows``."""
        return self.rows, self.codes


class MemoryEngine:
    """Everything that scikit-learn can turn into an array."""

    in_process = True

    def holds(self, X: Any) -> bool:
        """See ``Engine``."""
        return True

    def admit(self, X: Any, estimator: Any, *, training: bool) -> Floats:
        """See ``Engine``; returns rows of floats with all values checked."""
        if not training and is_plain_table(X, estimator):
            return as_floats(X)
        refuse_sparse(X)
        refuse_what_is_no_number(X)
        with refusing_overflow():
            rows = validate_data(
                estimator, X, reset=training, dtype="numeric", ensure_all_finite=False,
                ensure_min_samples=2 if training else 1,
            )  # fmt: skip
        check_number_dtype(rows.dtype, X)
        return as_floats(rows)

    def labelled(self, rows: Floats, y: Any, owner: str) -> LabelledArray:
        """See ``Engine``."""
        classes, codes = coded(len(rows), y, owner)
        return LabelledArray(rows, codes, classes)

    def answer(
        self, rows: Floats, estimator: Any, method: str, dtype: Any, width: int | None,
        **keywords: Any,
    ) -> Any:  # fmt: skip
        """See ``Engine``."""
        return getattr(estimator, method)(rows, 0, **keywords)

    def gather(self, rows: Floats, caller: str) -> Floats:
        """See ``Engine``."""
        return rows


def coded(n_rows: int, y: Any, owner: str) -> tuple[np.ndarray[Any, Any], Ints]:
    """Classes and codes of labels; raise unless there is one label for each of ``n_rows`` rows."""
    labels = checked_labels(y)
    check_same_length(n_rows, len(labels))
    classes, codes = classes_and_codes(labels)
    check_classes(classes, owner)
    return classes, codes
