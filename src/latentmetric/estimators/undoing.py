"""Rows back in the units that the caller gave: the steps of a pipeline undone, last to first.

Latent examples are where the last step puts rows. Not every step can be undone: the length of a row
is lost in a ``Normalizer``, and a column that was left out is unknown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.validation.pipelines import Piped, fitted_columns

Array = np.ndarray[Any, Any]

INVERTIBLE = ("StandardScaler", "MinMaxScaler", "RobustScaler", "PCA", "TruncatedSVD")
"""Steps that have an inverse of their own."""


class CannotUndoError(ValueError):
    """A step has lost what it would take to go back."""


def in_given_units(piped: Piped, rows: Array) -> Array:
    """Rows as the caller would have given them; raise ``CannotUndoError`` if a step forbids it.

    Features that the steps leave out are NaN. The array holds objects where a feature is a word.
    """
    if piped.steps is None:
        return rows
    return _undone(piped.steps, "", rows)


def _undone(step: Any, path: str, rows: Array) -> Array:
    if step is None or isinstance(step, str):
        return rows
    kind = type(step).__name__
    if kind == "Pipeline":
        for name, inner in reversed(step.steps):
            rows = _undone(inner, f"{path}/{name}".lstrip("/"), rows)
        return rows
    if kind == "ColumnTransformer":
        return _undone_columns(step, path, rows)
    if kind == "SimpleImputer":
        _check_imputer(step, path)
        return rows
    if kind == "OneHotEncoder":
        return _undone_encoder(step, path, rows)
    if kind in INVERTIBLE:
        undone: Array = np.asarray(step.inverse_transform(rows.astype(np.float64)))
        return undone
    raise CannotUndoError(f"the step {path!r}, a {kind}, cannot be undone")


def _check_imputer(step: Any, path: str) -> None:
    """An imputer gives rows as they are, unless it adds or leaves out columns."""
    is_empty = [value != value for value in step.statistics_]
    if step.add_indicator or (any(is_empty) and not step.keep_empty_features):
        raise CannotUndoError(f"the step {path!r} adds or leaves out columns and cannot be undone")


def _undone_encoder(step: Any, path: str, rows: Array) -> Array:
    """The category that each row has most of."""
    if step.drop is not None or hasattr(step, "infrequent_categories_"):
        raise CannotUndoError(f"the step {path!r} drops or groups categories and cannot be undone")
    columns, start = [], 0
    for known in step.categories_:
        shares = rows[:, start : start + len(known)].astype(np.float64)
        columns.append(known.astype(object)[shares.argmax(axis=1)])
        start += len(known)
    found = np.stack(columns, axis=1)
    are_words = any(known.dtype.kind in "UO" for known in step.categories_)
    return found if are_words else found.astype(np.float64)


def _undone_columns(step: Any, path: str, rows: Array) -> Array:
    parts: list[tuple[list[int], Array]] = []
    for name, held, places in fitted_columns(step):
        if isinstance(held, str) and held == "drop":
            continue
        given = rows[:, step.output_indices_[name]]
        given = given / (step.transformer_weights or {}).get(name, 1.0)
        parts.append((places, _undone(held, f"{path}/{name}", given)))
    dtype = object if any(part.dtype.kind == "O" for _, part in parts) else np.float64
    undone = np.full((len(rows), step.n_features_in_), np.nan, dtype=dtype)
    for places, part in parts:
        undone[:, places] = part
    return undone
