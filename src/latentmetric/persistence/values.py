"""Parameters, labels and history as JSON and back, with every value checked on the way back.

Invalid contents of a file raise ``ModelFileError``. Values that a file cannot hold raise
``TypeError`` or ``ValueError`` when the model is saved, before anything is written.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from latentmetric.characters import shortened
from latentmetric.core.starts import STARTS
from latentmetric.persistence.model_file import ModelFileError

Labels = np.ndarray[Any, Any]


@dataclass(frozen=True)
class StoredArray:
    """A fitted attribute that is an array of numbers."""

    shape: tuple[str | int | None, ...]
    """Each length is a number, "n_features", "n_classes", "n_latents", or None for any."""
    dtype: Any = None
    """None means the dtype of the model."""
    least: float | None = None
    """No number may be below this."""
    is_newer: bool = False
    """Whether files of earlier versions lack it; the estimator then lacks the attribute, too."""
    instead: float | None = None
    """What to fill the attribute with in that case, if there is such a number."""


@dataclass(frozen=True)
class StoredLabels:
    """A fitted attribute of labels, stored as ascending codes."""

    array: str
    """The name of the codes in the file."""
    beside: str
    """The attribute with one row per label; it is stored first."""


@dataclass(frozen=True)
class StoredWord:
    """A fitted attribute that is one of a few words."""

    words: tuple[str, ...]


StoredValue = StoredArray | StoredLabels | StoredWord
"""How a model file stores an attribute that only one estimator has."""

MAX_LABEL_BYTES = 64 * 2**20
"""Limit on the memory of labels of a fixed width, which every label takes in full."""

MAX_PADDING = 256
"""Width in characters up to which labels keep theirs, though none of them may be as long."""

NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REALS = ("float16", "float32", "float64")

WORDS = {"start": STARTS}
"""The words that a record may hold under each of these names."""

GROUPS = {"seconds", "start_losses", "start_errors"}
"""Under these names, a record holds numbers by name."""

COLUMNS = ("label", "id")
"""Columns of a file of features whose names a model may know, beside those of the features."""

NOT_FINITE = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def classes_as_json(classes: Labels) -> dict[str, Any]:
    """Labels with their dtype."""
    dtype = classes.dtype
    values = classes.tolist()
    if dtype.kind == "U":
        width = _width_of(dtype.itemsize // 4, values)
        check_label_bytes(len(classes), np.dtype(("U", width)))
        return {"dtype": "str", "width": width, "values": values}
    if dtype.kind == "O" and all(type(value) is str for value in values):
        return {"dtype": "object", "values": values}
    if dtype.name in ("bool", *NUMBERS, *REALS):
        return {"dtype": dtype.name, "values": values}
    raise TypeError(
        f"a model file holds labels that are integers, floats, booleans or strings, but the "
        f"classes are {dtype.name}, such as {values[0]!r}; fit with labels converted to strings"
    )


def classes_from_json(stored: Any) -> Labels:
    """Labels in ascending order, at least two."""
    if not isinstance(stored, dict) or not isinstance(stored.get("values"), list):
        raise ModelFileError("the classes are not given as a dtype and values")
    values, dtype = stored["values"], _label_dtype(stored)
    if dtype.kind == "U" and all(isinstance(value, str) for value in values):
        dtype = np.dtype(("U", _width_of(dtype.itemsize // 4, values)))
    kind = {"U": str, "O": str, "b": bool, "f": float}.get(dtype.kind, int)
    if any(type(value) is not kind for value in values):
        raise ModelFileError(f"the classes have dtype {dtype}, but not all values are of that type")
    check_label_bytes(len(values), dtype)
    if dtype.kind in "iu":
        held = range(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
        if not all(value in held for value in values):
            raise ModelFileError(f"a class is out of the range of {dtype}")
    with np.errstate(over="ignore"):
        classes = np.array(values, dtype=dtype)
    if classes.tolist() != values:
        raise ModelFileError(f"a class cannot be represented exactly in {dtype}")
    if len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
        raise ModelFileError("the classes are not at least two distinct labels in ascending order")
    return classes


def _label_dtype(stored: dict[str, Any]) -> np.dtype[Any]:
    name, width = stored.get("dtype"), stored.get("width")
    dtype: np.dtype[Any]
    if name == "str":
        if type(width) is not int or not 0 < width <= MAX_LABEL_BYTES:
            raise ModelFileError("the classes are strings, but their width is not valid")
        dtype = np.dtype(("U", width))
        return dtype
    if name not in ("object", "bool", *NUMBERS, *REALS):
        raise ModelFileError(f"the classes have the unknown dtype {shortened(name, 20)!r}")
    dtype = np.dtype(name)
    return dtype


def _width_of(declared: int, values: list[str]) -> int:
    """The declared width, unless all labels are much shorter: each answer takes all of it."""
    longest = max(map(len, values), default=0)
    return min(declared, max(longest, MAX_PADDING))


def check_label_bytes(n_labels: int, dtype: np.dtype[Any], allowed: int = 0) -> None:
    """Raise on labels of a declared width that would take too much more memory than the file."""
    if n_labels * dtype.itemsize > MAX_LABEL_BYTES + allowed:
        raise ModelFileError(
            f"{n_labels} labels of {dtype.itemsize} bytes each take too much memory; fit with "
            "labels of dtype object, which take only their own length"
        )


def parameters_as_json(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Parameters as JSON, and the names of those stored as null because a file cannot hold them."""
    stored: dict[str, Any] = {}
    not_stored = []
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            pairs = [[_plain(label), _plain(number)] for label, number in value.items()]
            stored[name] = {"by_class": pairs}
        elif name == "random_state" and not isinstance(value, int | np.integer | None):
            stored[name] = None
            not_stored.append(name)
        else:
            stored[name] = _plain(value)
    return stored, not_stored


