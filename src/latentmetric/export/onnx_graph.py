"""A fitted model as a graph of standard ONNX operators.

The graph does what the model does: it centres rows, searches by the expanded square, in double,
ranks a few more than the requested neighbours by exact differences, and lets them vote. Where very
many references vote by the kernel, the expanded square is good enough for the far ones. A run of n
rows against m references takes memory O(n·m), so use smaller batches where memory is short.
skl2onnx converts the steps of a pipeline, which come before.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from latentmetric.core.tuning import KERNEL_NEIGHBORS, LEAST_SHARE
from latentmetric.core.votes import TINY, voting_scales
from latentmetric.export.onnx_pipeline import convert_steps
from latentmetric.export.parts import SPARE_NEIGHBORS, Parts
from latentmetric.extras import import_optional
from latentmetric.persistence.replacing import replacing

OPSET = 18
OPSETS = {"": OPSET, "ai.onnx.ml": 3}
IR_VERSION = 8
"""The oldest versions with all operators used, so that older runtimes can read the file."""

BOOL, DOUBLE = 9, 11
"""The numbers of these types in ONNX."""

INNER = """
    shape = Shape (rows)
    centred = Sub (rows, centre)
    scales = Expand (scale, shape)
    inner = Div (centred, scales)
    """
"""Scales are not a constant: onnxruntime would fold it into the next product, in float32."""

NEAREST = f"""
    queries = MatMul (inner, components)
    wide_queries = Cast <to = {DOUBLE}> (queries)
    wide_references = Cast <to = {DOUBLE}> (references)
    transposed = Transpose <perm = [1, 0]> (wide_references)
    products = MatMul (wide_queries, transposed)
    twice = Add (products, products)
    comparable = Sub (norms, twice)
    least, found = TopK <axis = 1, largest = 0, sorted = 1> (comparable, n_found)
    proposed = Slice (found, index_0, n_candidates, index_1)
    candidates, order = TopK <axis = 1, largest = 0, sorted = 1> (proposed, n_candidates)
    each_query = Unsqueeze (queries, index_1)
    near = Gather <axis = 0> (references, candidates)
    apart = Sub (each_query, near)
    exact = ReduceSumSquare <keepdims = 0> (apart, index_2)
    squared, columns = TopK <axis = 1, largest = 0, sorted = 1> (exact, k)
    indices = GatherElements <axis = 1> (candidates, columns)
    nearest = Slice (squared, index_0, n_neighbors, index_1)
    roots = Sqrt (nearest)
    distances = Mul (roots, scale)
    first_squared = Slice (squared, index_0, index_1, index_1)
    to_nearest = Cast <to = {DOUBLE}> (first_squared)
    to_centre = ReduceSumSquare (wide_queries, index_1)
    of_nearest = Div (to_nearest, usual_nearest)
    of_centre = Div (to_centre, usual_centre)
    column = Sub (of_centre, of_nearest)
    """
"""The search is in double, as the model searches where groups of rows are far apart. Candidates are
sorted by index, so that of equals the earlier one comes first."""

MOST_SIMILAR = f"""
    transposed = Transpose <perm = [1, 0]> (references)
    products = MatMul (inner, transposed)
    negative = Neg (products)
    squared, indices = TopK <axis = 1, largest = 0, sorted = 1> (negative, k)
    products_of_nearest = Neg (squared)
    distances = Slice (squared, index_0, n_neighbors, index_1)
    largest = Slice (products_of_nearest, index_0, index_1, index_1)
    column = Cast <to = {DOUBLE}> (largest)
    """
"""For a model without distances: minus the similarities, in the place of squared distances."""

VOTERS = f"""
    neighbors = Slice (indices, index_0, n_neighbors, index_1)
    voters = Slice (indices, index_0, n_voters, index_1)
    away = Slice (squared, index_0, n_voters, index_1)
    wide_away = Cast <to = {DOUBLE}> (away)
    """

MANY_VOTERS = f"""
    neighbors = Slice (indices, index_0, n_neighbors, index_1)
    far = Slice (found, n_candidates, n_voters, index_1)
    voters = Concat <axis = 1> (indices, far)
    far_comparable = Slice (least, n_candidates, n_voters, index_1)
    query_norms = ReduceSumSquare (wide_queries, index_1)
    far_squared = Add (far_comparable, query_norms)
    wide_squared = Cast <to = {DOUBLE}> (squared)
    wide_away = Concat <axis = 1> (wide_squared, far_squared)
    """
"""To compare all voters by differences would take memory for voters times the rank of the metric,
for each row."""

INVERSE_DISTANCE = f"""
    at_zero = LessOrEqual (wide_away, zero)
    positive = Where (at_zero, one, wide_away)
    positive_roots = Sqrt (positive)
    inverse = Div (one, positive_roots)
    itself = Cast <to = {DOUBLE}> (at_zero)
    any_itself = ReduceMax (itself, index_1)
    found_itself = Cast <to = {BOOL}> (any_itself)
    ballots = Where (found_itself, itself, inverse)
    """

KERNEL = """
    first = Slice (wide_away, index_0, index_1, index_1)
    nearer = Sub (first, wide_away)
    exponents = Div (nearer, temperature)
    ballots = Exp (exponents)
    """
"""Of infinite width where all votes count the same; of nearly none where the nearest decide."""

OWN_BANDWIDTHS = """
    own_scales = Gather <axis = 0> (voting_scales, voters)
    own_weights = Gather <axis = 0> (log_weights, voters)
    scaled = Mul (wide_away, own_scales)
    weighted = Sub (own_weights, scaled)
    exponents = Max (weighted, lowest)
    highest = ReduceMax (exponents, index_1)
    lower = Sub (exponents, highest)
    ballots = Exp (lower)
    """

OTHERS = """
    together = ReduceSum (ballots, index_1)
    negligible = Mul (together, least_share)
    last = Slice (ballots, last_voter, n_voters, index_1)
    beyond = Mul (last, last_share)
    others = Max (negligible, beyond)
    counted = Add (totals, others)
    """
"""Under the kernel, what references beyond the voters may weigh is shared by all classes."""

VOTE = """
    codes = Gather <axis = 0> (reference_codes, voters)
    n_rows = Slice (shape, index_0, index_1)
    totals_shape = Concat <axis = 0> (n_rows, n_classes)
    nothing = Expand (zero, totals_shape)
    totals = ScatterElements <axis = 1, reduction = "add"> (nothing, codes, ballots)
    of_neighbors = GatherElements <axis = 1> (totals, codes)
    winner = ArgMax <axis = 1> (of_neighbors)
    winning = GatherElements <axis = 1> (codes, winner)
    code = Squeeze (winning, index_1)
    label = Gather <axis = 0> (classes, code)
    """

SHARES = """
    all_votes = ReduceSum (counted, index_1)
    probabilities = Div (counted, all_votes)
    """


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model as an ONNX file: features in; label, probabilities, neighbours, score out.

    The input ``features`` has shape (n, n_features), with n free, and the model's dtype, float or
    double. The steps of a pipeline are part of the graph; if it takes words, every column is an
    input of its own, (n, 1), with the column's name, in which letters, digits and underscores stay
    as they are. The outputs are

    - ``label``, (n,): a string, a Boolean, an int64 or a float, as the labels are;
    - ``probabilities``, (n, n_classes): double, columns in the order of ``model.classes_``;
    - ``neighbors``, (n, n_neighbors): int64, nearest first, as ``model.kneighbors`` numbers them;
    - ``distances``, (n, n_neighbors): of these, as ``model.kneighbors`` gives them;
    - ``score``, (n,): double, as ``model.score_samples`` gives it. To reject rows of unknown
      classes, compare it with ``model.reject_threshold``.

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
    onnx = import_optional("onnx", "onnx", "to_onnx")
    import_optional("skl2onnx", "onnx", "to_onnx")
    content = _model(onnx, Parts.of(model, "ONNX"))
    onnx.checker.check_model(content, full_check=True)
    with replacing(path) as file:
        file.write(content.SerializeToString())


def _model(onnx: Any, parts: Parts) -> Any:
    """The graph of the model as an ONNX model, after that of the steps if there are any."""
    import latentmetric

    graph = _graph(onnx, parts)
    if parts.piped.steps is not None:
        steps = convert_steps(parts.piped, parts.model.dtype, OPSETS)
        graph = onnx.compose.add_prefix_graph(
            graph, "model_", rename_inputs=False, rename_outputs=False
        )
        graph.input[0].type.CopyFrom(steps.output[0].type)
        joints = [(steps.output[0].name, "features")]
        graph = onnx.compose.merge_graphs(steps, graph, joints, name=graph.name)
    domains = sorted({node.domain for node in graph.node})
    return onnx.helper.make_model(
        graph,
        producer_name="latentmetric",
        producer_version=latentmetric.__version__,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid(name, OPSETS[name]) for name in domains],
    )


def _graph(onnx: Any, parts: Parts) -> Any:
    """Features in; label, probabilities, neighbours, their distances and the score out."""
    model, constants = parts.model, _constants(parts)
    is_kernel, search = parts.weights == "kernel", NEAREST if model.is_metric else MOST_SIMILAR
    voters = MANY_VOTERS if parts.n_voters > constants["n_candidates"][0] else VOTERS
    weights = INVERSE_DISTANCE if parts.weights == "distance" else KERNEL
    if is_kernel and model.log_scales is not None:
        weights = OWN_BANDWIDTHS
    others = OTHERS if is_kernel else "counted = Identity (totals)"
    dtype, labels = (
        onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(given)).lower()
        for given in (model.dtype, constants["classes"].dtype)
    )
    n_classes, n_neighbors = len(parts.classes), parts.n_neighbors
    text = f"""
        latentmetric ({dtype}[n, {model.n_features}] features) => (
            {labels}[n] label, double[n, {n_classes}] probabilities,
            int64[n, {n_neighbors}] neighbors, {dtype}[n, {n_neighbors}] distances,
            double[n] score
        ) {{
        rows = Cast <to = {onnx.helper.np_dtype_to_tensor_dtype(model.dtype)}> (features)
        {INNER} {search} {voters} {weights} {VOTE} {others} {SHARES}
        score = Squeeze (column, index_1)
        }}"""
    graph = onnx.parser.parse_graph(text)
    used = {name for node in graph.node for name in node.input}
    graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name)
        for name, array in constants.items()
        if name in used
    )
    return graph


def _constants(parts: Parts) -> dict[str, Any]:
    """The arrays that graphs refer to by name."""
    model, n_voters, n_classes = parts.model, parts.n_voters, len(parts.classes)
    n_references, n_near = len(model.references), min(n_voters, KERNEL_NEIGHBORS)
    if parts.weights != "kernel":
        n_near = n_voters
    k = max(parts.n_neighbors, n_near)
    n_candidates = min(k + SPARE_NEIGHBORS, n_references)
    counts = {
        "index_0": 0, "index_1": 1, "index_2": 2, "k": max(k, min(n_voters, n_candidates)),
        "n_candidates": n_candidates, "n_found": max(n_candidates, n_voters),
        "n_neighbors": parts.n_neighbors, "n_voters": n_voters, "last_voter": n_voters - 1,
        "n_classes": n_classes,
    }  # fmt: skip
    arrays: dict[str, Any] = {
        name: np.array([count], dtype=np.int64) for name, count in counts.items()
    }
    temperature = np.inf
    if parts.weights == "kernel":
        temperature = max(model.temperature, TINY)
    if model.components is not None:
        arrays["components"] = model.components.T
        arrays["norms"] = model.references.in_double.norms
        usual = model.usual_distances
        arrays |= {"usual_nearest": np.array(usual.nearest), "usual_centre": np.array(usual.centre)}
    if model.log_scales is not None and model.log_weights is not None:
        arrays["voting_scales"] = voting_scales(model.log_scales, temperature)
        arrays["log_weights"] = model.log_weights.astype(np.float64)
    return arrays | {
        "centre": model.coordinates.centre.astype(model.dtype),
        "scale": np.array([[model.coordinates.scale]], dtype=model.dtype),
        "references": model.references.rows,
        "reference_codes": model.codes.astype(np.int64),
        "classes": _onnx_labels(parts.classes),
        "temperature": np.array(temperature),
        "zero": np.zeros((1, 1)),
        "one": np.ones((1, 1)),
        "lowest": np.array(np.finfo(np.float64).min),
        "least_share": np.array(LEAST_SHARE / n_classes),
        "last_share": np.array((n_voters < n_references) / n_classes),
    }


def _onnx_labels(classes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Labels in a dtype that ONNX runtimes support."""
    if classes.dtype.kind in "UO":
        return classes.astype(object)
    if classes.dtype.kind in "iu" and classes.max() < 2**63:
        return classes.astype(np.int64)
    if classes.dtype.kind in "ufb":
        return classes
    raise TypeError(f"ONNX has no type for labels of dtype {classes.dtype}; use strings")
