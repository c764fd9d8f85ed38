"""What callers give, as the algorithms take it: rows as floats, labels as they are.

What cannot be taken is refused with its row and column before any work is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse

from latentmetric.core.types import Floats, Ints


def sorted_classes(labels: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Ints]:
    """The different labels in order, and the number of each label among them."""
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(
            f"labels must be of one kind, but y holds {' and '.join(kinds)}; "
            "convert them, for example to strings"
        ) from error
    return classes, codes


def refuse_sparse(X: Any) -> None:
    if issparse(X):
        raise TypeError(
            "sparse input is not supported: a learned metric is dense. "
            "Reduce it first, for example with sklearn.decomposition.TruncatedSVD."
        )


@contextmanager
def no_overflow() -> Iterator[None]:
    """Integers and fractions beyond all floats are refused as other bad input is."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(f"X holds a number that no float holds: {error}") from error


def as_floats(rows: np.ndarray[Any, Any], X: Any) -> Floats:
    """float32 or float64, with room for differences of rows; ``X`` is what the caller gave."""
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, {_not_numbers(rows, X)}")
    for dtype in (float_dtype(rows.dtype), np.float64):
        with np.errstate(over="ignore"):
            floats: Floats = rows.astype(dtype, copy=False)
        if _has_room(floats):
            return floats
    row, column = np.unravel_index(np.argmax(np.abs(floats)), floats.shape)
    raise ValueError(
        f"X, row {row}, column {column} (counted from 0): {rows[row, column]!s} is too large to "
        "compute with; divide the column, or mark the cell as missing and fill it"
    )


def _has_room(rows: Floats) -> bool:
    """Whether differences and sums of a few values stay among the floats."""
    most = float(np.finfo(rows.dtype).max) / 8
    return float(rows.max()) <= most and float(rows.min()) >= -most


def _not_numbers(rows: np.ndarray[Any, Any], X: Any) -> str:
    """What there is instead, by column where columns have types of their own."""
    kinds = getattr(X, "dtypes", None)
    if kinds is None or not hasattr(kinds, "items"):
        return f"got {rows.dtype}"
    name, kind = next(
        ((name, kind) for name, kind in kinds.items() if getattr(kind, "kind", "O") not in "biuf"),
        (None, rows.dtype),
    )
    return f"got {kind} in the column {name!r}"


def plain_labels(y: Any) -> Any:
    """Nullable integers of pandas as plain ones: scikit-learn would round them to floats."""
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if plain is None or np.dtype(plain).kind not in "iub" or y.isna().any():
        return y
    return y.to_numpy(dtype=plain)


def is_of_kind(label: Any, classes: np.ndarray[Any, Any]) -> bool:
    """Whether a label is a number where the classes are, or a text where they are."""
    if classes.dtype.kind == "O":
        return isinstance(label, tuple({type(value) for value in classes.tolist()}))
    own = np.asarray(label)
    kinds = "US" if classes.dtype.kind in "US" else "biuf"
    return own.ndim == 0 and own.dtype.kind in kinds


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 and float64 as they are; else the smaller of them that holds the values."""
    widened = np.result_type(dtype, np.float32)
    return np.dtype(np.float64) if widened.itemsize > 8 else widened
