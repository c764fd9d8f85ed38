"""The steps of a pipeline as JSON and arrays, and back.

A step is stored as the name of its class, its parameters and the public attributes of its fit.
What scikit-learn keeps in private attributes is not in the file: its own ``fit`` makes it anew from
a few made-up rows. So files outlive versions of scikit-learn, and no index from a file reaches
compiled code unchecked. Restored steps give bit for bit what the stored ones gave.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from latentmetric.characters import shortened
from latentmetric.persistence.estimators import pack_estimator, restore_estimator
from latentmetric.persistence.model_file import (
    NUMBERS,
    Array,
    Arrays,
    Contents,
    pack,
    require,
    unpack,
)
from latentmetric.validation.pipelines import STEPS, WORDS, fitted_columns, step_class

NOT_STORED = ("transformers", "remainder", "steps", "n_jobs", "force_int_remainder_cols")
"""Parameters that are stored otherwise, or that change nothing of a fitted step."""

ALLOWED: dict[str, Any] = {"memory": (), "dtype": type, "verbose_feature_names_out": bool}
"""What a file may set a parameter to, where not anything: no cache, which may hold code, no dtype
of a made-up size, no pattern."""

OUTPUTS = (None, "default", "pandas", "polars")
"""What a step may be set to give."""

SCALING = ("mean_", "center_", "min_", "scale_")
"""What scalers compute with."""

MAX_DEPTH = 8
"""How deep steps may be nested: each level takes several calls to load and to predict."""

STEP_BYTES, COLUMN_BYTES = 2**19, 128
"""What each step, and each column that it takes or gives, counts for in the file's budget."""


def pack_step(step: Any, path: str, arrays: Arrays) -> Any:
    """A fitted step as JSON; its arrays are added to ``arrays``. Messages call it ``path``."""
    if step is None or isinstance(step, str):
        return step or "passthrough"
    kind = type(step).__name__
    if path.count("/") > MAX_DEPTH:
        raise TypeError(f"a model file holds no steps nested more than {MAX_DEPTH} deep")
    if kind not in STEPS or (not path and kind != "Pipeline"):
        return pack_estimator(step, arrays)
    entry: dict[str, Any] = {"step": kind, "parameters": _pack_parameters(step, path)}
    if kind == "Pipeline":
        held = ((name, inner, f"{path}/{name}".strip("/")) for name, inner in step.steps)
        return entry | {"steps": [[name, pack_step(inner, at, arrays)] for name, inner, at in held]}
    check_is_fitted(step)
    names = getattr(step, "feature_names_in_", None)
    entry["n_features"] = int(step.n_features_in_)
    entry["feature_names"] = None if names is None else [str(name) for name in names]
    entry["output"] = getattr(step, "_sklearn_output_config", {}).get("transform")
    if kind == "ColumnTransformer":
        parts: list[Any] = []
        for (name, held, indices), (_, _, columns) in zip(
            fitted_columns(step), step.transformers_, strict=True
        ):  # products are rounded differently for a list of columns, so a slice stays one
            is_slice = isinstance(columns, slice) and columns.step in (None, 1) and indices
            stored = {"slice": [indices[0], indices[-1] + 1]} if is_slice else indices
            parts.append([name, pack_step(held, f"{path}/{name}", arrays), stored])
        rest = step.remainder if isinstance(step.remainder, str) else "drop"
        if len(parts) > len(step.transformers):
            rest = parts.pop()[1]
        return entry | {"parts": parts, "remainder": rest, "sparse": bool(step.sparse_output_)}
    return entry | {"fitted": pack(_fitted_values(step), arrays, f"step_{len(arrays)}")}


def _pack_parameters(step: Any, path: str) -> dict[str, Any]:
    """The parameters of a step that are not at their defaults."""
    known, stored = inspect.signature(type(step)).parameters, {}
    for name, value in step.get_params(deep=False).items():
        is_seedless = name == "random_state" and not isinstance(value, int | np.integer)
        if name in NOT_STORED or value is known[name].default or is_seedless:
            continue
        try:
            if not isinstance(value, ALLOWED.get(name, object)):
                raise TypeError(f"a model file cannot hold {value!r}")
            listed = value.tolist() if isinstance(value, np.ndarray) else value
            stored[name] = pack(listed, {}, name)
        except TypeError as error:
            where = f"the step {path!r}" if path else "the pipeline"
            raise TypeError(f"{where}: its parameter {name}: {error}") from error
    return stored


def _fitted_values(step: Any) -> dict[str, Any]:
    """What a fit has computed: public attributes, and how the encoder groups categories."""
    kind = type(step).__name__
    if kind == "SimpleImputer":
        indicated = [] if step.indicator_ is None else step.indicator_.features_.tolist()
        fitted_to = step._fit_dtype.name
        return {"statistics": step.statistics_, "fitted_to": fitted_to, "indicated": indicated}
    if kind == "OneHotEncoder":
        rare = None
        if step._infrequent_enabled:
            rare = [[] if some is None else some.tolist() for some in step._infrequent_indices]
        return {"categories": step.categories_, "infrequent": rare}
    return {
        name: value
        for name, value in vars(step).items()
        if name.endswith("_") and name[0] != "_" and not name.endswith("_in_")
    }


