"""Steps whose inner state belongs to a version of scikit-learn: imputers and encoders.

What they have learned is stored: statistics, categories. To restore one, it is fitted to a few rows
made up for the purpose, so that the installed version builds its own inner state, and then gets
what was stored. Time and memory are those of MOST_CELLS made-up cells at most.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from latentmetric.persistence.cells import (
    Array,
    Arrays,
    values_as_json,
    values_from_json,
)
from latentmetric.persistence.model_file import ModelFileError

MOST_CELLS = 2**22
"""Categories of the longest column times columns, which an encoder is restored from."""

IMPUTED_KINDS = ("float16", "float32", "float64", "object", *(f"int{n}" for n in (8, 16, 32, 64)),
                 *(f"uint{n}" for n in (8, 16, 32, 64)))  # fmt: skip
"""The dtypes of rows that an imputer can have been fitted to."""


def packed_imputer(step: Any, arrays: Arrays) -> dict[str, Any]:
    """What a ``SimpleImputer`` has learned."""
    indicator = step.indicator_
    return {
        "fitted_to": step._fit_dtype.name,
        "statistics": values_as_json(step.statistics_, "statistics", arrays),
        "indicated": None if indicator is None else [int(n) for n in indicator.features_],
    }


def restore_imputer(step: Any, n_features: int, stored: dict[str, Any], arrays: Arrays) -> int:
    """Give an imputer what ``packed_imputer`` stored; return how many features it gives."""
    statistics = values_from_json(stored.get("statistics"), arrays)
    if statistics.shape != (n_features,):
        raise ModelFileError(
            f"an imputer has statistics of shape {statistics.shape} for {n_features} features"
        )
    empty = np.array([value != value for value in statistics], dtype=bool)
    if stored.get("fitted_to") not in IMPUTED_KINDS:
        raise ModelFileError("an imputer was fitted to values of an unknown dtype")
    indicated = stored.get("indicated")
    if (indicated is not None) != step.add_indicator:
        raise ModelFileError("an imputer does not say which missing values it indicates")
    columns = _columns(indicated or [], n_features)
    missing = np.zeros((2, n_features), dtype=bool)
    missing[1, columns] = missing[:, empty] = True
    _fit_to_mask(step, missing, np.dtype(stored["fitted_to"]))
    if step.add_indicator and step.indicator_.features_.tolist() != columns:
        raise ModelFileError("an imputer indicates other missing values than it has met")
    step.statistics_ = statistics
    kept = n_features if step.keep_empty_features else int((~empty).sum())
    return kept + len(columns)


def _columns(numbers: Any, n_features: int) -> list[int]:
    if not isinstance(numbers, list) or not all(
        type(number) is int and 0 <= number < n_features for number in numbers
    ):
        raise ModelFileError(f"the columns of a step are not numbers below {n_features}")
    return numbers


def _fit_to_mask(step: Any, missing: Array, dtype: np.dtype[Any]) -> None:
    """Fit an imputer to rows that lack these cells; the other values do not matter."""
    words = ("a", "b") if dtype.kind == "O" else (1, 2)
    present = words[0] if step.missing_values != words[0] else words[1]
    rows = np.full(missing.shape, present, dtype=dtype)
    if missing.any():  # rows of integers cannot lack any
        rows[missing] = step.missing_values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that have no value at all
        step.fit(rows)


def packed_encoder(step: Any, arrays: Arrays) -> dict[str, Any]:
    """What a ``OneHotEncoder`` has learned."""
    grouped = getattr(step, "infrequent_categories_", None)
    pairs = zip(step.categories_, grouped or [], strict=grouped is not None)
    return {
        "categories": [values_as_json(known, "categories", arrays) for known in step.categories_],
        "infrequent": None if grouped is None else [_places(*pair) for pair in pairs],
    }


def _places(known: Array, seldom: Array | None) -> list[int]:
    """Where these categories are among those known; NaN is the same as NaN."""
    words = set() if seldom is None else set(map(repr, seldom.tolist()))
    return [place for place, word in enumerate(known.tolist()) if repr(word) in words]


def restore_encoder(step: Any, n_features: int, stored: dict[str, Any], arrays: Arrays) -> int:
    """Give an encoder what ``packed_encoder`` stored; return how many features it gives."""
    entries = stored.get("categories")
    if not isinstance(entries, list) or len(entries) != n_features or not n_features:
        raise ModelFileError(f"an encoder does not have categories for {n_features} features")
    categories = [values_from_json(entry, arrays) for entry in entries]
    for known in categories:
        _check_categories(known)
    longest = max(map(len, categories))
    if longest * n_features > MOST_CELLS:
        raise ModelFileError(
            f"an encoder has {n_features} features and up to {longest} categories of one; "
            f"a model file holds at most {MOST_CELLS} of both multiplied"
        )
    rare = stored.get("infrequent")
    rows = _rows_of(categories, rare)
    asked = {
        name: getattr(step, name) for name in ("categories", "min_frequency", "max_categories")
    }
    limits = {"min_frequency": None if rare is None else 2, "max_categories": None}
    step.set_params(categories=[list(known) for known in categories], **limits).fit(rows)
    width = int(step.transform(rows[:1]).shape[1])
    step.set_params(**asked)
    step.categories_ = categories
    return width


def _check_categories(known: Array) -> None:
    if known.ndim != 1 or not len(known):
        raise ModelFileError("an encoder has no categories for one of its features")
    is_number = known.dtype.kind in "biuf"
    if is_number and not np.array_equal(np.unique(known), known, equal_nan=known.dtype.kind == "f"):
        raise ModelFileError("the categories of an encoder are numbers, but not in ascending order")


def _rows_of(categories: list[Array], rare: Any) -> Array:
    """Rows in which each category occurs, twice or more unless it is infrequent."""
    n_features, longest = len(categories), max(map(len, categories))
    if rare is None:
        rare = [[]] * n_features
    if not isinstance(rare, list) or len(rare) != n_features:
        raise ModelFileError(f"an encoder does not have infrequent categories for {n_features}")
    rows = np.empty((2 * longest, n_features), dtype=object)
    for place, (known, seldom) in enumerate(zip(categories, rare, strict=True)):
        often = np.setdiff1d(np.arange(len(known)), _columns(seldom, len(known)))
        if not len(often):
            raise ModelFileError(
                f"every category of feature {place} is infrequent, which a model file cannot hold"
            )
        padding = np.full(len(rows) - len(known) - len(often), often[0])
        cells = known.tolist()
        numbers = np.concatenate((np.arange(len(known)), often, padding))
        rows[:, place] = [cells[number] for number in numbers]
    return rows
