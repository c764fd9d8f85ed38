"""Values that a step of a pipeline has learned or was given: numbers, words, lists of them.

Numbers in float32, float64 and int64 become arrays of the model file. Everything else becomes
JSON, with marks where JSON alone would lose the type.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from latentmetric.characters import shortened
from latentmetric.persistence.model_file import CODES, ModelFileError
from latentmetric.persistence.values import (
    MAX_LABEL_BYTES,
    NOT_FINITE,
    NUMBERS,
    REALS,
    check_label_bytes,
)

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]

DTYPES = ("bool", *NUMBERS, *REALS, "object")
"""The dtypes of values that are JSON, beside text."""


def cell_as_json(value: Any) -> Any:
    """One value; a number that is not finite is marked. Raise ``TypeError`` on other types."""
    if isinstance(value, np.generic) and not isinstance(value, np.bytes_ | np.datetime64):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return {"number": str(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"a model file cannot hold {value!r}, which is a {type(value).__name__}")


def cell_from_json(stored: Any) -> Any:
    """The value that ``cell_as_json`` stored."""
    if isinstance(stored, dict):
        if stored.keys() != {"number"} or stored["number"] not in NOT_FINITE:
            raise ModelFileError("a value of a step is not a number or a word")
        return NOT_FINITE[stored["number"]]
    if stored is None or isinstance(stored, bool | int | float | str):
        return stored
    raise ModelFileError("a value of a step is not a number or a word")


def values_as_json(values: Array, name: str, arrays: Arrays) -> Any:
    """A list of values with its dtype, or the name of the array that holds them from now on."""
    if values.dtype.newbyteorder("<") in CODES:
        key = f"step_{len(arrays)}_{name}"
        arrays[key] = values
        return {"array": key}
    if values.dtype.kind == "U":
        width = max(1, values.dtype.itemsize // 4)
        return {"dtype": "str", "width": width, "values": values.tolist()}
    if values.dtype.name not in DTYPES:
        raise TypeError(f"a model file cannot hold values of dtype {values.dtype}")
    return {"dtype": values.dtype.name, "values": [cell_as_json(value) for value in values]}


def values_from_json(stored: Any, arrays: Arrays) -> Array:
    """The values that ``values_as_json`` stored; an array is taken out of ``arrays``."""
    if not isinstance(stored, dict):
        raise ModelFileError("the values of a step are not an array or a list with a dtype")
    if "array" in stored:
        return taken(stored["array"], arrays)
    dtype = _dtype(stored)
    if not isinstance(stored.get("values"), list):
        raise ModelFileError("the values of a step are not a list")
    cells = [cell_from_json(cell) for cell in stored["values"]]
    if dtype.kind == "U" and not all(isinstance(cell, str) for cell in cells):
        raise ModelFileError("the values of a step are text, but not all of them are words")
    check_label_bytes(len(cells), dtype)
    values = np.empty(len(cells), dtype)
    values[:] = cells
    return values


def _dtype(stored: dict[str, Any]) -> np.dtype[Any]:
    name, width = stored.get("dtype"), stored.get("width")
    if name == "str":
        if type(width) is not int or not 0 < width <= MAX_LABEL_BYTES:
            raise ModelFileError("the width of the words of a step is not valid")
        dtype: np.dtype[Any] = np.dtype(("U", width))
        return dtype
    if name not in DTYPES:
        raise ModelFileError(f"the values of a step have the unknown dtype {shortened(name, 20)!r}")
    return np.dtype(str(name))


def taken(name: Any, arrays: Arrays) -> Array:
    """An array of the file, which is nothing else's from now on."""
    if not isinstance(name, str) or name not in arrays:
        raise ModelFileError(f"the array {shortened(name, 40)!r} of a step is missing")
    return arrays.pop(name)


def parameter_as_json(value: Any) -> Any:
    """A parameter: a value, a NumPy type, or a list, tuple or dict of parameters."""
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return {"dtype": np.dtype(value).name}
    if isinstance(value, list | tuple | np.ndarray):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [parameter_as_json(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"by_name": {name: parameter_as_json(item) for name, item in value.items()}}
    return cell_as_json(value)


def parameter_from_json(stored: Any) -> Any:
    """The parameter that ``parameter_as_json`` stored."""
    if not isinstance(stored, dict) or "number" in stored:
        return cell_from_json(stored)
    if len(stored) != 1:
        raise ModelFileError("a parameter of a step is not of one type")
    ((kind, held),) = stored.items()
    if kind == "dtype" and held in DTYPES:
        found: Any = np.dtype(held).type
        return found
    if kind == "by_name" and isinstance(held, dict):
        return {name: parameter_from_json(item) for name, item in held.items()}
    if kind not in ("list", "tuple") or not isinstance(held, list):
        raise ModelFileError("a parameter of a step is of no known type")
    items = [parameter_from_json(item) for item in held]
    return tuple(items) if kind == "tuple" else items
