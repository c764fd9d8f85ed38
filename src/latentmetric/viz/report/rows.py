"""The caller's rows and labels, checked, and the columns that the metric sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.engines.dispatch import check_in_memory, in_this_process
from latentmetric.io.rows import is_lazy
from latentmetric.validation.labels import checked_labels
from latentmetric.validation.pipelines import SplitPipeline, fitted_columns
from latentmetric.viz.report.text import distinct, is_numeric, shown

Row = np.ndarray[Any, Any]


@dataclass(frozen=True)
class LabelledRows:
    """Rows with codes of classes the model knows."""

    kind: str
    """``row`` or ``original``; with an index, it identifies the picture of a row."""
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
        elif is_lazy(X):
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
        kind="original" if suffix else "row",
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


def columns_after(piped: SplitPipeline, names: list[str] | None, n_given: int) -> list[Column]:
    """The columns that the metric sees, in their order; ``names`` are those of the given ones."""
    if names is None:
        names = [f"feature {index:,}" for index in range(n_given)]
    given = [Column(name, index) for index, name in enumerate(names)]
    found = _traced(piped.steps, given)
    unique = distinct(column.name for column in found)
    return [Column(name, column.given) for name, column in zip(unique, found, strict=True)]


def _traced(step: Any, columns: list[Column]) -> list[Column]:
    """The columns that a step makes: scalers keep them, encoders multiply and PCA mixes them."""
    kind = type(step).__name__
    if kind == "Pipeline":
        for _, inner in step.steps:
            columns = _traced(inner, columns)
    elif kind == "ColumnTransformer":
        columns = [
            column
            for _, inner, indices in fitted_columns(step)
            if not (isinstance(inner, str) and inner == "drop")
            for column in _traced(inner, [columns[index] for index in indices])
        ]
    elif kind == "SimpleImputer":
        columns = _imputed(step, columns)
    elif kind == "OneHotEncoder":
        columns = _encoded(step, columns)
    elif kind in ("PCA", "TruncatedSVD"):
        columns = [Column(str(name), None) for name in step.get_feature_names_out()]
    return columns


def _imputed(step: Any, columns: list[Column]) -> list[Column]:
    """Columns without any number may be left out; columns that say what was missing come last."""
    kept = [
        column
        for column, filling in zip(columns, step.statistics_, strict=True)
        if filling == filling or step.keep_empty_features
    ]
    marked = [columns[index] for index in step.indicator_.features_] if step.add_indicator else []
    return kept + [Column(f"{column.name} is missing", column.given) for column in marked]


def _encoded(step: Any, columns: list[Column]) -> list[Column]:
    """A column for each category, or group of infrequent ones, that is not dropped."""
    prefixes = getattr(step, "feature_names_in_", [f"x{index}" for index in range(len(columns))])
    names = iter(step.get_feature_names_out())
    infrequent = getattr(step, "infrequent_categories_", None) or [None] * len(columns)
    found = []
    for index, (column, prefix) in enumerate(zip(columns, prefixes, strict=True)):
        rare = infrequent[index]
        dropped = step.drop_idx_ is not None and step.drop_idx_[index] is not None
        n_made = len(step.categories_[index]) - dropped
        n_made -= 0 if rare is None else len(rare) - 1
        for name in (str(next(names)) for _ in range(n_made)):
            found.append(Column(f"{column.name} = {name.removeprefix(f'{prefix}_')}", column.given))
    return found
