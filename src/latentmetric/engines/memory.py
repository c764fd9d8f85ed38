"""Rows in this process's memory: arrays, frames, lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from latentmetric.core.population import LocalPopulation
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.protocol import BlockFunction, LabelledRows, Partition, Progress
from latentmetric.validation.labels import (
    check_classes,
    check_same_length,
    checked_labels,
    classes_and_codes,
)
from latentmetric.validation.rows import as_floats, check_numeric


class MemoryEngine:
    """Everything that scikit-learn can turn into an array."""

    in_process = True

    def holds(self, X: Any) -> bool:
        """See ``Engine``."""
        return True

    def validate(self, X: Any, estimator: Any, *, training: bool) -> Any:
        """See ``Engine``; returns rows of floats with all values checked."""
        if not training and is_plain_table(X, estimator):
            return as_floats(X)
        check_numeric(X)
        rows = validate_data(
            estimator, X, reset=training, dtype="numeric", ensure_all_finite=False,
            ensure_min_samples=2 if training else 1,
        )  # fmt: skip
        return as_floats(rows)

    def labelled(self, rows: Any, y: Any, owner: str) -> LabelledRows:
        """See ``Engine``."""
        return LabelledRows(self, rows, *encoded(len(rows), y, owner))

    def partition(self, labelled: LabelledRows, n_threads: int, progress: Progress) -> Partition:
        """See ``Engine``."""
        rows, codes, weights = labelled.rows, labelled.codes, labelled.weights
        of_rows = None if weights is None else weights.of_rows
        population = LocalPopulation.of(rows, codes, n_threads, of_rows)
        return Partition(population, rows, codes, weights=weights)

    def map_blocks(self, function: BlockFunction, rows: Any, dtype: Any, width: int | None) -> Any:
        """See ``Engine``; all rows are one block."""
        return function(rows, 0)

    def gather(self, rows: Any, caller: str) -> Floats:
        """See ``Engine``."""
        gathered: Floats = rows
        return gathered


def is_plain_table(X: Any, estimator: Any) -> bool:
    """Whether queries obviously pass scikit-learn's check, which takes as long as a search."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.kind in "biuf"
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def encoded(n_rows: int, y: Any, owner: str) -> tuple[np.ndarray[Any, Any], Ints]:
    """Classes and codes of labels; raise unless there is one label for each of ``n_rows`` rows."""
    labels = checked_labels(y)
    check_same_length(n_rows, len(labels))
    classes, codes = classes_and_codes(labels)
    check_classes(classes, owner)
    return classes, codes
