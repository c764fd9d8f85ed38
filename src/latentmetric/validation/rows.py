"""The rules for rows of any container: two dimensions, finite numbers, none too large.

They are applied to shape, dtype and feature names before anything is read, and to the values block
by block (``as_floats``). Errors name the row and the column of a rejected value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_n_features, check_array

from latentmetric.core.types import Floats

DATES = ("date", "datetime", "time", "timedelta", "Timestamp", "Timedelta", "Period", "Interval")
"""The names of types of Python and pandas."""

NUMBERS_FROM_DATES = "turn dates into numbers first, such as days since the first one"


def check_numeric(X: Any) -> None:
    """Raise on what scikit-learn would refuse without advice, or turn into numbers: text, dates."""
    if issparse(X):
        raise TypeError(
            "sparse input is not supported: a learned metric is dense. "
            "Reduce it first, for example with sklearn.decomposition.TruncatedSVD."
        )
    check_complete(X, "X")
    text = _first_text(X)
    if text is not None:
        raise ValueError(
            f"X must hold a row of numbers for each text, got texts such as {text[:40]!r}; "
            "encode them first"
        )
    columns = X.columns if hasattr(X, "columns") and hasattr(X, "shape") else ()
    for name, values in [(name, X[name]) for name in columns] or [(None, X)]:
        if not hasattr(values, "dtype"):
            continue
        held = _not_a_number(np.asarray(values), is_column=name is not None)
        given = "X" if name is None else f"X[{name!r}]"
        if held == "array":
            raise ValueError(
                f"{given} holds an array in each row, but X must hold numbers; pass "
                f"np.stack({given})"
            )
        if held is not None:
            where = "" if name is None else f" in the column {name!r}"
            hint = "convert it first" if held == "text" else NUMBERS_FROM_DATES
            raise ValueError(f"X must hold numbers, got {held}{where}; {hint}")


def _first_text(X: Any) -> str | None:
    """The first of some texts; None if X is no text nor a list, array or column of texts."""
    if isinstance(X, str):
        return X
    is_array = isinstance(X, np.ndarray) and X.ndim == 1
    first = X[0] if (is_array or isinstance(X, list | tuple)) and len(X) else None
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 1 and len(X):
        first = X.iloc[0]
    return str(first) if isinstance(first, str) else None


def _not_a_number(values: np.ndarray[Any, Any], is_column: bool) -> str | None:
    """What values are that are not numbers: arrays, text, or a type of dates; None for others."""
    if is_column and values.ndim > 1:
        return "array"
    if values.dtype.kind in "mM":
        return str(values.dtype)
    if values.dtype.kind in "SUT":
        return "text"
    for value in values.ravel() if values.dtype.kind == "O" else ():
        if isinstance(value, list | tuple | np.ndarray) or type(value).__name__ == "Series":
            return "array"
        if isinstance(value, str | bytes):
            return "text"
        if type(value).__name__ in DATES:
            return type(value).__name__
    return None


def is_missing(value: Any) -> bool:
    """Whether an object stands for no value; pandas.NA cannot be compared."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def check_complete(values: Any, name: str) -> None:
    """Raise on a lazy frame of polars, which has no values yet, and on masked values."""
    if type(values).__name__ == "LazyFrame":
        raise TypeError(f"{name} is a LazyFrame, which has no values yet; pass {name}.collect()")
    if np.ma.is_masked(values):
        n_masked = int(np.ma.getmaskarray(values).sum())
        raise ValueError(
            f"{name} is a masked array: {n_masked:,} of its {values.size:,} values are masked; "
            f"replace them, as {name}.filled does, or remove their rows"
        )


def check_description(shape: tuple[int, ...], dtype: np.dtype[Any], min_rows: int) -> None:
    """Check the shape and dtype of rows that are not in memory, as scikit-learn checks arrays."""
    if dtype.kind not in "biuf":
        held = "text" if dtype.kind in "SUT" else dtype
        raise ValueError(f"X must hold numbers, got {held}; convert it first")
    few = np.zeros((min(shape[0], min_rows), *shape[1:]) if shape else (), dtype=dtype)
    check_array(few, ensure_min_samples=min_rows, input_name="X")


def check_features(
    estimator: Any, n_features: int, names: Sequence[str] | None, *, reset: bool
) -> None:
    """Set the estimator's feature attributes or compare with them, as ``validate_data`` does."""
    _check_n_features(estimator, np.empty((0, n_features)), reset=reset)
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    known = getattr(estimator, "feature_names_in_", None)
    if names is None or known is None or list(names) == known.tolist():
        return
    index = next(index for index, name in enumerate(known.tolist()) if names[index] != name)
    raise ValueError(
        "The feature names should match those that were passed during fit: feature "
        f"{index} (counted from 0) is {names[index]!r}, but was {known[index]!r}"
    )


def float_dtypes(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
    """The dtypes to compute in, in the order to try them: float32 can be widened to float64."""
    widened = np.result_type(dtype, np.float32)
    double = np.dtype(np.float64)
    return (double,) if widened.itemsize >= double.itemsize else (widened, double)


def as_floats(
    rows: np.ndarray[Any, Any], start: int = 0, names: Sequence[Any] | None = None
) -> Floats:
    """Rows in the first float dtype that has room for them; raise on values that are not finite.

    ``start`` is the number of the first row among all of the caller's rows, ``names`` are those of
    their columns, if they have any.
    """
    first = float_dtypes(rows.dtype)[0]
    if has_room(rows, first):  # neither NaN nor infinity has
        return rows.astype(first, copy=False)
    check_finite(rows, start, names)
    return rows.astype(np.float64)


def check_finite(
    rows: np.ndarray[Any, Any], start: int = 0, names: Sequence[Any] | None = None
) -> None:
    """Raise on NaN, infinity and values too large even for float64; see ``as_floats``."""
    index = first_not_finite(rows)
    if index is not None:
        what = "NaN" if np.isnan(rows[index]) else "infinity"
    elif has_room(rows, np.dtype(np.float64)):
        return
    else:
        row, column = np.unravel_index(np.argmax(np.abs(rows)), rows.shape)
        index = int(row), int(column)
        what = f"{rows[index]!s}, which is too large to compute with"
    where = f"row {start + index[0]}, column {index[1]} (counted from 0)"
    if names is not None:
        where = f"row {start + index[0]} (counted from 0), column {names[index[1]]!r}"
    raise ValueError(f"Input X contains {what}: {where}; fill or rescale it, or remove the row")


def has_room(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> bool:
    """Whether sums and differences of a few of these values cannot overflow; NaN has no room."""
    if not values.size:
        return True
    most = float(np.finfo(dtype).max) / 8
    with np.errstate(invalid="ignore"):
        return -most <= float(values.min()) and float(values.max()) <= most


def first_not_finite(
    rows: np.ndarray[Any, Any], but_missing: bool = False
) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity; ``but_missing`` of the first infinity."""
    if rows.dtype.kind != "f":
        return None
    bad = np.argwhere(np.isinf(rows) if but_missing else ~np.isfinite(rows))
    return (int(bad[0][0]), int(bad[0][1])) if len(bad) else None
