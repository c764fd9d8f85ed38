"""Rows back in the units that the caller gave: the steps of a pipeline undone, last to first.

Latent examples are where the last step puts rows. Not every step can be undone: the length of a row
is lost in a ``Normalizer``, and a column that was left out is unknown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from latentmetric.validation.pipelines import SplitPipeline, fitted_columns

Array = np.ndarray[Any, Any]


class NotInvertibleError(ValueError):
    """A step has lost what it would take to go back."""


def to_input_units(piped: SplitPipeline, rows: Array) -> Array:
    """Rows as the caller would have given them; raise ``NotInvertibleError`` if a step forbids it.

    Features that the steps leave out are NaN. The array holds objects where a feature is a word.
    """
    if piped.steps is None:
        return rows
    return _inverted(piped.steps, "", rows)


def _inverted(step: Any, path: str, rows: Array) -> Array:
    if step is None or isinstance(step, str):
        return rows
    if isinstance(step, Pipeline):
        for name, inner in reversed(step.steps):
            rows = _inverted(inner, f"{path}/{name}".lstrip("/"), rows)
        return rows
    if hasattr(step, "transformers_"):
        return _inverted_columns(step, path, rows)
    if hasattr(step, "statistics_"):  # an imputer, which changes only missing values
        given = getattr(step, "feature_names_in_", [f"x{i}" for i in range(step.n_features_in_)])
        if list(step.get_feature_names_out()) != list(given):
            raise NotInvertibleError(
                f"the step {path!r} adds or leaves out columns and cannot be undone"
            )
        return rows
    if getattr(step, "drop", None) is not None or hasattr(step, "infrequent_categories_"):
        raise NotInvertibleError(
            f"the step {path!r} drops or groups categories and cannot be undone"
        )
    if not hasattr(step, "inverse_transform"):
        raise NotInvertibleError(f"the step {path!r}, a {type(step).__name__}, cannot be undone")
    undone: Array = np.asarray(step.inverse_transform(rows.astype(np.float64)))
    return undone if undone.dtype.kind in "UO" else undone.astype(np.float64, copy=False)


def _inverted_columns(step: Any, path: str, rows: Array) -> Array:
    parts: list[tuple[list[int], Array]] = []
    for name, held, indices in fitted_columns(step):
        if isinstance(held, str) and held == "drop":
            continue
        given = rows[:, step.output_indices_[name]]
        given = given / (step.transformer_weights or {}).get(name, 1.0)
        parts.append((indices, _inverted(held, f"{path}/{name}", given)))
    are_words = any(part.dtype.kind in "UO" for _, part in parts)
    undone = np.full(
        (len(rows), step.n_features_in_), np.nan, dtype=object if are_words else np.float64
    )
    for indices, part in parts:
        undone[:, indices] = part
    return undone
