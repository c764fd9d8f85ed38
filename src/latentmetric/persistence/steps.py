"""The steps of a pipeline as JSON and arrays, and back; nothing is pickled.

A step is stored as the name of its class, which a table leads from, the parameters that are not at
their defaults, and what its fit has found. Restored steps are those of the installed scikit-learn,
and give bit for bit what the stored ones gave.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from latentmetric.characters import shortened
from latentmetric.persistence.cells import (
    Arrays,
    cell_as_json,
    cell_from_json,
    parameter_as_json,
    parameter_from_json,
    values_as_json,
    values_from_json,
)
from latentmetric.persistence.model_file import ModelFileError
from latentmetric.persistence.refitting import (
    packed_encoder,
    packed_imputer,
    restore_encoder,
    restore_imputer,
)
from latentmetric.persistence.values import count_from_json, feature_names_from_json
from latentmetric.validation.pipelines import STEPS, WORDS, fitted_columns, step_class

PARAMETERS = {
    "StandardScaler": ("copy", "with_mean", "with_std"),
    "MinMaxScaler": ("feature_range", "copy", "clip"),
    "RobustScaler": ("with_centering", "with_scaling", "quantile_range", "copy", "unit_variance"),
    "Normalizer": ("norm", "copy"),
    "OneHotEncoder": (
        "categories", "drop", "sparse_output", "dtype", "handle_unknown", "min_frequency",
        "max_categories", "feature_name_combiner",
    ),
    "SimpleImputer": (
        "missing_values", "strategy", "fill_value", "copy", "add_indicator", "keep_empty_features",
    ),
    "PCA": (
        "n_components", "copy", "whiten", "svd_solver", "tol", "iterated_power", "n_oversamples",
        "power_iteration_normalizer", "random_state",
    ),
    "TruncatedSVD": (
        "n_components", "algorithm", "n_iter", "n_oversamples", "power_iteration_normalizer",
        "random_state", "tol",
    ),
    "ColumnTransformer": (
        "sparse_threshold", "transformer_weights", "verbose", "verbose_feature_names_out",
    ),
    "Pipeline": ("verbose",),
}  # fmt: skip
"""The parameters that a file may set. Others could name files to read, such as a cache."""

LEFT_OUT = ("transformers", "remainder", "steps", "n_jobs", "force_int_remainder_cols")
"""Parameters that are stored otherwise, or that change nothing of a fitted step."""

REMAINDER = "remainder"
"""What scikit-learn calls the columns that no part takes."""

CONTAINERS = ("default", "pandas", "polars")
"""What ``set_output`` knows."""


@dataclass(frozen=True)
class Found:
    """An attribute that a fit has found: numbers, of which each length has a name, or None."""

    shape: tuple[str, ...]
    is_used: bool = True
    """Whether answers depend on it; such numbers must be finite."""
    may_be_none: bool = False


_EACH, _PART = ("features",), ("components",)

FOUND = {
    "StandardScaler": {
        "mean_": Found(_EACH, may_be_none=True),
        "scale_": Found(_EACH, may_be_none=True),
        "var_": Found(_EACH, is_used=False, may_be_none=True),
        "n_samples_seen_": Found(_EACH, is_used=False),
    },
    "MinMaxScaler": {
        "min_": Found(_EACH),
        "scale_": Found(_EACH),
        **dict.fromkeys(("data_min_", "data_max_", "data_range_"), Found(_EACH, is_used=False)),
        "n_samples_seen_": Found((), is_used=False),
    },
    "RobustScaler": dict.fromkeys(("center_", "scale_"), Found(_EACH, may_be_none=True)),
    "Normalizer": {},
    "PCA": {
        "components_": Found(("components", "features")),
        "mean_": Found(_EACH),
        "explained_variance_": Found(_PART),
        "explained_variance_ratio_": Found(_PART, is_used=False),
        "singular_values_": Found(_PART, is_used=False),
        **dict.fromkeys(("n_components_", "n_samples_", "noise_variance_"), Found((), False)),
    },
    "TruncatedSVD": {
        "components_": Found(("components", "features")),
        "explained_variance_": Found(_PART, is_used=False),
        "explained_variance_ratio_": Found(_PART, is_used=False),
        "singular_values_": Found(_PART, is_used=False),
    },
}
"""What steps that are arithmetic have found."""

NEEDED = {
    "with_mean": "mean_", "with_std": "scale_", "with_centering": "center_",
    "with_scaling": "scale_",
}  # fmt: skip
"""Attributes that may be None unless the parameter is true."""


def packed_step(step: Any, path: str, arrays: Arrays) -> Any:
    """A fitted step as JSON; its arrays are added to ``arrays``. Messages call it ``path``."""
    if step is None or isinstance(step, str):
        return step or "passthrough"
    kind = type(step).__name__
    names = getattr(step, "feature_names_in_", None)
    check_is_fitted(step)
    try:
        entry = {
            "kind": kind,
            "parameters": packed_parameters(step),
            "n_features": int(step.n_features_in_),
            "feature_names": None if names is None else [str(name) for name in names],
            "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
        }
        if kind in FOUND:
            return entry | {"found": _packed_found(step, arrays)}
        if kind in REFITTED:
            return entry | REFITTED[kind][0](step, arrays)
    except (AttributeError, TypeError) as error:
        raise TypeError(f"the step {path!r}: {error}") from error
    if kind == "Pipeline":
        return entry | {"steps": packed_steps(step.steps, f"{path}/", arrays)}
    return entry | _packed_columns(step, path, arrays)


def packed_steps(steps: list[tuple[str, Any]], path: str, arrays: Arrays) -> list[Any]:
    """Steps that follow each other, each with its name."""
    return [[name, packed_step(step, f"{path}{name}", arrays)] for name, step in steps]


def packed_parameters(step: Any) -> dict[str, Any]:
    """The parameters of a step that are not at their defaults."""
    kind = type(step).__name__
    known = inspect.signature(type(step)).parameters
    stored = {}
    for name, value in step.get_params(deep=False).items():
        default = known[name].default
        is_default = value is default or (type(value) is type(default) and value == default)
        if name in LEFT_OUT or is_default:
            continue
        if name not in PARAMETERS[kind] or not _may_be(name, value):
            raise TypeError(f"a model file cannot hold its parameter {name}={value!r}")
        if name == "random_state" and not isinstance(value, int | np.integer):
            continue
        try:
            stored[name] = parameter_as_json(value)
        except TypeError as error:
            raise TypeError(f"its parameter {name}: {error}") from error
    return stored


def _may_be(name: str, value: Any) -> bool:
    """Whether a value is not text that would be used as a pattern."""
    return name != "verbose_feature_names_out" or isinstance(value, bool)


def _packed_found(step: Any, arrays: Arrays) -> dict[str, Any]:
    found = {}
    for name in FOUND[type(step).__name__]:
        value = getattr(step, name)
        is_array = isinstance(value, np.ndarray) and value.ndim
        stored = name.removesuffix("_")
        found[name] = values_as_json(value, stored, arrays) if is_array else cell_as_json(value)
    return found


def _packed_columns(step: Any, path: str, arrays: Arrays) -> dict[str, Any]:
    named = hasattr(step, "feature_names_in_") and _are_named(step)
    parts = []
    for (name, held, places), (_, _, asked) in zip(
        fitted_columns(step), step.transformers_, strict=True
    ):
        columns: Any = places
        if named:
            columns = [str(step.feature_names_in_[place]) for place in places]
        elif isinstance(asked, slice):
            columns = {"slice": [asked.start, asked.stop, asked.step]}
        parts.append([name, packed_step(held, f"{path}/{name}", arrays), columns])
    remainder = step.remainder if isinstance(step.remainder, str) else "drop"
    return {"parts": parts, "remainder": remainder, "sparse": bool(step.sparse_output_)}


def _are_named(step: Any) -> bool:
    """Whether columns were given by name, alone, in a list, or as the ends of a slice."""
    return any(
        isinstance(column, str)
        for _, _, columns in step.transformers_
        for column in _mentioned(columns)
    )


def _mentioned(columns: Any) -> Any:
    if isinstance(columns, slice):
        return columns.start, columns.stop
    return [columns] if isinstance(columns, str) else columns


def restored_steps(
    stored: Any, n_features: int | None, arrays: Arrays, path: str = ""
) -> tuple[list[tuple[str, Any]], int | None]:
    """The steps that ``packed_steps`` stored, and how many features the last of them gives."""
    if not isinstance(stored, list):
        raise ModelFileError("the steps are not a list")
    steps: list[tuple[str, Any]] = []
    for entry in stored:
        name, held = _named_entry(entry, 2)
        _check_name(name, [known for known, _ in steps])
        if held == "drop":
            raise ModelFileError("only columns can be dropped, not all of them")
        step, n_features = restored_step(held, n_features, arrays, f"{path}{name}")
        steps.append((name, step))
    return steps, n_features


def _check_name(name: str, taken: list[str]) -> None:
    if name in taken or "__" in name:
        raise ModelFileError(
            f"the name of the step {shortened(name, 40)!r} occurs twice or has '__'"
        )


def _named_entry(entry: Any, length: int) -> list[Any]:
    is_whole = isinstance(entry, list) and len(entry) == length
    if not is_whole or not isinstance(entry[0], str):
        raise ModelFileError("a step is not given with its name")
    found: list[Any] = entry
    return found


def restored_step(
    stored: Any, n_given: int | None, arrays: Arrays, path: str
) -> tuple[Any, int | None]:
    """The step that ``packed_step`` stored, and how many features it gives."""
    if isinstance(stored, str) and stored in WORDS:
        return stored, 0 if stored == "drop" else n_given
    if not isinstance(stored, dict) or stored.get("kind") not in STEPS:
        raise ModelFileError(f"the step {shortened(path, 80)!r} is not one of {', '.join(STEPS)}")
    n_features = count_from_json(
        stored.get("n_features"), f"n_features of {shortened(path, 80)!r}", 1
    )
    if n_given not in (None, n_features):
        raise ModelFileError(
            f"the step {shortened(path, 80)!r} takes {n_features} features, but {n_given} "
            "come to it"
        )
    names = feature_names_from_json(stored.get("feature_names"), n_features)
    step, width = _restored(stored, n_features, names, arrays, path)
    if not isinstance(step, Pipeline):
        step.n_features_in_ = n_features
        if names is not None:
            step.feature_names_in_ = names
    if stored.get("output") is not None:
        if stored["output"] not in CONTAINERS:
            raise ModelFileError(
                f"the output of the step {shortened(path, 80)!r} is of no known kind"
            )
        step.set_output(transform=stored["output"])
    return step, width


def _restored(
    stored: dict[str, Any], n_features: int, names: Any, arrays: Arrays, path: str
) -> tuple[Any, int | None]:
    kind = stored["kind"]
    parameters = restored_parameters(kind, stored.get("parameters"))
    if kind == "Pipeline":
        steps, width = restored_steps(stored.get("steps"), n_features, arrays, f"{path}/")
        if not steps:
            raise ModelFileError(f"the step {shortened(path, 80)!r} holds no steps")
        return Pipeline(steps, **parameters), width
    if kind == "ColumnTransformer":
        return _restored_columns(stored, parameters, n_features, names, arrays, path)
    step = step_class(kind)(**parameters)
    step._validate_params()
    if kind in REFITTED:
        return step, REFITTED[kind][1](step, n_features, stored, arrays)
    return step, _restore_found(step, n_features, stored.get("found"), arrays)


def restored_parameters(kind: str, given: Any) -> dict[str, Any]:
    """The parameters of a step of this kind that ``packed_parameters`` stored."""
    if not isinstance(given, dict):
        raise ModelFileError("the parameters of a step are not a JSON object")
    known = inspect.signature(step_class(kind)).parameters
    parameters = {name: parameter_from_json(value) for name, value in given.items()}
    for name, value in parameters.items():
        if name not in PARAMETERS[kind] or name not in known or not _may_be(name, value):
            raise ModelFileError(
                f"{kind} has no parameter {shortened(name, 40)!r} that a file may set"
            )
    return parameters


def _restore_found(step: Any, n_features: int, stored: Any, arrays: Arrays) -> int:
    """Give a step what ``_packed_found`` stored; return how many features it gives."""
    kind = type(step).__name__
    if not isinstance(stored, dict) or stored.keys() != FOUND[kind].keys():
        raise ModelFileError(f"a {kind} does not have {', '.join(FOUND[kind])}")
    lengths = {"features": n_features}
    for name, found in FOUND[kind].items():
        setattr(step, name, _found_value(name, found, stored[name], lengths, arrays))
    for parameter, name in NEEDED.items():
        if getattr(step, parameter, False) and getattr(step, name) is None:
            raise ModelFileError(f"a {kind} has no {name}, but {parameter} is true")
    return lengths.get("components", n_features)


def _found_value(
    name: str, found: Found, stored: Any, lengths: dict[str, int], arrays: Arrays
) -> Any:
    if not isinstance(stored, dict) or "number" in stored:
        value = cell_from_json(stored)
        is_number = type(value) in (int, float) and not found.is_used
        if not is_number and not (value is None and found.may_be_none):
            raise ModelFileError(f"{name} of a step is not of the kind that it must be")
        return value
    values = values_from_json(stored, arrays)
    wanted = tuple(lengths.get(length) for length in found.shape)
    if values.ndim != len(wanted) or any(
        length not in (None, given) for length, given in zip(wanted, values.shape, strict=True)
    ):
        raise ModelFileError(f"{name} of a step has the shape {values.shape}, not {wanted}")
    if values.dtype.kind not in "iuf" or (found.is_used and not np.isfinite(values).all()):
        raise ModelFileError(f"{name} of a step holds a value that is not a finite number")
    lengths |= dict(zip(found.shape, values.shape, strict=True))
    return values


def _restored_columns(
    stored: dict[str, Any], parameters: dict[str, Any], n_features: int, names: Any,
    arrays: Arrays, path: str,
) -> tuple[Any, int]:  # fmt: skip
    """A ``ColumnTransformer`` of restored parts, with the inner state that it has after a fit."""
    remainder = stored.get("remainder")
    if remainder not in WORDS or type(stored.get("sparse")) is not bool:
        raise ModelFileError(
            f"the step {shortened(path, 80)!r} does not say what becomes of other columns"
        )
    parts = _restored_parts(stored.get("parts"), n_features, names, arrays, path)
    own = [part for part in parts if part.name != REMAINDER]
    rest = next((part for part in parts if part.name == REMAINDER), None)
    covered = {place for part in own for place in part.places}
    left = [place for place in range(n_features) if place not in covered]
    if rest is not None and rest.places != left:
        raise ModelFileError(
            f"the step {shortened(path, 80)!r} does not say what becomes of all columns"
        )
    step = step_class("ColumnTransformer")(
        [(part.name, part.unfitted, part.columns) for part in own],
        remainder=remainder if rest is None else rest.unfitted,
        **parameters,
    )
    step._validate_params()
    step.transformers_ = [(part.name, part.fitted, part.columns) for part in parts]
    step.sparse_output_ = stored["sparse"]
    step.output_indices_ = _output_places(parts)
    step._columns = [part.columns for part in own]
    step._transformer_to_input_indices = {part.name: part.places for part in own}
    step._transformer_to_input_indices[REMAINDER] = left
    step._remainder = (REMAINDER, step.remainder, left if rest is None else rest.columns)
    return step, sum(part.width for part in parts)


@dataclass(frozen=True)
class _Part:
    """A restored part of a ``ColumnTransformer``."""

    name: str
    step: Any
    columns: Any
    """As they were given: numbers, names or a slice."""
    places: list[int]
    width: int

    @property
    def unfitted(self) -> Any:
        return self.step if isinstance(self.step, str) else clone(self.step)

    @property
    def fitted(self) -> Any:
        """The step, or what a fit puts in the place of the word passthrough."""
        if self.step != "passthrough":
            return self.step
        function = FunctionTransformer(
            accept_sparse=True, check_inverse=False, feature_names_out="one-to-one"
        )
        return function.fit(np.zeros((1, len(self.places))))


def _restored_parts(
    stored: Any, n_features: int, names: Any, arrays: Arrays, path: str
) -> list[_Part]:
    if not isinstance(stored, list) or not stored:
        raise ModelFileError(f"the step {shortened(path, 80)!r} holds no parts")
    parts: list[_Part] = []
    for entry in stored:
        name, held, columns = _named_entry(entry, 3)
        columns, places = _restored_places(columns, names, n_features)
        _check_name(name, [part.name for part in parts])
        if not places and held != "drop":
            raise ModelFileError(
                f"the step {shortened(name, 40)!r} has no columns, but is not dropped"
            )
        step, width = restored_step(held, len(places), arrays, f"{path}/{name}")
        assert width is not None
        parts.append(_Part(name, step, columns, places, width))
    return parts


def _output_places(parts: list[_Part]) -> dict[str, slice]:
    """Which columns of the output come from which part."""
    places, start = {}, 0
    for part in parts:
        places[part.name] = slice(start, start + part.width) if part.width else slice(0, 0)
        start += part.width
    return {REMAINDER: slice(0, 0)} | places


def _restored_places(columns: Any, names: Any, n_features: int) -> tuple[Any, list[int]]:
    """Columns that are given by their numbers, their names or a slice, and their places.

    A slice stays one: a product with columns that lie apart in memory may be rounded otherwise.
    """
    if isinstance(columns, dict):
        ends = columns.get("slice")
        if not isinstance(ends, list) or len(ends) != 3 or not all(map(_is_end, ends)):
            raise ModelFileError("the columns of a step are not a slice")
        part = slice(*ends)
        return part, list(range(n_features)[part])
    if not isinstance(columns, list):
        raise ModelFileError("the columns of a step are not a list")
    known = {} if names is None else {name: place for place, name in enumerate(names)}
    places = [known.get(column) if isinstance(column, str) else column for column in columns]
    if not all(type(place) is int and 0 <= place < n_features for place in places):
        raise ModelFileError(f"the columns of a step are not among its {n_features} features")
    return columns, places  # type: ignore[return-value]


def _is_end(value: Any) -> bool:
    return value is None or type(value) is int


REFITTED: dict[str, tuple[Any, Any]] = {
    "SimpleImputer": (packed_imputer, restore_imputer),
    "OneHotEncoder": (packed_encoder, restore_encoder),
}
"""How to pack and how to restore a step whose inner state is fitted again."""
