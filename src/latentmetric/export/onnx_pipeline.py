"""The steps of a pipeline as an ONNX graph, converted by skl2onnx."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from latentmetric.validation.pipelines import WORDS, SplitPipeline, column_indices


def convert_steps(piped: SplitPipeline, dtype: np.dtype[Any], opset: dict[str, int]) -> Any:
    """The graph of a pipeline's steps, whose rows come in this dtype.

    One input, ``features``, has all columns; if some hold words, each column is an input. Steps are
    converted one by one: skl2onnx takes columns by index only where their number is known.
    """
    from onnx import compose, helper

    try:
        (_, first), *others = _convertible(piped.steps).steps
        graph = _converted(first, _inputs(piped, dtype), opset)
        for number, (_, step) in enumerate(others):
            given = helper.tensor_dtype_to_np_dtype(graph.output[0].type.tensor_type.elem_type)
            part = _converted(step, [("rows", _tensor(given, step.n_features_in_))], opset)
            part = compose.add_prefix_graph(part, f"step_{number}_")
            joints = [(graph.output[0].name, part.input[0].name)]
            graph = compose.merge_graphs(graph, part, joints)
    except Exception as error:
        raise ValueError(
            f"the steps of this pipeline cannot be converted to ONNX: {error}; fit it with another "
            "step, or use to_sklearn"
        ) from error
    return graph


def _convertible(step: Any) -> Any:
    """A copy of a fitted step as skl2onnx takes it: columns by their index, no word for a step."""
    if isinstance(step, Pipeline):
        steps = [(name, _convertible(inner)) for name, inner in step.steps if inner not in WORDS]
        return Pipeline(steps or [("identity", FunctionTransformer())])
    changed = copy(step)
    if hasattr(step, "transformers_"):
        changed.transformers_ = [
            (name, _convertible(inner), column_indices(columns, step))
            for name, inner, columns in step.transformers_
        ]
    if any(group is not None for group in getattr(step, "infrequent_categories_", [])):
        raise ValueError("a OneHotEncoder groups infrequent categories")
    if any(isinstance(value, str) for value in getattr(step, "statistics_", [])):
        raise ValueError("a SimpleImputer fills in words")
    if getattr(step, "handle_unknown", "error") != "error":
        changed.handle_unknown = "ignore"  # the same for "warn", and without infrequent categories
    return changed


def _inputs(piped: SplitPipeline, dtype: np.dtype[Any]) -> list[tuple[str, Any]]:
    n_features, words = piped.first.n_features_in_, piped.text_columns
    if not words:
        return [("features", _tensor(dtype, n_features))]
    names = piped.feature_names or [f"x{column}" for column in range(n_features)]
    return [
        (name, _tensor(np.dtype(str) if column in words else dtype, 1))
        for column, name in enumerate(names)
    ]


def _tensor(dtype: np.dtype[Any], n_columns: int) -> Any:
    from skl2onnx.common.data_types import guess_data_type

    return type(guess_data_type(np.zeros((1, 1), dtype))[0][1])([None, n_columns])


def _converted(step: Any, inputs: list[tuple[str, Any]], opset: dict[str, int]) -> Any:
    """The graph of a fitted step."""
    from skl2onnx import convert_sklearn

    converters = {SimpleImputer: _convert_imputer, Normalizer: _convert_normalizer}
    return convert_sklearn(
        step,
        initial_types=inputs,
        target_opset=opset,
        custom_conversion_functions=converters,
        custom_shape_calculators=dict.fromkeys(converters, _set_output_type),
    ).graph


# skl2onnx's own imputer takes only float32 and leaves out the indicator; its normalizer in float64
# divides rows of zeros by 0 and has no maximum norm.


def _set_output_type(operator: Any) -> None:
    n_columns = len(operator.raw_operator.get_feature_names_out())
    operator.outputs[0].type = type(operator.inputs[0].type)([None, n_columns])


def _convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    imputer, rows = operator.raw_operator, operator.inputs[0]
    add, dtype = _operators(operator, container)
    statistics, marker = imputer.statistics_.astype(dtype), imputer.missing_values
    is_nan = isinstance(marker, float) and np.isnan(marker)
    missing = add("IsNaN", rows) if is_nan else add("Equal", rows, np.array([marker], dtype))
    kept = np.flatnonzero(~np.isnan(statistics) | imputer.keep_empty_features)
    parts = [add("Gather", add("Where", missing, statistics, rows), kept, axis=1)]
    if imputer.add_indicator:
        marks = add("Where", missing, np.ones(1, dtype), np.zeros(1, dtype))
        parts.append(add("Gather", marks, imputer.indicator_.features_.astype(np.int64), axis=1))
    add("Concat", *parts, axis=1, output_names=operator.outputs).add_to(scope, container)


def _convert_normalizer(scope: Any, operator: Any, container: Any) -> None:
    norm, rows = operator.raw_operator.norm, operator.inputs[0]
    add, dtype = _operators(operator, container)
    operation = {"l1": "ReduceL1", "l2": "ReduceL2", "max": "ReduceMax"}[norm]
    norms = add(operation, add("Abs", rows), np.array([1]), keepdims=1)
    tiny = add("Less", norms, np.array([10 * np.finfo(dtype).eps], dtype))  # as in scikit-learn
    divisors = add("Where", tiny, np.ones(1, dtype), norms)
    add("Div", rows, divisors, output_names=operator.outputs).add_to(scope, container)


def _operators(operator: Any, container: Any) -> tuple[Callable[..., Any], Any]:
    """A function that makes an operator of ONNX, and the dtype of the rows."""
    from skl2onnx.algebra import onnx_ops
    from skl2onnx.common.data_types import guess_numpy_type

    def add(name: str, *inputs: Any, **attributes: Any) -> Any:
        make = getattr(onnx_ops, f"Onnx{name}")
        return make(*inputs, op_version=container.target_opset, **attributes)

    return add, guess_numpy_type(operator.inputs[0].type)