def parameters_from_json(stored: Any, names: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by name, of simple types; the estimator's own checks judge the values."""
    if not isinstance(stored, dict):
        raise ModelFileError("the parameters are not a JSON object")
    unknown = stored.keys() - names.keys()
    if unknown:
        raise ModelFileError(
            f"{len(unknown)} parameter(s) are unknown, such as {shortened(min(unknown), 40)!r}"
        )
    parameters: dict[str, Any] = {}
    for name, value in stored.items():
        if isinstance(value, dict):
            parameters[name] = _by_class(name, value)
        elif value is None or isinstance(value, bool | int | float | str):
            parameters[name] = value
        else:
            raise ModelFileError(f"the parameter {name} is not a simple value")
    seed = parameters.get("random_state")
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**32):
        raise ModelFileError("random_state is not a seed from 0 to 2**32 - 1")
    return parameters


def _by_class(name: str, stored: dict[str, Any]) -> dict[Any, Any]:
    pairs = stored.get("by_class")
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int | float)
        for pair in pairs
    ):
        raise ModelFileError(f"the parameter {name} is not a list of pairs of a class and a number")
    return dict(pairs)


def _plain(value: Any) -> Any:
    """The same value as a type that JSON has."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a model file cannot hold the value {value!r} of {type(value).__name__}")


def history_as_json(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of numbers, of dicts of numbers and of the words of ``WORDS`` as JSON."""
    return [{name: _record_value(value) for name, value in record.items()} for record in history]


def _record_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _record_value(part) for name, part in value.items()}
    value = _plain(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


def history_from_json(stored: Any) -> list[dict[str, Any]]:
    """The records that ``history_as_json`` stored."""
    if not isinstance(stored, list) or not all(isinstance(record, dict) for record in stored):
        raise ModelFileError("the history is not a list of records")
    return [{name: _entry(name, value) for name, value in record.items()} for record in stored]


def _entry(name: str, stored: Any) -> Any:
    """One entry of a record, of the type that its name requires."""
    if name in WORDS:
        if not isinstance(stored, str) or stored not in WORDS[name]:
            raise ModelFileError(f"the {name} of a record is not one of {', '.join(WORDS[name])}")
        return stored
    if name not in GROUPS:
        return number_of_record(stored)
    if not isinstance(stored, dict):
        raise ModelFileError(f"the {name} of a record of the history are not numbers by name")
    return {part: number_of_record(value) for part, value in stored.items()}


def number_of_record(stored: Any) -> Any:
    """A number, which need not be finite."""
    if isinstance(stored, str) and stored in NOT_FINITE:
        return NOT_FINITE[stored]
    if type(stored) in (int, float) and abs(stored) <= sys.float_info.max:
        return stored
    raise ModelFileError("a record of the history holds something that is not a number")


def rounds_from_json(stored: Any) -> list[dict[str, Any]]:
    """The history of a model: for each round its number, seconds by part, and measurements."""
    history = history_from_json(stored)
    if not history:
        raise ModelFileError("the history holds no round")
    for record in history:
        count_from_json(record.get("round"), "the round of a record of the history")
        seconds = record.get("seconds")
        if not isinstance(seconds, dict) or not all(map(isfinite, seconds.values())):
            raise ModelFileError("the seconds of a record of the history are not numbers by name")
    return history


def check_versions(stored: Any) -> None:
    """Raise unless the versions are strings by name."""
    if not isinstance(stored, dict) or not all(
        isinstance(version, str) for version in stored.values()
    ):
        raise ModelFileError("the versions are not strings by name")


def feature_names_from_json(stored: Any, n_features: int) -> Labels | None:
    """One string per feature, or None."""
    if stored is None:
        return None
    if not isinstance(stored, list) or not all(isinstance(name, str) for name in stored):
        raise ModelFileError("the feature names are not strings")
    if len(stored) != n_features:
        raise ModelFileError(f"{len(stored)} feature names are given for {n_features} features")
    return np.array(stored, dtype=object)


def columns_from_json(stored: Any) -> dict[str, str] | None:
    """The names of the labels and of the ids in the file that a model was fitted with, or None."""
    if stored is None:
        return None
    if (
        not isinstance(stored, dict)
        or not stored.keys() <= set(COLUMNS)
        or not all(isinstance(name, str) for name in stored.values())
    ):
        raise ModelFileError(f"the columns are not names of {' and '.join(COLUMNS)}")
    return stored


def number_from_json(stored: Any, name: str, least: float) -> float:
    """A finite number of at least ``least``."""
    if type(stored) not in (int, float) or not least <= stored <= sys.float_info.max:
        raise ModelFileError(f"{name} is not a finite number of at least {least}")
    return float(stored)


def count_from_json(stored: Any, name: str, least: int = 0) -> int:
    """An integer of at least ``least``."""
    if type(stored) is not int or not least <= stored < 2**63:
        raise ModelFileError(f"{name} is not an integer of at least {least}")
    return stored
