"""The caller's rows and labels, checked, with the names to show them by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.engines.admission import in_this_process, refuse_remote
from latentmetric.io.rows import is_lazy
from latentmetric.validation.labels import checked_labels
from latentmetric.validation.pipelines import Piped
from latentmetric.viz.report.markup import shown


@dataclass(frozen=True)
class LabelledRows:
    """Rows with codes of classes the model knows."""

    rows: Floats
    """After the steps of a pipeline: what distances are measured between."""
    given: np.ndarray[Any, Any]
    """In the units that the caller gave; the same as ``rows`` without steps."""
    codes: Ints
    numbers: Ints
    """The index of each row in the caller's array."""
    names: list[str] | None
    left_out: int
    """The number of the caller's rows whose labels the model does not know."""
    unknown_label: str = ""
    """One of the labels that the model does not know."""

    def __len__(self) -> int:
        return len(self.rows)


def labelled(
    piped: Piped, X: Any, y: Any, names: Any, called: tuple[str, str, str]
) -> LabelledRows:
    """Rows and labels as the model knows them; rows of unknown classes are left out."""
    model = piped.estimator
    refuse_remote("a report", "compute() if it fits into memory", **{called[0]: X, called[1]: y})
    if piped.steps is not None:
        X = _as_given(piped, X)
    rows = in_this_process(piped.prepared(X), model, "a report")
    given = rows if piped.steps is None else np.asarray(X)
    labels = checked_labels(y, called[1])
    _check_length(called[1], len(labels), called[0], len(rows))
    if names is not None:
        _check_length(called[2], len(names), called[0], len(rows))
    known, codes = _codes(model, labels)
    if not known.any():
        raise ValueError(
            f"{called[1]} holds none of the {len(model.classes_)} classes of the model: it has "
            f"{labels.tolist()[0]!r}, the model knows {model.classes_.tolist()[0]!r}"
        )
    numbers = np.flatnonzero(known)
    all_known = len(numbers) == len(rows)
    return LabelledRows(
        rows if all_known else rows[numbers],
        given if all_known else given[numbers],
        codes[numbers],
        numbers,
        None if names is None else [shown(names[number], 160) for number in numbers],
        len(rows) - len(numbers),
        "" if all_known else shown(labels[~known][0]),
    )


def _as_given(piped: Piped, X: Any) -> Any:
    """Rows in memory, with the columns that the steps were fitted with, in their order."""
    names = piped.feature_names
    if names is not None and hasattr(X, "columns"):
        return X[names]
    return np.asarray(X) if is_lazy(X) else X


def _check_length(name: str, length: int, of: str, expected: int) -> None:
    if length != expected:
        raise ValueError(f"{name} has {length} entries, but {of} has {expected} rows")


def _codes(model: Any, labels: Any) -> tuple[Any, Ints]:
    """Which labels the model knows, and the index of each in ``classes_``."""
    place = {label: code for code, label in enumerate(model.classes_.tolist())}
    codes = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    return codes >= 0, codes
