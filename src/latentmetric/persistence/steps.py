"""The steps of a pipeline as JSON and arrays, and back.

A step is stored as the name of its class, its parameters and the public attributes of its fit.
What scikit-learn keeps in private attributes is not in the file: its own ``fit`` makes it anew from
a few made-up rows. So files outlive versions of scikit-learn, and no index from a file reaches
compiled code unchecked. Restored steps give bit for bit what the stored ones gave.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from latentmetric.characters import shortened
from latentmetric.persistence.model_file import NUMBERS, Array, Arrays, pack, require, unpack
from latentmetric.validation.pipelines import (
    STEPS,
    WORDS,
    column_indices,
    fitted_columns,
    step_class,
)

NOT_STORED = ("transformers", "remainder", "steps", "n_jobs", "force_int_remainder_cols")
"""Parameters that are stored otherwise, or that change nothing of a fitted step."""

NamedSteps = list[tuple[str, Any]]


@dataclass
class Limits:
    """What all steps of a file together may still take."""

    columns: int
    cells: int
    """Cells of the rows that encoders are fitted to."""
    steps: int = 200
    depth: int = 20

    @classmethod
    def of_file(cls, n_bytes: int) -> Limits:
        """The limits of a file of this size."""
        return cls(columns=2**17 + n_bytes, cells=2**20 + n_bytes)

    def take(self, **amounts: int) -> None:
        """Raise ``ModelFileError`` if less than this is left."""
        for name, amount in amounts.items():
            left = getattr(self, name) - amount
            require(left >= 0, f"the steps have more {name} than a file of this size may")
            setattr(self, name, left)


def pack_steps(steps: NamedSteps, arrays: Arrays, path: str = "") -> list[Any]:
    """Steps that follow each other, each with its name; arrays are added to ``arrays``."""
    return [[name, _packed(step, f"{path}{name}", arrays)] for name, step in steps]


def pack_parameters(step: Any, path: str) -> dict[str, Any]:
    """The parameters of a step that are not at their defaults."""
    known = inspect.signature(type(step)).parameters
    stored = {}
    for name, value in step.get_params(deep=False).items():
        is_seedless = name == "random_state" and not isinstance(value, int | np.integer)
        if name in NOT_STORED or value is known[name].default or is_seedless:
            continue
        if not _may_be_set(name, value):
            raise TypeError(f"{path}: a model file cannot hold its parameter {name}={value!r}")
        try:
            listed = value.tolist() if isinstance(value, np.ndarray) else value
            stored[name] = pack(listed, {}, name)
        except TypeError as error:
            raise TypeError(f"{path}: its parameter {name}: {error}") from error
    return stored


def restore_parameters(kind: str, stored: Any) -> dict[str, Any]:
    """The parameters of a step of this kind that ``pack_parameters`` stored."""
    known = inspect.signature(step_class(kind)).parameters
    parameters: dict[str, Any] = unpack(stored, {})
    for name, value in parameters.items():
        require(
            name in known and name not in NOT_STORED and _may_be_set(name, value),
            f"{kind} has no parameter {shortened(name, 40)!r} that a file may set",
        )
    return parameters


def _may_be_set(name: str, value: Any) -> bool:
    """Whether a file may set it: no cache, which may hold code, no pattern, no odd dtype."""
    if name == "dtype":
        try:
            return np.dtype(value).name in NUMBERS and np.dtype(value) != np.float16
        except TypeError:
            return False
    is_pattern = name == "verbose_feature_names_out" and not isinstance(value, bool)
    return name != "memory" and not is_pattern


def _packed(step: Any, path: str, arrays: Arrays) -> Any:
    if step is None or isinstance(step, str):
        return step or "passthrough"
    check_is_fitted(step)
    kind = type(step).__name__
    names = getattr(step, "feature_names_in_", None)
    entry = {
        "step": kind,
        "parameters": pack_parameters(step, f"the step {path!r}"),
        "n_features": int(step.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
    }
    if kind == "Pipeline":
        return entry | {"steps": pack_steps(step.steps, arrays, f"{path}/")}
    if kind == "ColumnTransformer":
        return entry | _packed_columns(step, path, arrays)
    try:
        return entry | {"found": pack(_found(step), arrays, f"step_{len(arrays)}")}
    except TypeError as error:
        raise TypeError(f"the step {path!r}: {error}") from error


def _found(step: Any) -> dict[str, Any]:
    """What a fit has found: public attributes."""
    kind = type(step).__name__
    if kind == "SimpleImputer":
        indicated = [] if step.indicator_ is None else step.indicator_.features_.tolist()
        fitted_to = step._fit_dtype.name
        return {"statistics": step.statistics_, "fitted_to": fitted_to, "indicated": indicated}
    if kind == "OneHotEncoder":
        rare = getattr(step, "infrequent_categories_", None)
        if rare is not None:  # as indices; by their repr, because NaN is not equal to NaN
            words = [set(map(repr, [] if some is None else some.tolist())) for some in rare]
            rare = [
                [index for index, word in enumerate(known.tolist()) if repr(word) in some]
                for known, some in zip(step.categories_, words, strict=True)
            ]
        return {"categories": step.categories_, "infrequent": rare}
    return {
        name: value
        for name, value in vars(step).items()
        if name.endswith("_") and name[0] != "_" and not name.endswith("_in_")
    }


def _packed_columns(step: Any, path: str, arrays: Arrays) -> dict[str, Any]:
    parts = []
    for (name, held, _), (_, _, columns) in zip(
        fitted_columns(step), step.transformers_, strict=True
    ):
        if not isinstance(columns, slice):
            columns = np.asarray(columns).tolist() if len(columns) else []
        parts.append([name, _packed(held, f"{path}/{name}", arrays), pack(columns, {}, name)])
    rest = step.remainder if isinstance(step.remainder, str) else "drop"
    if len(parts) > len(step.transformers):
        rest = parts.pop()[1]
    return {"parts": parts, "remainder": rest, "sparse": bool(step.sparse_output_)}


def restore_steps(
    stored: Any, width: int | None, arrays: Arrays, limits: Limits, path: str = ""
) -> tuple[NamedSteps, int | None]:
    """The steps that ``pack_steps`` stored, and how many features the last of them gives."""
    steps: NamedSteps = []
    for name, held in stored:
        is_own = isinstance(name, str) and name not in dict(steps) and "__" not in name
        require(is_own, f"the step {shortened(name, 40)!r} has no name of its own")
        require(held != "drop", "only columns can be dropped, not all of them")
        step, width = _restored(held, width, arrays, limits, f"{path}{name}")
        steps.append((name, step))
    return steps, width


def _restored(
    stored: Any, n_given: int | None, arrays: Arrays, limits: Limits, path: str
) -> tuple[Any, int | None]:
    """The step that ``_packed`` stored, and how many features it gives."""
    limits.take(steps=1)
    if isinstance(stored, str) and stored in WORDS:
        return stored, 0 if stored == "drop" else n_given
    shown = shortened(path, 80)
    kind, n_features = stored["step"], stored["n_features"]
    require(kind in STEPS, f"the step {shown!r} is not one of {', '.join(STEPS)}")
    require(
        type(n_features) is int and n_features >= 1 and n_given in (None, n_features),
        f"the step {shown!r} takes {n_features} features, but {n_given} come to it",
    )
    limits.take(depth=1, columns=n_features)
    names = stored["feature_names"]
    of_names = [str] * n_features
    are_names = names is None or (type(names) is list and [*map(type, names)] == of_names)
    require(are_names, f"the step {shown!r} does not have {n_features} feature names")
    width: int | None
    if kind == "Pipeline":
        steps, width = restore_steps(stored["steps"], n_features, arrays, limits, f"{path}/")
        has_any = any(not isinstance(step, str) for _, step in steps)
        require(has_any, f"the step {shown!r} holds no steps")
        step = Pipeline(steps, **restore_parameters(kind, stored["parameters"]))
    elif kind == "ColumnTransformer":
        step, width = _restored_columns(stored, n_features, names, arrays, limits, path)
    else:
        step = step_class(kind)(**restore_parameters(kind, stored["parameters"]))
        step._validate_params()
        found = unpack(stored["found"], arrays)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            width = _restore_found(step, n_features, found, limits)
    if names is not None and kind != "Pipeline":
        step.feature_names_in_ = np.array(names, dtype=object)
    if stored["output"] is not None:
        is_known = stored["output"] in ("default", "pandas", "polars")
        require(is_known, f"the output of the step {shown!r} is of no known kind")
        step.set_output(transform=stored["output"])
    limits.take(depth=-1, columns=width or 0)
    return step, width


def _restore_found(step: Any, n_features: int, found: dict[str, Any], limits: Limits) -> int:
    """Give a step what its fit has found; return how many features it gives."""
    kind = type(step).__name__
    if kind == "SimpleImputer":
        _restore_imputer(step, n_features, **found)
    elif kind == "OneHotEncoder":
        _restore_encoder(step, n_features, limits, **found)
    else:
        n_components = len(found.get("components_", ()))
        for name, value in found.items():
            whole = (n_components, n_features)
            allowed = [whole] if name == "components_" else [(), *((length,) for length in whole)]
            is_number = type(value) in (int, float, type(None))
            fits = is_number or (value.dtype.kind in "iuf" and value.shape in allowed)
            require(fits, f"{name} of a {kind} does not fit its {n_features} features")
            is_public = name.isidentifier() and name[0] != "_" and name.endswith("_")
            require(is_public, f"{shortened(name, 40)!r} is not found by a {kind}")
            vars(step)[name] = value
        step.n_features_in_ = n_features
        tried = step.transform(np.zeros((1, n_features)))
        require(np.isfinite(tried).all(), f"what a {kind} gives is not finite")
    return len(step.get_feature_names_out())


def _restore_imputer(
    step: Any, n_features: int, statistics: Array, fitted_to: str, indicated: list[int]
) -> None:
    """Fit an imputer to rows that lack the same cells; the other values do not matter."""
    is_whole = statistics.shape == (n_features,) and fitted_to in (*NUMBERS, "object")
    require(is_whole, f"an imputer has no statistics for {n_features} features")
    missing = np.zeros((2, n_features), dtype=bool)
    missing[1, np.array(indicated, dtype=np.intp)] = True
    missing[:, [value != value for value in statistics]] = True
    words = ("a", "b") if fitted_to == "object" else (1, 2)
    present = words[0] if step.missing_values != words[0] else words[1]
    rows = np.full(missing.shape, present, dtype=fitted_to)
    if missing.any():  # rows of integers cannot lack any
        rows[missing] = step.missing_values
    step.fit(rows)
    found = step.indicator_.features_.tolist() if step.add_indicator else []
    require(found == indicated, "an imputer indicates other missing values than it has met")
    step.statistics_ = statistics


def _restore_encoder(
    step: Any, n_features: int, limits: Limits, categories: list[Array],
    infrequent: list[list[int]] | None,
) -> None:  # fmt: skip
    """Fit an encoder to rows of its categories; infrequent ones occur once, the others twice."""
    is_whole = len(categories) == n_features and all(known.ndim == 1 for known in categories)
    require(is_whole, f"an encoder does not have categories for {n_features} features")
    for known in categories:
        if known.dtype.kind in "biuf":
            is_sorted = np.array_equal(np.unique(known), known, equal_nan=known.dtype.kind == "f")
            require(is_sorted, "the categories of an encoder are not in ascending order")
    n_rows = 1 if infrequent is None else 2 * max(map(len, categories))
    limits.take(cells=n_rows * n_features)
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


def _restored_columns(
    stored: dict[str, Any], n_features: int, names: Any, arrays: Arrays, limits: Limits, path: str
) -> tuple[Any, int]:
    """A ``ColumnTransformer`` of restored parts, fitted first to pass all its columns through."""
    given = SimpleNamespace(n_features_in_=n_features, feature_names_in_=names)
    parts: list[Any] = []
    for name, held, columns in stored["parts"]:
        columns = unpack(columns, {})
        indices = column_indices(columns, given)
        limits.take(columns=len(indices))
        parts.append((name, *_restored(held, len(indices), arrays, limits, f"{path}/{name}"),
                      columns, indices))  # fmt: skip
    covered = {index for part in parts for index in part[-1]}
    left = [index for index in range(n_features) if index not in covered]
    rest, width = _restored(stored["remainder"], len(left), arrays, limits, f"{path}/remainder")
    step = ColumnTransformer(
        [(name, held if isinstance(held, str) else "passthrough", indices)
         for name, held, _, _, indices in parts],
        remainder=rest if isinstance(rest, str) else "passthrough",
    ).fit(np.zeros((1, n_features)))  # fmt: skip
    step.transformers = [
        (name, clone(held, safe=False), columns) for name, held, _, columns, _ in parts
    ]
    step.remainder = clone(rest, safe=False)
    vars(step).update(restore_parameters("ColumnTransformer", stored["parameters"]))
    step._validate_params()
    weights = (step.transformer_weights or {}).values()
    are_numbers = all(type(weight) in (int, float) and abs(weight) < 1e300 for weight in weights)
    require(are_numbers, "the weights of columns are not numbers")
    parts.append(("remainder", rest, width, left, left))
    step.transformers_ = [
        (name, passing if isinstance(held, str) else held, columns)
        for (name, held, _, columns, _), (_, passing, _) in zip(
            parts, step.transformers_, strict=False
        )
    ]
    step.sparse_output_ = stored["sparse"] is True
    step.output_indices_, start = {}, 0
    for name, _, given_by, _, _ in parts:
        step.output_indices_[name] = slice(start, start + given_by) if given_by else slice(0, 0)
        start += given_by
    return step, start
