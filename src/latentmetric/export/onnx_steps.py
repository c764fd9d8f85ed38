"""The steps of a pipeline as ONNX operators, which come before those of the model.

All of them are computed in the dtype of the model. A run of n rows takes memory O(n·c) for an
encoder of c categories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from latentmetric.validation.pipelines import Piped, fitted_columns

Dtype = np.dtype[Any]


class Graph(Protocol):
    """The graph under construction; values are referred to by name."""

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Add a constant; return its name."""
        ...

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operator; return the name of its result."""
        ...

    def cast(self, values: str, dtype: Any) -> str:
        """The values in another dtype."""
        ...


REPEATED = ("infrequent_if_exist", "warn")
"""What an encoder may do with unknown categories that a graph cannot."""


def check_steps(piped: Piped) -> None:
    """Refuse, before any work, steps that take something else than numbers."""
    if piped.text_columns:
        place = piped.text_columns[0]
        names = piped.feature_names
        named = f"feature {place}" if names is None else f"the feature {names[place]!r}"
        raise ValueError(
            f"{named} holds words, but an ONNX graph of this package takes numbers; encode words "
            "before the pipeline, or use to_sklearn"
        )


def add_step(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    """Add the operators of a fitted step; return the name of what it gives."""
    if step is None or isinstance(step, str):
        return rows
    return ADDERS[type(step).__name__](graph, step, rows, dtype)


def _add_pipeline(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    for _, inner in step.steps:
        rows = add_step(graph, inner, rows, dtype)
    return rows


def _add_standard(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    if step.with_mean:
        rows = graph.add("Sub", rows, graph.constant(step.mean_, dtype))
    return graph.add("Div", rows, graph.constant(step.scale_, dtype)) if step.with_std else rows


def _add_robust(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    if step.with_centering:
        rows = graph.add("Sub", rows, graph.constant(step.center_, dtype))
    return graph.add("Div", rows, graph.constant(step.scale_, dtype)) if step.with_scaling else rows


def _add_min_max(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    rows = graph.add("Mul", rows, graph.constant(step.scale_, dtype))
    rows = graph.add("Add", rows, graph.constant(step.min_, dtype))
    if not step.clip:
        return rows
    low, high = (graph.constant(end, dtype) for end in step.feature_range)
    return graph.add("Min", graph.add("Max", rows, low), high)


def _add_normalizer(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    axis = graph.constant([1], np.int64)
    if step.norm == "max":
        norms = graph.add("ReduceMax", graph.add("Abs", rows), axis, keepdims=1)
    else:
        operator = {"l1": "ReduceL1", "l2": "ReduceL2"}[step.norm]
        norms = graph.add(operator, rows, axis, keepdims=1)
    # A row of zeros, or nearly so, stays as it is.
    tiny = graph.add("Less", norms, graph.constant(10 * np.finfo(dtype).eps, dtype))
    return graph.add("Div", rows, graph.add("Where", tiny, graph.constant(1.0, dtype), norms))


def _add_pca(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    rows = graph.add("Sub", rows, graph.constant(step.mean_, dtype))
    components = step.components_
    if step.whiten:
        deviations = np.sqrt(step.explained_variance_)
        least = np.finfo(deviations.dtype).eps
        components = components / np.maximum(deviations, least)[:, None]
    return graph.add("MatMul", rows, graph.constant(components.T, dtype))


def _add_svd(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    return graph.add("MatMul", rows, graph.constant(step.components_.T, dtype))


def _add_imputer(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    statistics = np.array(step.statistics_, dtype=np.float64)
    missing = _missing(graph, step.missing_values, rows, dtype)
    kept = np.flatnonzero(~np.isnan(statistics) | step.keep_empty_features)
    filled = graph.add("Where", missing, graph.constant(statistics, dtype), rows)
    parts = [_some(graph, filled, kept)]
    if step.add_indicator:
        marks = _some(graph, graph.cast(missing, dtype), step.indicator_.features_)
        parts.append(marks)
    return graph.add("Concat", *parts, axis=1)


def _missing(graph: Graph, marker: Any, rows: str, dtype: Dtype) -> str:
    if isinstance(marker, float) and np.isnan(marker):
        return graph.add("IsNaN", rows)
    return graph.add("Equal", rows, graph.constant(marker, dtype))


def _add_encoder(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    if step.handle_unknown in REPEATED:
        raise ValueError(
            f"a OneHotEncoder with handle_unknown={step.handle_unknown!r} cannot be exported to "
            "ONNX; fit it with handle_unknown='ignore'"
        )
    first = np.array([known[0] for known in step.categories_], dtype=np.float64)
    parts, start = [], 0
    for place, known in enumerate(step.categories_):
        numbers = known.astype(np.float64)
        if np.isnan(numbers).any():
            raise ValueError(
                f"a OneHotEncoder has NaN among the categories of feature {place}, which an ONNX "
                "graph cannot tell from others; impute it first"
            )
        column = _some(graph, rows, np.array([place]))
        found = graph.cast(graph.add("Equal", column, graph.constant(numbers[None], dtype)), dtype)
        given, start = _given_by(step, first, place, numbers, start)
        if given.shape[1]:
            parts.append(graph.add("MatMul", found, graph.constant(given, dtype)))
    return graph.add("Concat", *parts, axis=1)


def _given_by(step: Any, first: Any, place: int, numbers: Any, start: int) -> tuple[Any, int]:
    """What an encoder gives for each category of a feature, and where its next feature begins.

    Categories may be dropped or grouped, so the encoder itself is asked.
    """
    rows = np.repeat(first[None], len(numbers), axis=0)
    rows[:, place] = numbers
    given = step.transform(rows)
    given = given.toarray() if hasattr(given, "toarray") else np.asarray(given)
    stop = start + _n_given(step, place)
    return given[:, start:stop], stop


def _n_given(step: Any, place: int) -> int:
    """How many features an encoder gives for one of its features."""
    grouped = getattr(step, "infrequent_categories_", {place: None})[place]
    fewer = 0 if grouped is None else len(grouped) - 1
    is_dropped = step.drop_idx_ is not None and step.drop_idx_[place] is not None
    return len(step.categories_[place]) - fewer - is_dropped


def _add_columns(graph: Graph, step: Any, rows: str, dtype: Dtype) -> str:
    weights = step.transformer_weights or {}
    parts = []
    for name, held, places in fitted_columns(step):
        if isinstance(held, str) and held == "drop":
            continue
        part = add_step(graph, held, _some(graph, rows, np.array(places)), dtype)
        if weights.get(name) is not None:
            part = graph.add("Mul", part, graph.constant(weights[name], dtype))
        parts.append(part)
    return graph.add("Concat", *parts, axis=1)


def _some(graph: Graph, rows: str, places: Any) -> str:
    """Some of the columns."""
    return graph.add("Gather", rows, graph.constant(places, np.int64), axis=1)


ADDERS: dict[str, Callable[[Any, Any, str, Dtype], str]] = {
    "ColumnTransformer": _add_columns,
    "MinMaxScaler": _add_min_max,
    "Normalizer": _add_normalizer,
    "OneHotEncoder": _add_encoder,
    "PCA": _add_pca,
    "Pipeline": _add_pipeline,
    "RobustScaler": _add_robust,
    "SimpleImputer": _add_imputer,
    "StandardScaler": _add_standard,
    "TruncatedSVD": _add_svd,
}
"""The operators of each step of ``validation.pipelines.STEPS``."""
