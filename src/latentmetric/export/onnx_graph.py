"""A fitted model as a graph of standard ONNX operators.

The graph does what the model does: it centres rows, searches by the expanded square, in double,
ranks a few more than the requested neighbours by exact differences, and lets them vote. A run of n
rows against m references takes memory O(n·m), so use smaller batches where memory is short.
skl2onnx converts the steps of a pipeline, which come before.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from latentmetric.export.onnx_pipeline import convert_steps
from latentmetric.export.parts import SPARE_NEIGHBORS, Parts
from latentmetric.persistence.replacing import replacing

OPSET = 18
OPSETS = {"": OPSET, "ai.onnx.ml": 3}
IR_VERSION = 8
"""The oldest versions with all operators used, so that older runtimes can read the file."""

MAX_BYTES = 2**31 - 2**20
"""The largest protocol buffer, less room for what is not arrays."""


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model as an ONNX file: features in; label, probabilities and neighbours out.

    The input ``features`` has shape (n, n_features), with n free, and the model's dtype, float or
    double. The steps of a pipeline are part of the graph; if it takes words, every column is an
    input of its own, (n, 1), with the column's name, in which letters, digits and underscores stay
    as they are. The outputs are

    - ``label``, (n,): a string, a Boolean, an int64 or a float, as the labels are;
    - ``probabilities``, (n, n_classes): double, columns in the order of ``model.classes_``;
    - ``neighbors``, (n, n_neighbors): int64, nearest first, as ``model.kneighbors`` numbers them;
    - ``distances``, (n, n_neighbors): of these, as ``model.kneighbors`` gives them.

    Only standard operators are used (opset 18; for some steps also ai.onnx.ml 3). Results are the
    same as the model's, except where neighbours tie within rounding. Tied classes have equal
    probabilities; ``label`` is then the class of the nearest neighbour.

    Parameters
    ----------
    model : estimator of this package, or a Pipeline that ends in one
        Fitted. Its current ``n_neighbors`` and ``weights`` are exported. skl2onnx converts the
        steps of a pipeline; numbers that a ``OneHotEncoder`` takes must be whole.
    path : str or path-like
        The file to write. An existing file is replaced, or left unchanged if something fails.

    Examples
    --------
    >>> import tempfile
    >>> import onnxruntime
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from latentmetric import MaPML
    >>> from latentmetric.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaPML(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_onnx(model, Path(folder) / "model.onnx")
    ...     session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
    >>> (labels,) = session.run(["label"], {"features": X})
    >>> bool((labels == model.predict(X)).all())
    True
    """
    try:
        import onnx
        import skl2onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f'to_onnx needs {error.name}: pip install "latentmetric[onnx]"'
        ) from error

    parts = Parts.of(model)
    if parts.weights not in WEIGHTS:
        raise ValueError(
            f"weights={parts.weights!r} cannot be exported to ONNX; export after "
            f"model.set_params(weights=...) with one of {', '.join(WEIGHTS)}"
        )
    _check_size(parts)
    content = _model(onnx, parts)
    onnx.checker.check_model(content, full_check=True)
    with replacing(path) as file:
        file.write(content.SerializeToString())


def _model(onnx: Any, parts: Parts) -> Any:
    """The graph of the steps, if there are any, and the graph of the model as an ONNX model."""
    import latentmetric

    dtype, steps = parts.model.dtype, None
    rows = _described(onnx, "features", dtype, parts.model.n_features)
    if parts.piped.steps is not None:
        steps = convert_steps(parts.piped, dtype, OPSETS)
        rows = onnx.ValueInfoProto()
        rows.CopyFrom(steps.output[0])
        rows.name = "rows"
    graph = _Graph(onnx)
    found = _search(graph, parts, graph.cast(rows.name, dtype))
    _give_neighbors(graph, parts, found)
    _vote(graph, parts, found)
    whole = graph.proto([rows], _outputs(onnx, parts))
    if steps is not None:
        joints = [(steps.output[0].name, "rows")]
        whole = onnx.compose.merge_graphs(steps, whole, joints, name=whole.name)
    domains = {node.domain for node in whole.node}
    return onnx.helper.make_model(
        whole,
        producer_name="latentmetric",
        producer_version=latentmetric.__version__,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid(name, OPSETS[name]) for name in sorted(domains)],
    )