def restore_step(
    stored: Any, n_given: int | None, contents: Contents, path: str = ""
) -> tuple[Any, int | None]:
    """The step that ``pack_step`` stored, and how many features it gives to the next one.

    ``n_given`` features come to it; None if that is not known.
    """
    shown = shortened(path.strip("/"), 80)
    is_flat = path.count("/") <= MAX_DEPTH + 1
    require(is_flat, f"the steps are nested more than {MAX_DEPTH} deep")
    contents.spend(STEP_BYTES, f"all steps up to {shown!r}")
    if isinstance(stored, str) and stored in WORDS:
        return stored, 0 if stored == "drop" else n_given
    kind = stored.get("step", "estimator")
    require(kind in (*STEPS, "estimator"), f"the step {shown!r} is not one of {', '.join(STEPS)}")
    if kind == "Pipeline":
        return _restore_pipeline(stored, n_given, contents, path)
    estimator = restore_estimator(stored, contents) if kind == "estimator" else None
    n_features = stored["n_features"] if estimator is None else estimator.n_features_in_
    require(
        type(n_features) is int and n_features >= 1 and n_given in (None, n_features),
        f"the step {shown!r} takes {n_features} features, but {n_given} come to it",
    )
    if estimator is not None:
        return estimator, None
    names, output = stored["feature_names"], stored["output"]
    contents.spend(COLUMN_BYTES * n_features, f"{n_features:,} columns")
    are_names = type(names) is list and [*map(type, names)] == [str] * n_features
    is_known = (names is None or are_names) and output in OUTPUTS
    require(is_known, f"the step {shown!r} has not {n_features} feature names, or no known output")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if kind == "ColumnTransformer":
            step, width = _restore_columns(stored, contents, path)
        else:
            step = step_class(kind)(**_restore_parameters(stored, contents))
            step._validate_params()
            fitted = unpack(stored["fitted"], contents)
            restore: Any = {"SimpleImputer": _restore_imputer, "OneHotEncoder": _restore_encoder}
            rows = restore.get(kind, _restore_other)(step, n_features, contents, **fitted)
            made = step.transform(rows)
            n_spoiled = 0 if kind in restore else _n_not_finite(made) - _n_not_finite(rows)
            require(n_spoiled <= 0, f"the step {shown!r} would make numbers NaN or infinite")
            width = made.shape[1]
    if names is not None:
        step.feature_names_in_ = np.array(names, dtype=object)
    if output is not None:
        step.set_output(transform=output)
    contents.spend(COLUMN_BYTES * width, f"{width:,} columns")
    return step, width


def _restore_parameters(stored: dict[str, Any], contents: Contents) -> dict[str, Any]:
    kind = stored["step"]
    known = inspect.signature(step_class(kind)).parameters
    parameters: dict[str, Any] = unpack(stored["parameters"], contents)
    for name, value in parameters.items():
        is_set = name in known and name not in NOT_STORED
        require(
            is_set and isinstance(value, ALLOWED.get(name, object)),
            f"{kind} has no parameter {shortened(name, 40)!r} that a file may set to this",
        )
    return parameters


def _restore_pipeline(
    stored: dict[str, Any], n_given: int | None, contents: Contents, path: str
) -> tuple[Any, int | None]:
    steps: list[tuple[str, Any]] = []
    for name, held in stored["steps"]:
        is_own = isinstance(name, str) and name not in dict(steps) and "__" not in name
        fits = is_own and held != "drop"
        require(fits, f"the step {shortened(name, 40)!r} has no name of its own, or drops all")
        step, n_given = restore_step(held, n_given, contents, f"{path}/{name}")
        steps.append((name, step))
    return Pipeline(steps, **_restore_parameters(stored, contents)), n_given


def _restore_other(step: Any, n_features: int, contents: Contents, **fitted: Any) -> Array:
    """Set what a scaler or a decomposition has learned; return a row that it can transform.

    It has NaN where a scaler has learned only NaN: from a column without values.
    """
    kind, n_components = type(step).__name__, len(fitted.get("components_", ()))
    for name, value in fitted.items():
        whole = (n_components, n_features)
        allowed = [whole] if name == "components_" else [(), *((length,) for length in whole)]
        is_number = type(value) in (int, float, type(None))
        fits = is_number or (value.dtype.kind in "iuf" and value.shape in allowed)
        require(fits, f"{name} of a {kind} does not fit its {n_features} features")
        vars(step)[name] = value
    step.n_features_in_ = n_features
    row = np.zeros((1, n_features))
    used = [value for name in SCALING if isinstance(value := fitted.get(name), np.ndarray)]
    if used:
        row[:, np.isnan(used).all(axis=0)] = np.nan
    return row


def _n_not_finite(rows: Any) -> int:
    return int(np.count_nonzero(~np.isfinite(np.asarray(rows))))


