"""Rows that this process can read: arrays, frames and lists as a whole, files block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from latentmetric.core.distances import row_blocks
from latentmetric.core.population import LocalPopulation
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.protocol import (
    BlockFunction,
    LabelledBlockFunction,
    LabelledRows,
    Partition,
    Progress,
)
from latentmetric.engines.sorting import sorted_by_class
from latentmetric.io.rows import RowFile, as_row_file
from latentmetric.validation.labels import (
    check_classes,
    check_same_length,
    checked_labels,
    classes_and_codes,
)
from latentmetric.validation.rows import (
    as_floats,
    check_description,
    check_features,
    check_numeric,
)


class LocalEngine:
    """Row files and memory maps, which are read a block at a time, and what fits into memory.

    Other engines have the same methods.
    """

    in_process = True
    """Whether this process can read the rows itself."""

    def holds(self, X: Any) -> bool:
        """Whether this engine is responsible for ``X``; does not import any library."""
        return True

    def validate(self, X: Any, estimator: Any, *, training: bool) -> Any:
        """Check shape, dtype and features, and return ``X`` in the form the other methods take.

        Training stores the features on the estimator; queries are compared with them. Values are
        checked now, or when they are read.
        """
        min_rows = 2 if training else 1
        if isinstance(X, RowFile | np.memmap):
            check_description(X.shape, np.dtype(X.dtype), min_rows)
            names = getattr(X, "feature_names", None)
            check_features(estimator, int(X.shape[1]), names, reset=training)
            return as_row_file(X)
        if not training and is_plain_table(X, estimator):
            return as_floats(X)
        check_numeric(X)
        rows = validate_data(
            estimator, X, reset=training, dtype="numeric", ensure_all_finite=False,
            ensure_min_samples=min_rows,
        )  # fmt: skip
        columns = getattr(X, "columns", None)
        return as_floats(rows, names=None if columns is None else list(columns))

    def labelled(self, rows: Any, y: Any, owner: str) -> LabelledRows:
        """Checked rows with their labels; ``owner`` is the estimator's name, for messages."""
        return LabelledRows(self, rows, *encoded(len(rows), y, owner))

    def partition(self, labelled: LabelledRows, n_threads: int, progress: Progress) -> Partition:
        """Sort the rows by class and check all values."""
        rows, codes, weights, order = labelled.rows, labelled.codes, labelled.weights, None
        if isinstance(rows, RowFile):
            rows, order = sorted_by_class(rows, codes, progress)
            codes = codes[order]
            if weights is not None and weights.of_rows is not None:
                weights = replace(weights, of_rows=weights.of_rows[order])
        of_rows = None if weights is None else weights.of_rows
        population = LocalPopulation.of(rows, codes, n_threads, of_rows)
        return Partition(population, rows, codes, order, weights)

    def map_blocks(self, function: BlockFunction, rows: Any, dtype: Any, width: int | None) -> Any:
        """Call ``function(block, start)`` on every block of checked queries.

        Answers have ``width`` columns, or one value per row if it is None. They are computed where
        the rows are: immediately in this process, lazily on a cluster.
        """
        if isinstance(rows, np.ndarray):
            return function(rows, 0)
        blocks = row_blocks(len(rows), rows.shape[1] * rows.dtype.itemsize // 8)
        return np.concatenate(
            [function(as_floats(rows[block], block.start), block.start) for block in blocks]
        )

    def each_block(self, function: LabelledBlockFunction, labelled: LabelledRows) -> Iterator[Any]:
        """What ``function(block, codes, start)`` returns for every block of training rows."""
        rows, codes = labelled.rows, labelled.codes
        for block in row_blocks(len(rows), rows.shape[1] * rows.dtype.itemsize // 8):
            yield function(as_floats(rows[block], block.start), codes[block], block.start)

    def gather(self, rows: Any, caller: str) -> Floats:
        """All checked rows as one array; raise ``TypeError`` if they must stay on a cluster.

        ``caller`` is the name of the method that needs them, for the error message.
        """
        gathered: Floats = rows if isinstance(rows, np.ndarray) else as_floats(rows[:])
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
