"""The steps of a pipeline as an ONNX graph, converted by skl2onnx."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from latentmetric.validation.pipelines import WORDS, Piped, column_places


def convert_steps(piped: Piped, dtype: np.dtype[Any], opset: dict[str, int]) -> Any:
    """The graph of a pipeline's steps, whose rows come in this dtype.

    One input, ``features``, has all columns; if some hold words, each column is an input.
    """
    from skl2onnx import convert_sklearn
    from skl2onnx.common import data_types

    numbers = getattr(data_types, {"f": "FloatTensorType", "d": "DoubleTensorType"}[dtype.char])
    n_features, words = piped.first.n_features_in_, piped.text_columns
    inputs = [("features", numbers([None, n_features]))]
    if words:
        names = piped.feature_names or [f"x{column}" for column in range(n_features)]
        inputs = [
            (name, (data_types.StringTensorType if column in words else numbers)([None, 1]))
            for column, name in enumerate(names)
        ]
    try:
        return convert_sklearn(
            _convertible(piped.steps),
            initial_types=inputs,
            target_opset=opset,
            custom_conversion_functions={SimpleImputer: _convert_imputer},
            custom_shape_calculators={SimpleImputer: _imputed_shape},
        ).graph
    except Exception as error:
        raise ValueError(
            f"the steps of this pipeline cannot be converted to ONNX: {error}; fit it with another "
            "step, or use to_sklearn"
        ) from error


def _convertible(step: Any) -> Any:
    """A copy of a fitted step as skl2onnx takes it: columns by their index, no word for a step."""
    if isinstance(step, Pipeline):
        steps = [(name, _convertible(inner)) for name, inner in step.steps if inner not in WORDS]
        return Pipeline(steps or [("identity", FunctionTransformer())])
    changed = copy(step)
    if hasattr(step, "transformers_"):
        changed.transformers_ = [
            (name, _convertible(inner), column_places(columns, step))
            for name, inner, columns in step.transformers_
        ]
    if any(group is not None for group in getattr(step, "infrequent_categories_", [])):
        raise ValueError("a OneHotEncoder groups infrequent categories")
    if getattr(step, "handle_unknown", "error") != "error":
        changed.handle_unknown = "ignore"  # the same for "warn", and without infrequent categories
    return changed


def _imputed_shape(operator: Any) -> None:
    n_features = len(operator.raw_operator.get_feature_names_out())
    operator.outputs[0].type = type(operator.inputs[0].type)([None, n_features])


def _convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """A SimpleImputer of numbers in any dtype and with its indicator, which skl2onnx has not."""
    from onnx import TensorProto
    from skl2onnx.common.data_types import guess_proto_type
    from skl2onnx.operator_converters.common import concatenate_variables

    imputer, kind = operator.raw_operator, guess_proto_type(operator.inputs[0].type)
    if kind == TensorProto.STRING:
        raise NotImplementedError("a SimpleImputer takes words")

    def constant(values: Any, kind: int) -> str:
        name: str = scope.get_unique_variable_name("constant")
        container.add_initializer(name, kind, np.shape(values), np.ravel(values))
        return name

    def add(operation: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        name = name or scope.get_unique_variable_name(operation)
        container.add_node(operation, list(inputs), name, **attributes)
        return name

    rows = concatenate_variables(scope, operator.inputs, container)
    statistics, marker = np.array(imputer.statistics_, dtype=float), imputer.missing_values
    is_nan = isinstance(marker, float) and np.isnan(marker)
    missing = add("IsNaN", rows) if is_nan else add("Equal", rows, constant([marker], kind))
    filled = add("Where", missing, constant(statistics, kind), rows)
    kept = np.flatnonzero(~np.isnan(statistics) | imputer.keep_empty_features)
    parts = [add("Gather", filled, constant(kept, TensorProto.INT64), axis=1)]
    if imputer.add_indicator:
        marked = constant(imputer.indicator_.features_, TensorProto.INT64)
        parts.append(add("Gather", add("Cast", missing, to=kind), marked, axis=1))
    add("Concat", *parts, name=operator.outputs[0].full_name, axis=1)