class _Graph:
    """The nodes and constants of a graph under construction; values are referred to by name."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self._constants)}"
        array = np.ascontiguousarray(values, dtype=dtype).reshape(np.shape(values))
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operator; return the name of its result."""
        name = name or f"value_{len(self._nodes)}"
        self._nodes.append(
            self._onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        )
        return name

    def smallest(self, values: str, k: int) -> tuple[str, str]:
        """The k smallest values of each row, ascending and stable in ties, and their columns."""
        number = len(self._nodes)
        outputs = [f"smallest_{number}", f"columns_{number}"]
        self._nodes.append(
            self._onnx.helper.make_node(
                "TopK", [values, self.constant([k], np.int64)], outputs, axis=1, largest=0, sorted=1
            )
        )
        return outputs[0], outputs[1]

    def columns(self, values: str, stop: int, name: str | None = None) -> str:
        """The first columns of a matrix."""
        ends = [self.constant([end], np.int64) for end in (0, stop, 1)]
        return self.add("Slice", values, *ends, name=name)

    def cast(self, values: str, dtype: Any) -> str:
        """The values in another dtype."""
        return self.add("Cast", values, to=_element_type(self._onnx, np.dtype(dtype)))

    def proto(self, inputs: list[Any], outputs: list[Any]) -> Any:
        """The whole graph."""
        return self._onnx.helper.make_graph(
            self._nodes, "latentmetric", inputs, outputs, initializer=self._constants
        )


def _search(graph: _Graph, parts: Parts, prepared: str) -> tuple[str, str]:
    """The squared distances of each row's nearest references, or −2 times the similarities,
    and the indices of these references.
    """
    k = max(parts.n_neighbors, parts.n_voters)
    rows, dtype = parts.model.references.rows, parts.model.dtype
    centred = graph.add("Sub", prepared, graph.constant(parts.model.coordinates.centre, dtype))
    # Not a constant: onnxruntime would fold a constant scale into the next product, in float32.
    scale = graph.constant([[parts.model.coordinates.scale]], dtype)
    scales = graph.add("Expand", scale, graph.add("Shape", prepared))
    queries = graph.add("Div", centred, scales)
    if parts.model.components is not None:
        queries = graph.add("MatMul", queries, graph.constant(parts.model.components.T, dtype))
    references = graph.constant(rows)
    if parts.model.components is None:
        return graph.smallest(_products(graph, queries, references, dtype), k)
    # In double, as the model searches where groups of rows are far apart.
    wide = graph.cast(queries, np.float64), graph.cast(references, np.float64)
    comparable = _products(graph, *wide, np.float64)
    norms = graph.constant(parts.model.references.in_double.norms)
    comparable = graph.add("Add", comparable, norms)
    n_candidates = min(k + SPARE_NEIGHBORS, len(rows))
    _, candidates = graph.smallest(comparable, n_candidates)
    candidates, _ = graph.smallest(
        candidates, n_candidates
    )  # so that of equals the earlier comes first
    apart = graph.add(
        "Sub",
        graph.add("Unsqueeze", queries, graph.constant([1], np.int64)),
        graph.add("Gather", references, candidates, axis=0),
    )
    exact = graph.add("ReduceSumSquare", apart, graph.constant([2], np.int64), keepdims=0)
    squared, columns = graph.smallest(exact, k)
    return squared, graph.add("GatherElements", candidates, columns, axis=1)


def _products(graph: _Graph, queries: str, references: str, dtype: Any) -> str:
    """−2 times the inner products of queries and references."""
    doubled = graph.add("Mul", queries, graph.constant(-2.0, dtype))
    return graph.add("MatMul", doubled, graph.add("Transpose", references, perm=[1, 0]))


def _give_neighbors(graph: _Graph, parts: Parts, found: tuple[str, str]) -> None:
    """The outputs ``neighbors`` and ``distances``."""
    (squared, indices), n_neighbors = found, parts.n_neighbors
    graph.columns(indices, n_neighbors, name="neighbors")
    nearest = graph.columns(squared, n_neighbors)
    if parts.model.components is None:
        graph.add("Div", nearest, graph.constant(2.0, parts.model.dtype), name="distances")
        return
    scale = graph.constant(parts.model.coordinates.scale, parts.model.dtype)
    graph.add("Mul", graph.add("Sqrt", nearest), scale, name="distances")


