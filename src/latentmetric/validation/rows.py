"""The rules for rows of any container: two dimensions, finite numbers, none too large.

They are applied to shape and dtype before anything is read (``check_description``), and to the
values block by block (``as_floats``). Errors name the row and the column of a rejected value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from latentmetric.core.types import Floats

DTypes = tuple[np.dtype[Any], ...]


def refuse_sparse(X: Any) -> None:
    """Raise on a sparse matrix."""
    if issparse(X):
        raise TypeError(
            "sparse input is not supported: a learned metric is dense. "
            "Reduce it first, for example with sklearn.decomposition.TruncatedSVD."
        )


def check_description(shape: tuple[int, ...], dtype: np.dtype[Any], min_rows: int) -> None:
    """Check the shape and dtype of rows that are not in memory, as scikit-learn checks arrays."""
    if dtype.kind == "O":
        raise ValueError(
            "X must hold numbers, got Python objects, whose values are not known until they are "
            "read; convert it, for example with X.astype(float)"
        )
    few = np.zeros((min(shape[0], min_rows), *shape[1:]) if shape else (), dtype=dtype)
    check_array(few, dtype="numeric", ensure_min_samples=min_rows, input_name="X")
    check_number_dtype(dtype, None)


def refuse_what_is_no_number(X: Any) -> None:
    """Raise on cells that scikit-learn would turn into numbers although they are none.

    Text that looks like a number, dates in a frame beside numbers, masked cells.
    """
    if isinstance(X, np.ndarray):
        if np.ma.is_masked(X):
            raise ValueError("X has masked cells, which are missing; fill them, or drop the rows")
        if X.dtype.kind == "O" and _holds_text(X.ravel()):
            raise ValueError("X must hold numbers, got text among its objects; convert it first")
        return
    for name, dtype, column in _columns(X):
        text = dtype.startswith(("str", "utf8")) or (dtype == "object" and _holds_text(column))
        if text or dtype.startswith(("date", "time", "duration", "interval", "period")):
            held = "text" if text else dtype
            raise ValueError(f"X must hold numbers, got {held} in the column {name!r}")


def _columns(X: Any) -> Iterator[tuple[Any, str, Any]]:
    """Name, dtype and values of each column of a frame of pandas or polars."""
    if type(X).__module__.split(".")[0] == "polars":
        if type(X).__name__ == "LazyFrame":
            raise TypeError("X is a LazyFrame; pass X.collect()")
        columns = [(name, X[name]) for name in X.columns]
    elif hasattr(X, "iloc") and hasattr(X, "columns"):
        columns = [(name, X.iloc[:, place]) for place, name in enumerate(X.columns)]
    else:
        return
    twice = [name for name, count in Counter(name for name, _ in columns).items() if count > 1]
    if twice:
        raise ValueError(f"X has several columns {twice[0]!r}; give each a name of its own")
    if not columns:
        raise ValueError(f"X has 0 feature(s) (shape={X.shape}), but at least 1 is required")
    for name, column in columns:
        yield name, str(column.dtype).lower(), column


def _holds_text(values: Any) -> bool:
    return any(isinstance(value, str | bytes) for value in values)


def check_number_dtype(dtype: np.dtype[Any], X: Any) -> None:
    """Raise unless values of this dtype are numbers; ``X`` is what the caller passed."""
    if dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, {_not_numbers(dtype, X)}")


@contextmanager
def refusing_overflow() -> Iterator[None]:
    """Turn an ``OverflowError`` for numbers too large for a float into a ``ValueError``."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(f"X holds a number that is too large for a float: {error}") from error


def float_dtypes(dtype: np.dtype[Any]) -> DTypes:
    """The dtypes to compute in, in the order to try them: float32 can be widened to float64."""
    widened = np.result_type(dtype, np.float32)
    double = np.dtype(np.float64)
    return (double,) if widened.itemsize >= double.itemsize else (widened, double)


def as_floats(rows: np.ndarray[Any, Any], start: int = 0) -> Floats:
    """Rows in the first float dtype that has room for them; raise on values that are not finite.

    ``start`` is the number of the first row among all of the caller's rows.
    """
    first = float_dtypes(rows.dtype)[0]
    if has_room(rows, first):  # neither NaN nor infinity has
        return rows.astype(first, copy=False)
    fault = first_fault(rows)
    if fault is not None:
        raise fault.error(start)
    for dtype in float_dtypes(rows.dtype):
        with np.errstate(over="ignore"):
            floats: Floats = rows.astype(dtype, copy=False)
        if has_room(floats, dtype):
            break
    return floats


@dataclass(frozen=True)
class Fault:
    """A value that cannot be computed with."""

    row: int
    column: int
    what: str
    advice: str

    def error(self, start: int) -> ValueError:
        """The error to raise; ``start`` is the number of the first of the checked rows."""
        return ValueError(
            f"Input X contains {self.what}: row {start + self.row}, column {self.column} "
            f"(counted from 0); {self.advice}"
        )


def first_fault(rows: np.ndarray[Any, Any]) -> Fault | None:
    """The first NaN or infinity; else the largest value, if it is too large even for float64."""
    place = first_not_finite(rows)
    if place is not None:
        what = "NaN" if np.isnan(rows[place]) else "infinity"
        return Fault(*place, what, "fill it or remove the row")
    if has_room(rows, np.dtype(np.float64)):
        return None
    row, column = np.unravel_index(np.argmax(np.abs(rows)), rows.shape)
    what = f"{rows[row, column]!s}, which is too large to compute with"
    return Fault(int(row), int(column), what, "rescale the column or remove the row")


def has_room(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> bool:
    """Whether sums and differences of a few of these values cannot overflow; NaN has no room."""
    most = float(np.finfo(dtype).max) / 8
    if not values.size:
        return True
    with np.errstate(invalid="ignore"):
        return -most <= float(values.min()) and float(values.max()) <= most


def first_not_finite(
    rows: np.ndarray[Any, Any], but_missing: bool = False
) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity; ``but_missing`` of the first infinity."""
    if rows.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum(dtype=np.float64)):
            return None
    bad = np.argwhere(np.isinf(rows) if but_missing else ~np.isfinite(rows))
    return (int(bad[0][0]), int(bad[0][1])) if len(bad) else None


def _not_numbers(dtype: np.dtype[Any], X: Any) -> str:
    """What X holds instead of numbers; names the column if columns have their own dtypes."""
    kinds = getattr(X, "dtypes", None)
    if kinds is None or not hasattr(kinds, "items"):
        return f"got {dtype}"
    name, kind = next(
        ((name, kind) for name, kind in kinds.items() if getattr(kind, "kind", "O") not in "biuf"),
        (None, dtype),
    )
    return f"got {kind} in the column {name!r}"
