"""Rows in files and memory maps: read block by block, and in one pass to sort them by class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.population import LocalPopulation
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.memory import coded
from latentmetric.engines.protocol import Partition, Progress
from latentmetric.engines.sorting import sorted_by_class
from latentmetric.io.rows import RowFile, as_row_file, is_lazy
from latentmetric.validation.features import check_features, remember_features
from latentmetric.validation.rows import as_floats, check_description, float_dtypes
from latentmetric.validation.weights import RowWeights, row_weights


@dataclass(frozen=True)
class LabelledFile:
    """Rows in a file, with their codes."""

    in_process: ClassVar[bool] = True
    file: RowFile
    codes: Ints
    classes: np.ndarray[Any, Any]
    weights: RowWeights | None = None

    def weighed(self, sample_weight: Any, class_weight: Any) -> LabelledFile:
        """See ``LabelledRows``."""
        weights = row_weights(sample_weight, class_weight, self.codes, self.classes)
        return replace(self, weights=weights)

    def partition(self, n_threads: int, progress: Progress) -> Partition:
        """See ``LabelledRows``; reads the file once, or again if values need more than float32."""
        for dtype in float_dtypes(self.file.dtype):
            try:
                rows, order = sorted_by_class(
                    self.file, self.codes, dtype, partial(_in_dtype, dtype=dtype), progress
                )
            except _NoRoomError:
                continue
            break
        codes = self.codes[order]
        weights = None if self.weights is None else self.weights.sorted(order)
        of_rows = None if weights is None else weights.of_rows
        population = LocalPopulation.of(rows, codes, n_threads, of_rows)
        return Partition(population, rows, codes, order, weights)

    def in_memory(self, caller: str) -> tuple[Floats, Ints]:
        """See ``LabelledRows``."""
        return as_floats(self.file[:]), self.codes


class FileEngine:
    """Row files and memory maps, which are read instead of mapped."""

    in_process = True

    def holds(self, X: Any) -> bool:
        """See ``Engine``."""
        return is_lazy(X)

    def admit(self, X: Any, estimator: Any, *, training: bool) -> RowFile:
        """See ``Engine``."""
        check_description(X.shape, np.dtype(X.dtype), 2 if training else 1)
        names = getattr(X, "feature_names", None)
        note = remember_features if training else check_features
        note(estimator, int(X.shape[1]), names)
        return as_row_file(X)

    def labelled(self, rows: RowFile, y: Any, owner: str) -> LabelledFile:
        """See ``Engine``."""
        classes, codes = coded(len(rows), y, owner)
        return LabelledFile(rows, codes, classes)

    def answer(
        self, rows: RowFile, estimator: Any, method: str, dtype: Any, width: int | None,
        **keywords: Any,
    ) -> Any:  # fmt: skip
        """See ``Engine``; only one block at a time is in memory."""
        found = [
            getattr(estimator, method)(as_floats(rows[block], block.start), block.start, **keywords)
            for block in row_blocks(len(rows), rows.shape[1] * rows.dtype.itemsize // 8)
        ]
        return np.concatenate(found)

    def gather(self, rows: RowFile, caller: str) -> Floats:
        """See ``Engine``."""
        return as_floats(rows[:])


class _NoRoomError(Exception):
    """A value is too large for this dtype, but not for a wider one."""


def _in_dtype(block: np.ndarray[Any, Any], start: int, dtype: np.dtype[Any]) -> Floats:
    floats = as_floats(block, start)
    if floats.dtype.itemsize > dtype.itemsize:
        raise _NoRoomError
    return floats.astype(dtype, copy=False)
