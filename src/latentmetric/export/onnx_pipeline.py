"""The steps of a pipeline as an ONNX graph, converted by skl2onnx."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from latentmetric.validation.pipelines import WORDS, Piped, column_places

TENSORS = {"float32": "FloatTensorType", "float64": "DoubleTensorType", "int64": "Int64TensorType"}
"""The names that skl2onnx has for dtypes."""


def convert_steps(piped: Piped, dtype: np.dtype[Any], opset: dict[str, int]) -> Any:
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
            (name, _convertible(inner), column_places(columns, step))
            for name, inner, columns in step.transformers_
        ]
    if any(group is not None for group in getattr(step, "infrequent_categories_", [])):
        raise ValueError("a OneHotEncoder groups infrequent categories")
    if getattr(step, "handle_unknown", "error") != "error":
        changed.handle_unknown = "ignore"  # the same for "warn", and without infrequent categories
    return changed


def _inputs(piped: Piped, dtype: np.dtype[Any]) -> list[tuple[str, Any]]:
    from skl2onnx.common.data_types import StringTensorType

    n_features, words = piped.first.n_features_in_, piped.text_columns
    if not words:
        return [("features", _tensor(dtype, n_features))]
    names = piped.feature_names or [f"x{column}" for column in range(n_features)]
    return [
        (name, StringTensorType([None, 1]) if column in words else _tensor(dtype, 1))
        for column, name in enumerate(names)
    ]


def _tensor(dtype: np.dtype[Any], n_columns: int) -> Any:
    from skl2onnx.common import data_types

    return getattr(data_types, TENSORS[dtype.name])([None, n_columns])


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


class _Nodes:
    """The nodes of a step, in the terms of skl2onnx."""

    def __init__(self, scope: Any, operator: Any, container: Any) -> None:
        from skl2onnx.common.data_types import guess_proto_type
        from skl2onnx.operator_converters.common import concatenate_variables

        self._scope, self._container = scope, container
        self.kind = int(guess_proto_type(operator.inputs[0].type))
        self.rows = concatenate_variables(scope, operator.inputs, container)
        self.output = operator.outputs[0].full_name

    def constant(self, values: Any, kind: int | None = None) -> str:
        """Add a constant; return its name."""
        name: str = self._scope.get_unique_variable_name("constant")
        self._container.add_initializer(name, kind or self.kind, np.shape(values), np.ravel(values))
        return name

    def columns(self, numbers: Any) -> str:
        """Add indices; return their name."""
        from onnx import TensorProto

        return self.constant(numbers, TensorProto.INT64)

    def add(self, operation: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add an operation; return the name of its result."""
        name = name or self._scope.get_unique_variable_name(operation)
        self._container.add_node(operation, list(inputs), name, **attributes)
        return name


def _convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    from onnx import TensorProto

    imputer, nodes = operator.raw_operator, _Nodes(scope, operator, container)
    if nodes.kind == TensorProto.STRING:
        raise NotImplementedError("a SimpleImputer takes words")
    statistics, marker = np.array(imputer.statistics_, dtype=float), imputer.missing_values
    if isinstance(marker, float) and np.isnan(marker):
        missing = nodes.add("IsNaN", nodes.rows)
    else:
        missing = nodes.add("Equal", nodes.rows, nodes.constant([marker]))
    filled = nodes.add("Where", missing, nodes.constant(statistics), nodes.rows)
    kept = np.flatnonzero(~np.isnan(statistics) | imputer.keep_empty_features)
    parts = [nodes.add("Gather", filled, nodes.columns(kept), axis=1)]
    if imputer.add_indicator:
        marks = nodes.add("Cast", missing, to=nodes.kind)
        marked = nodes.columns(imputer.indicator_.features_)
        parts.append(nodes.add("Gather", marks, marked, axis=1))
    nodes.add("Concat", *parts, name=nodes.output, axis=1)


def _convert_normalizer(scope: Any, operator: Any, container: Any) -> None:
    nodes, norm = _Nodes(scope, operator, container), operator.raw_operator.norm
    sizes = nodes.add("Abs", nodes.rows) if norm == "max" else nodes.rows
    operation = {"l1": "ReduceL1", "l2": "ReduceL2", "max": "ReduceMax"}[norm]
    norms = nodes.add(operation, sizes, nodes.columns([1]), keepdims=1)
    least = 10 * np.finfo(np.float32 if nodes.kind == 1 else np.float64).eps  # as in scikit-learn
    tiny = nodes.add("Less", norms, nodes.constant([least]))
    divisors = nodes.add("Where", tiny, nodes.constant([1.0]), norms)
    nodes.add("Div", nodes.rows, divisors, name=nodes.output)
