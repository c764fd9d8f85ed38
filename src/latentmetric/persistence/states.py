"""States of algorithms as arrays and JSON, and back: dataclasses of arrays, numbers and words.

An algorithm need not know that its states are stored. A restored state has the types that the
dataclass declares; the algorithm's own check decides whether the values make sense.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from latentmetric.persistence.model_file import ModelFileError
from latentmetric.persistence.values import (
    history_as_json,
    history_from_json,
    number_of_record,
)

Arrays = dict[str, np.ndarray[Any, Any]]

WIDE = {"i": np.int64, "u": np.int64, "b": np.int64}
"""The dtype in which a model file stores each kind of integer or boolean array."""

KINDS = {np.floating: "f", np.intp: "iu", np.bool_: "b"}
"""The kinds of dtypes that an array may have for each type that a state declares."""


def packed(value: Any, name: str, arrays: Arrays) -> Any:
    """A value as JSON; its arrays are added to ``arrays`` under names that begin with ``name``."""
    if is_dataclass(value):
        return {
            field.name: packed(getattr(value, field.name), f"{name}_{field.name}", arrays)
            for field in fields(value)
            if field.metadata.get("stored", True)
        }
    if isinstance(value, np.ndarray):
        stored = value.astype(WIDE.get(value.dtype.kind, value.dtype), copy=False)
        arrays[name] = stored if stored.ndim <= 2 else stored.reshape(len(stored), -1)
        return {"array": name, "dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, tuple):
        return [packed(item, f"{name}_{place}", arrays) for place, item in enumerate(value)]
    if isinstance(value, dict):
        return history_as_json([value])[0]
    return history_as_json([{"value": value}])[0]["value"]


def unpacked(kind: Any, stored: Any, arrays: Arrays) -> Any:
    """The value of this type that ``packed`` stored; raise ``ModelFileError`` if it is not one."""
    try:
        return _unpacked(kind, stored, arrays)
    except ModelFileError:
        raise
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ModelFileError(f"{type(error).__name__}: {error}") from error


def _unpacked(kind: Any, stored: Any, arrays: Arrays) -> Any:
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return cast("Any", kind)(
            **{
                field.name: _unpacked(hints[field.name], stored[field.name], arrays)
                for field in fields(kind)
                if field.metadata.get("stored", True)
            }
        )
    origin = get_origin(kind) or kind
    if origin is tuple:
        return tuple(_unpacked(get_args(kind)[0], item, arrays) for item in stored)
    if origin is np.ndarray:
        return _array(kind, stored, arrays)
    if origin is dict:
        return history_from_json([stored])[0]
    if origin in (Union, types.UnionType):
        raise TypeError("a state has no fields of several types")
    if kind is str:
        if not isinstance(stored, str):
            raise TypeError(f"{stored!r} is not a string")
        return stored
    value = number_of_record(int(stored) if kind is bool else stored)
    if kind is bool and type(stored) is not bool:
        raise TypeError(f"{stored!r} is not True or False")
    if kind is int and type(value) is not int:
        raise TypeError(f"{value!r} is not an integer")
    return kind(value)


def _array(kind: Any, stored: Any, arrays: Arrays) -> np.ndarray[Any, Any]:
    array, dtype = arrays[stored["array"]], np.dtype(stored["dtype"])
    if dtype.kind not in _kinds(kind):
        raise ValueError(f"{stored['array']} holds {dtype}, which is not what belongs there")
    narrowed = array.astype(dtype, copy=False)
    if not np.array_equal(narrowed, array, equal_nan=True):
        raise ValueError(f"{stored['array']} does not fit into {dtype}")
    return narrowed.reshape(stored["shape"])


def _kinds(kind: Any) -> str:
    """The kinds of dtypes that the declared type of an array allows: all, if it names none."""
    found = [get_args(dtype) for dtype in get_args(kind)[1:]]
    declared: Any = found[0][0] if found and found[0] else object
    return KINDS.get(get_origin(declared) or declared, "".join(KINDS.values()))
