"""The rules for rows of any container: two dimensions, finite numbers, none too large.

They are applied to shape, dtype and feature names before anything is read, and to the values block
by block (``as_floats``). Errors name the row and the column of a rejected value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_n_features, check_array

from latentmetric.core.types import Floats

NUMBERS_FROM_DATES = "turn dates into numbers first, such as days since the first one"

LISTS = ("list", "array")
"""How data types of columns begin that hold an array in each row, in lower case."""


def check_numeric(X: Any) -> None:
    """Raise on what scikit-learn would refuse without advice, or turn into numbers: text, dates."""
    if issparse(X):
        raise TypeError(
            "sparse input is not supported: a learned metric is dense. "
            "Reduce it first, for example with sklearn.decomposition.TruncatedSVD."
        )
    check_collected(X, "X")
    check_unmasked(X, "X")
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "SUTmM" or (X.dtype.kind == "O" and _holds_text(X.ravel())):
            held = "text among its objects" if X.dtype.kind == "O" else _name_of(X.dtype)
            raise ValueError(f"X must hold numbers, got {held}; convert it first")
        if X.dtype.kind == "O" and _holds_arrays(X.ravel()):
            raise _to_be_stacked("X")
    elif hasattr(X, "columns") and hasattr(X, "shape"):
        for name in X.columns:
            dtype = str(getattr(X[name], "dtype", "")).lower()
            of_objects = dtype.startswith(("object", "categor", "enum"))
            is_text = dtype.startswith("str") or (of_objects and _holds_text(X[name]))
            if is_text or dtype.startswith(("date", "time", "duration", "interval", "period")):
                held = "text" if is_text else dtype
                hint = f"; {NUMBERS_FROM_DATES}" if dtype.startswith("date") else ""
                raise ValueError(f"X must hold numbers, got {held} in the column {name!r}{hint}")
            if dtype.startswith(LISTS) or (of_objects and _holds_arrays(X[name])):
                raise _to_be_stacked(f"X[{name!r}]")
    elif len(getattr(X, "shape", ())) == 1:  # a column alone
        dtype = str(getattr(X, "dtype", "")).lower()
        if dtype.startswith(LISTS) or (dtype == "object" and _holds_arrays(X)):
            raise _to_be_stacked("X")


def check_collected(values: Any, name: str) -> None:
    """Raise on a lazy frame of polars, which has no values yet."""
    if type(values).__name__ == "LazyFrame":
        raise TypeError(f"{name} is a LazyFrame, which has no values yet; pass {name}.collect()")


def check_unmasked(values: Any, name: str) -> None:
    """Raise if a masked array holds masked values, which scikit-learn would take as they are."""
    if np.ma.is_masked(values):
        n_masked = int(np.ma.getmaskarray(values).sum())
        raise ValueError(
            f"{name} is a masked array: {n_masked:,} of its {values.size:,} values are masked; "
            f"replace them, as {name}.filled does, or remove their rows"
        )


def _name_of(dtype: np.dtype[Any]) -> str:
    return "text" if dtype.kind in "SUT" else str(dtype)


def _holds_text(values: Iterable[Any]) -> bool:
    return any(isinstance(value, str | bytes) for value in values)


def _holds_arrays(values: Iterable[Any]) -> bool:
    return any(isinstance(value, list | tuple | np.ndarray) for value in values)


def _to_be_stacked(values: str) -> ValueError:
    return ValueError(
        f"{values} holds an array in each row, but X must hold numbers; pass np.stack({values})"
    )


def check_description(shape: tuple[int, ...], dtype: np.dtype[Any], min_rows: int) -> None:
    """Check the shape and dtype of rows that are not in memory, as scikit-learn checks arrays."""
    if dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, got {_name_of(dtype)}; convert it first")
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
    fault = first_fault(rows)
    if fault is not None:
        raise fault.error(start, names)
    return rows.astype(np.float64)


@dataclass(frozen=True)
class Fault:
    """A value that cannot be computed with."""

    row: int
    column: int
    what: str

    def error(self, start: int, names: Sequence[Any] | None = None) -> ValueError:
        """The error to raise; see ``as_floats``."""
        row = start + self.row
        where = f"row {row}, column {self.column} (counted from 0)"
        if names is not None:
            where = f"row {row} (counted from 0), column {names[self.column]!r}"
        return ValueError(
            f"Input X contains {self.what}: {where}; fill or rescale it, or remove the row"
        )


def first_fault(rows: np.ndarray[Any, Any]) -> Fault | None:
    """The first NaN or infinity; else the largest value, if it is too large even for float64."""
    index = first_not_finite(rows)
    if index is not None:
        return Fault(*index, "NaN" if np.isnan(rows[index]) else "infinity")
    if has_room(rows, np.dtype(np.float64)):
        return None
    row, column = np.unravel_index(np.argmax(np.abs(rows)), rows.shape)
    what = f"{rows[row, column]!s}, which is too large to compute with"
    return Fault(int(row), int(column), what)


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
