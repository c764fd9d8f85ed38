"""The caller's rows and labels, checked, and the columns that the metric sees."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.engines.dispatch import check_in_memory, in_this_process
from latentmetric.io.rows import RowFile
from latentmetric.validation.labels import checked_labels
from latentmetric.validation.pipelines import SplitPipeline
from latentmetric.viz.report.text import distinct, is_numeric, shown

Row = np.ndarray[Any, Any]


@dataclass(frozen=True)
class LabelledRows:
    """Rows with codes of classes the model knows."""

    rows: Floats
    """After the steps of a pipeline: what distances are measured between."""
    given: np.ndarray[Any, Any]
    """In the units that the caller gave; the same as ``rows`` without steps."""
    codes: Ints
    indices: Ints
    """The index of each row in the caller's array."""
    names: list[str] | None
    left_out: int
    """The number of the caller's rows whose labels the model does not know."""
    unknown_label: str = ""
    """One of the labels that the model does not know."""

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, row: int) -> str:
        """The name of a row, or its index in the caller's array."""
        return self.names[row] if self.names is not None else f"row {self.indices[row]:,}"

    @property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest number given; words and gaps are left out."""
        rows = self.given
        if rows.dtype.kind == "O":
            numbers = [value for value in rows.ravel() if is_numeric(value)]
            rows = np.array(numbers or [0.0], dtype=np.float64)
        known = rows[np.isfinite(rows)] if rows.dtype.kind == "f" else rows
        return float(known.min()), float(known.max())


def labelled(piped: SplitPipeline, X: Any, y: Any, names: Any, suffix: str = "") -> LabelledRows:
    """Rows and labels as the model knows them; rows of unknown classes are left out."""
    model = piped.estimator
    called_X, called_y = f"X{suffix}", f"y{suffix}"
    check_in_memory("a report", "compute() if it fits into memory", **{called_X: X, called_y: y})
    if piped.steps is not None:
        if piped.feature_names is not None and hasattr(X, "columns"):
            X = X[piped.feature_names]
        elif isinstance(X, RowFile):
            X = np.asarray(X)
    rows = in_this_process(piped.prepared(X), model, "a report")
    given = rows if piped.steps is None else np.asarray(X)
    labels = checked_labels(y, called_y)
    called_names = "train_names" if suffix else "row_names"
    for called, values in ((called_y, labels), (called_names, names)):
        if values is not None and len(values) != len(rows):
            raise ValueError(
                f"{called} has {len(values)} entries, but {called_X} has {len(rows)} rows"
            )
    code_of = {label: code for code, label in enumerate(model.classes_.tolist())}
    codes = np.array([code_of.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    indices = np.flatnonzero(codes >= 0)
    if not len(indices):
        raise ValueError(
            f"{called_y} holds none of the {len(model.classes_)} classes of the model: it has "
            f"{labels.tolist()[0]!r}, the model knows {model.classes_.tolist()[0]!r}"
        )
    all_known = len(indices) == len(rows)
    return LabelledRows(
        rows=rows if all_known else rows[indices],
        given=given if all_known else given[indices],
        codes=codes[indices],
        indices=indices,
        names=None if names is None else [shown(names[index], 160) for index in indices],
        left_out=len(rows) - len(indices),
        unknown_label="" if all_known else shown(labels[codes < 0][0]),
    )


@dataclass(frozen=True)
class Column:
    """A column after the steps of a pipeline."""

    name: str
    given: int | None
    """The index of the given column that it is made of; None if it is a mix of several."""


def columns_after(piped: SplitPipeline, names: list[str]) -> list[Column]:
    """The columns that the metric sees, in their order; ``names`` are those of the given ones."""
    if piped.steps is None:
        return [Column(name, index) for index, name in enumerate(names)]
    known = piped.feature_names or [f"x{index}" for index in range(len(names))]
    indices = {name: index for index, name in enumerate(known)}
    found = [
        _traced(made, names, indices) for made in piped.steps.get_feature_names_out(known).tolist()
    ]
    unique = distinct(column.name for column in found)
    return [Column(name, column.given) for name, column in zip(unique, found, strict=True)]


def _traced(made: str, names: list[str], indices: dict[str, int]) -> Column:
    """The column behind a name that scikit-learn made, such as ``step__color_red``."""
    for start in [0, *(found.end() for found in re.finditer("__", made))]:
        rest = made[start:].removeprefix("missingindicator_")
        ends = [len(rest), *(found.start() for found in re.finditer("_", rest))]
        for end in sorted(ends, reverse=True):
            index = indices.get(rest[:end])
            if index is None:
                continue
            if len(rest) < len(made) - start:
                return Column(f"{names[index]} is missing", index)
            value = f" = {rest[end + 1 :]}" if end < len(rest) else ""
            return Column(names[index] + value, index)
    return Column(made, None)