def _vote(graph: _Graph, parts: Parts, found: tuple[str, str]) -> None:
    """The outputs ``label`` and ``probabilities``."""
    squared, indices = (graph.columns(values, parts.n_voters) for values in found)
    codes = graph.add("Gather", graph.constant(parts.model.codes, np.int64), indices, axis=0)
    ballots = WEIGHTS[parts.weights](graph, squared, parts.model.temperature)
    n_rows = graph.add("Slice", graph.add("Shape", codes), *_ends(graph))
    n_classes = graph.constant([len(parts.classes)], np.int64)
    nothing = graph.add(
        "Expand", graph.constant([[0.0]]), graph.add("Concat", n_rows, n_classes, axis=0)
    )
    totals = graph.add("ScatterElements", nothing, codes, ballots, axis=1, reduction="add")
    all_votes = graph.add("ReduceSum", totals, graph.constant([1], np.int64), keepdims=1)
    graph.add("Div", totals, all_votes, name="probabilities")
    of_neighbors = graph.add("GatherElements", totals, codes, axis=1)
    winner = graph.add("ArgMax", of_neighbors, axis=1, keepdims=1)
    code = graph.add("GatherElements", codes, winner, axis=1)
    flat = graph.add("Squeeze", code, graph.constant([1], np.int64))
    graph.add("Gather", graph.constant(_onnx_labels(parts.classes)), flat, axis=0, name="label")


def _ends(graph: _Graph) -> tuple[str, str]:
    return graph.constant([0], np.int64), graph.constant([1], np.int64)


def _uniform(graph: _Graph, squared: str, temperature: float) -> str:
    return graph.add("Expand", graph.constant([[1.0]]), graph.add("Shape", squared))


def _inverse_distance(graph: _Graph, squared: str, temperature: float) -> str:
    wide = graph.cast(squared, np.float64)
    zero, one = graph.constant(0.0), graph.constant(1.0)
    at_zero = graph.add("LessOrEqual", wide, zero)
    inverse = graph.add("Div", one, graph.add("Sqrt", graph.add("Where", at_zero, one, wide)))
    itself = graph.cast(at_zero, np.float64)
    found_itself = graph.add("ReduceMax", itself, graph.constant([1], np.int64), keepdims=1)
    return graph.add("Where", graph.cast(found_itself, np.bool_), itself, inverse)


def _kernel(graph: _Graph, squared: str, temperature: float) -> str:
    beyond = graph.cast(graph.add("Sub", squared, graph.columns(squared, 1)), np.float64)
    if temperature > 0:
        return graph.add("Exp", graph.add("Div", beyond, graph.constant(-temperature)))
    return graph.cast(graph.add("LessOrEqual", beyond, graph.constant(0.0)), np.float64)


WEIGHTS = {"uniform": _uniform, "distance": _inverse_distance, "kernel": _kernel}
"""The votes of ``core.votes`` as ONNX operators, in double precision."""


def _onnx_labels(classes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Labels in a dtype that ONNX runtimes support."""
    if classes.dtype.kind in "UO":
        labels = classes.astype(object)
        try:
            "".join(labels.tolist()).encode()
        except (TypeError, UnicodeEncodeError) as error:
            raise ValueError(f"a class cannot be written as UTF-8: {error}") from error
        return labels
    if classes.dtype.kind in "iu" and classes.max() < 2**63:
        return classes.astype(np.int64)
    if classes.dtype.kind in "ufb":
        return classes
    raise TypeError(f"ONNX has no type for labels of dtype {classes.dtype}; use strings")


def _outputs(onnx: Any, parts: Parts) -> list[Any]:
    labels, n_neighbors = _onnx_labels(parts.classes), parts.n_neighbors
    return [
        _described(onnx, "label", labels.dtype),
        _described(onnx, "probabilities", np.dtype(np.float64), len(parts.classes)),
        _described(onnx, "neighbors", np.dtype(np.int64), n_neighbors),
        _described(onnx, "distances", parts.model.dtype, n_neighbors),
    ]


def _described(onnx: Any, name: str, dtype: np.dtype[Any], *columns: int) -> Any:
    """The name, dtype and shape of an input or output."""
    return onnx.helper.make_tensor_value_info(name, _element_type(onnx, dtype), ["n", *columns])


def _element_type(onnx: Any, dtype: np.dtype[Any]) -> int:
    if dtype.kind == "O":
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))


def _check_size(parts: Parts) -> None:
    model = parts.model
    n_bytes = model.references.rows.nbytes + model.references.norms.nbytes + model.codes.nbytes
    if model.components is not None:
        n_bytes += model.components.nbytes
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"the model's arrays take {n_bytes} bytes, but an ONNX file holds {MAX_BYTES}; use "
            "fewer references, such as the latent examples"
        )