def _restore_imputer(
    step: Any, n_features: int, contents: Contents, statistics: Array, fitted_to: str,
    indicated: list[int],
) -> Array:  # fmt: skip
    """Fit an imputer to rows that lack the same cells; the other values do not matter."""
    is_whole = statistics.shape == (n_features,) and fitted_to in (*NUMBERS, "object")
    require(is_whole, f"an imputer has no statistics for {n_features} features")
    is_infinite = statistics.dtype.kind == "f" and np.isinf(statistics).any()
    require(not is_infinite, "an imputer would fill in infinite values")  # NaN is an empty column
    missing = np.zeros((2, n_features), dtype=bool)
    missing[1, np.array(indicated, dtype=np.intp)] = True
    missing[:, [value != value for value in statistics]] = True
    words = ("a", "b") if fitted_to == "object" else (1, 2)
    present = words[0] if step.missing_values != words[0] else words[1]
    rows = np.full(missing.shape, present, dtype=fitted_to)
    if missing.any():  # rows of integers cannot lack any
        rows[missing] = step.missing_values
    step.fit(rows)
    step.statistics_ = statistics
    return rows


def _restore_encoder(
    step: Any, n_features: int, contents: Contents, categories: list[Array],
    infrequent: list[list[int]] | None,
) -> Array:  # fmt: skip
    """Fit an encoder to rows of its categories; infrequent ones occur once, the others twice."""
    is_whole = len(categories) == n_features and all(known.ndim == 1 for known in categories)
    require(is_whole, f"an encoder does not have categories for {n_features} features")
    for known in categories:
        if known.dtype.kind in "biuf":
            is_sorted = np.array_equal(np.unique(known), known, equal_nan=known.dtype.kind == "f")
            require(is_sorted, "the categories of an encoder are not in ascending order")
    n_rows = 1 if infrequent is None else 2 * max(map(len, categories))
    contents.spend(64 * n_rows * n_features, f"an encoder of {n_features:,} columns")
    rows = np.empty((n_rows, n_features), dtype=object)
    for column, known in enumerate(categories):
        rare = set() if infrequent is None else set(infrequent[column])
        often = [index for index in range(len(known)) if index not in rare]
        require(often, f"every category of feature {column} is infrequent: a file cannot hold that")
        shown = often[:1] if infrequent is None else [*range(len(known)), *often]
        cells = known.tolist()
        rows[:, column] = [cells[index] for index in shown + often[:1] * (n_rows - len(shown))]
    asked = step.get_params()
    limits_of_fit = {"min_frequency": None if infrequent is None else 2, "max_categories": None}
    step.set_params(categories=[known.tolist() for known in categories], **limits_of_fit).fit(rows)
    step.set_params(**asked)
    step.categories_ = categories
    return rows[:1]


def _restore_columns(stored: dict[str, Any], contents: Contents, path: str) -> tuple[Any, int]:
    """A ``ColumnTransformer`` of restored parts, fitted first to pass all its columns through."""
    n_features, names = stored["n_features"], stored["feature_names"]
    left, parts, outputs, width = set(range(n_features)), [], {}, 0
    for name, held, chosen in [*stored["parts"], ["remainder", stored["remainder"], None]]:
        columns = sorted(left) if chosen is None else chosen
        if isinstance(chosen, dict):
            columns = slice(*chosen["slice"])
        indices = range(n_features)[columns] if isinstance(columns, slice) else columns
        contents.spend(COLUMN_BYTES * len(indices), f"{len(indices):,} columns")
        are_indices = all(type(index) is int and 0 <= index < n_features for index in indices)
        require(are_indices, f"the step {shortened(path, 80)!r} takes columns that there are not")
        left -= set(indices)
        part, made = restore_step(held, len(indices), contents, f"{path}/{name}")
        parts.append((name, part, columns))
        n_made = made or 0
        outputs[name] = slice(width, width + n_made) if n_made else slice(0, 0)
        width += n_made
    *first, rest = [
        (name, part if isinstance(part, str) else "passthrough", columns)
        for name, part, columns in parts
    ]
    step = ColumnTransformer(first, remainder=rest[1]).fit(np.zeros((1, n_features)))
    step.transformers_ = [
        (name, passing if isinstance(part, str) else part, columns)
        for (name, part, _), (_, passing, columns) in zip(parts, step.transformers_, strict=False)
    ]
    if names is not None:
        named = np.array(names, dtype=object)
        parts = [(name, part, named[columns].tolist()) for name, part, columns in parts]
    step.transformers = [(name, clone(part, safe=False), columns) for name, part, columns in parts]
    step.remainder = step.transformers.pop()[1]
    vars(step).update(_restore_parameters(stored, contents))
    step._validate_params()
    weights = [type(weight) for weight in (step.transformer_weights or {}).values()]
    require({*weights} <= {int, float}, "the weights of columns are not numbers")
    step.sparse_output_, step.output_indices_ = stored["sparse"] is True, outputs
    return step, width
