"""Rows in files and memory maps: read block by block, and in one pass to sort them by class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.types import Floats
from latentmetric.engines.memory import MemoryEngine
from latentmetric.engines.protocol import BlockFunction, LabelledRows, Partition, Progress
from latentmetric.engines.sorting import sorted_by_class
from latentmetric.io.rows import RowFile, as_row_file, is_lazy
from latentmetric.validation.rows import (
    as_floats,
    check_description,
    check_features,
    float_dtypes,
)


class FileEngine(MemoryEngine):
    """Row files and memory maps, which are read instead of mapped."""

    def holds(self, X: Any) -> bool:
        """See ``Engine``."""
        return is_lazy(X)

    def validate(self, X: Any, estimator: Any, *, training: bool) -> RowFile:
        """See ``Engine``."""
        check_description(X.shape, np.dtype(X.dtype), 2 if training else 1)
        names = getattr(X, "feature_names", None)
        check_features(estimator, int(X.shape[1]), names, reset=training)
        return as_row_file(X)

    def partition(self, labelled: LabelledRows, n_threads: int, progress: Progress) -> Partition:
        """See ``Engine``; reads the file once, or again if values need more than float32."""
        narrow, *wide = float_dtypes(labelled.rows.dtype)
        try:
            rows, order = sorted_by_class(labelled.rows, labelled.codes, narrow, progress)
        except OverflowError:
            rows, order = sorted_by_class(labelled.rows, labelled.codes, wide[0], progress)
        weights = labelled.weights
        if weights is not None and weights.of_rows is not None:
            weights = replace(weights, of_rows=weights.of_rows[order])
        codes = labelled.codes[order]
        sorted_rows = replace(labelled, rows=rows, codes=codes, weights=weights)
        return replace(super().partition(sorted_rows, n_threads, progress), order=order)

    def map_blocks(
        self, function: BlockFunction, rows: RowFile, dtype: Any, width: int | None
    ) -> Any:
        """See ``Engine``; only one block at a time is in memory."""
        blocks = row_blocks(len(rows), rows.shape[1] * rows.dtype.itemsize // 8)
        return np.concatenate(
            [function(as_floats(rows[block], block.start), block.start) for block in blocks]
        )

    def gather(self, rows: RowFile, caller: str) -> Floats:
        """See ``Engine``."""
        return as_floats(rows[:])
