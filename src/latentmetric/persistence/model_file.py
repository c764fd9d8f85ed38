"""One file for a JSON document and its arrays, in the safetensors format.

The safetensors library checks every size against the file; nothing in the file names code. Values
that JSON does not know are objects with a key that begins with "$": ``pack`` and ``unpack``.
Memory: a write copies the arrays twice, a read takes the file's size and a bounded document.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from latentmetric.characters import shortened
from latentmetric.persistence.replacing import replacing

FORMAT_VERSION = 1
"""The newest version of the document that this library writes and reads."""

DOCUMENT_KEY = "latentmetric"
"""The key of the document in the file's metadata."""

MAX_DOCUMENT_BYTES = 16 * 2**20
MAX_DOCUMENT_ITEMS = 500_000
"""Limit on commas and brackets, which bound the number of objects that a document holds."""

MAX_TEXT_BYTES = 64 * 2**20
"""Limit on the memory of text of a fixed width: each entry takes as much as the longest."""

CHECKPOINT_MARK = b'\\"estimator\\": \\"checkpoint\\"'
"""What the beginning of a checkpoint has and that of a model has not."""

NUMBERS = ("bool", "float16", "float32", "float64", *(f"int{n}" for n in (8, 16, 32, 64)),
           *(f"uint{n}" for n in (8, 16, 32, 64)))  # fmt: skip
"""The dtypes of arrays that are stored as bytes."""

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


class ModelFileError(ValueError):
    """A file is not a model file that this version of the library can read."""


def require(condition: Any, message: str) -> None:
    """Raise ``ModelFileError`` with this message unless the condition is true."""
    if not condition:
        raise ModelFileError(message)


def write_model_file(
    path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a document and arrays, completely or not at all."""
    stored = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    document = {name: value for name, value in document.items() if name != "crc32"}
    _check_size(json.dumps(document))
    text = json.dumps(document | {"crc32": _checksum(document, stored)})
    content = safetensors.numpy.save(stored, {DOCUMENT_KEY: text})
    with replacing(path) as file:
        file.write(content)


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The document and the arrays; raise ``ModelFileError`` if they are damaged or incomplete."""
    with open(path, "rb"):  # for the system's own words where that is impossible
        pass
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(DOCUMENT_KEY, "null")
            _check_size(text)
            document = json.loads(text)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        _check_document(document)
        given = document.pop("crc32", None)
        require(given == _checksum(document, arrays), "the file is damaged: its checksum differs")
    except OSError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except Exception as error:  # whatever the libraries underneath say of a damaged file
        what = "cut short or damaged" if is_model_file(path) else "not a latentmetric model file"
        raise ModelFileError(f"{os.fspath(path)}: {what} ({told(error)})") from error
    return document, arrays


def told(error: Exception) -> str:
    """What an error says, on one line."""
    named = "" if isinstance(error, SafetensorError) else f"{type(error).__name__}: "
    return shortened(named + " ".join(str(error).split()), 200)


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a model file or a checkpoint, complete or cut short."""
    return f'"{DOCUMENT_KEY}"'.encode() in _start_of(path)


def holds_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a model file and is not the checkpoint of a fit."""
    return is_model_file(path) and CHECKPOINT_MARK not in _start_of(path)


def _start_of(path: str | os.PathLike[str]) -> bytes:
    if not os.path.isfile(path):
        return b""  # to open a pipe would be to wait for its writer
    with open(path, "rb") as file:
        start = file.read(1024)
    return start if start[8:9] == b"{" else b""


def _check_document(document: Any) -> None:
    require(isinstance(document, dict), "the file holds no latentmetric model")
    version = document.get("format_version")
    require(
        type(version) is int and 1 <= version <= FORMAT_VERSION,
        f"the file has format version {shortened(version, 20)!r}, this latentmetric reads versions "
        f"1 to {FORMAT_VERSION}; load a newer file with a newer latentmetric",
    )


def _check_size(text: str) -> None:
    n_items = sum(text.count(mark) for mark in ",[{")
    if len(text) > MAX_DOCUMENT_BYTES or n_items > MAX_DOCUMENT_ITEMS:
        raise ModelFileError(
            f"parameters, classes, feature names and history take {len(text)} bytes and "
            f"{n_items} items as JSON; a model file holds at most {MAX_DOCUMENT_BYTES} bytes and "
            f"{MAX_DOCUMENT_ITEMS} items of them"
        )


def _checksum(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> int:
    found = zlib.crc32(json.dumps(document).encode())
    for name, array in sorted(arrays.items()):
        found = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), found)
        found = zlib.crc32(array.reshape(-1).view(np.uint8).data, found)
    return found


def pack(value: Any, arrays: Arrays, name: str) -> Any:
    """A value as JSON; arrays of numbers go to ``arrays`` under names that begin with ``name``."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return _packed_array(value, arrays, name)
    if isinstance(value, list):
        return [pack(item, arrays, f"{name}_{index}") for index, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"$tuple": pack(list(value), arrays, name)}
    if isinstance(value, slice):
        return {"$slice": pack([value.start, value.stop, value.step], arrays, name)}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: pack(item, arrays, f"{name}_{key}") for key, item in value.items()}
        return {"$pairs": [pack(list(pair), arrays, name) for pair in value.items()]}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"$type": np.dtype(value).name}
    raise TypeError(f"a model file cannot hold {value!r}, which is a {type(value).__name__}")


def _packed_array(array: Array, arrays: Arrays, name: str) -> Any:
    """Products are rounded differently in another memory order, so the order is kept."""
    if array.dtype.name in NUMBERS:
        transposed = array.ndim == 2 and array.strides[0] < array.strides[1]
        name = name if name not in arrays else f"{name}_{len(arrays)}"
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        arrays[name] = np.ascontiguousarray(native.T if transposed else native)
        return {"$array": name} | ({"transposed": True} if transposed else {})
    if array.dtype.kind not in "UO" or array.ndim != 1:
        raise TypeError(f"a model file cannot hold values of dtype {array.dtype}")
    kind = "str" if array.dtype.kind == "U" else "object"
    return {"$values": [pack(value, {}, name) for value in array.tolist()], "dtype": kind}


def unpack(stored: Any, arrays: Arrays) -> Any:
    """The value that ``pack`` stored; its arrays are taken out of ``arrays``."""
    if isinstance(stored, list):
        return [unpack(item, arrays) for item in stored]
    if not isinstance(stored, dict):
        return stored
    tag = next((key for key in stored if key.startswith("$")), "")
    if not tag:
        return {key: unpack(item, arrays) for key, item in stored.items()}
    held = stored[tag]
    if tag == "$array":
        require(held in arrays, f"the array {shortened(held, 40)!r} is missing")
        array = arrays.pop(held)
        return array.T if stored.get("transposed") else array
    if tag == "$values":
        return _unpacked_values(held, stored.get("dtype"))
    if tag == "$pairs":
        return {key: unpack(item, arrays) for key, item in held}
    if tag == "$type" and held in (*NUMBERS, "object"):
        return np.dtype(held).type
    items = unpack(held, arrays)
    if tag == "$slice" and all(type(item) in (int, str, type(None)) for item in items):
        return slice(*items)
    if tag == "$tuple":
        return tuple(items)
    raise ModelFileError(f"a value is marked as {shortened(tag, 20)!r}, which is no known kind")


def _unpacked_values(values: list[Any], dtype: Any) -> Array:
    known = (str,) if dtype == "str" else (str, bool, int, float, type(None))
    fits = dtype in ("str", "object") and all(type(value) in known for value in values)
    require(fits, "a list of values does not hold what its dtype says")
    if dtype == "str":
        return np.array(values, dtype=str) if values else np.empty(0, dtype="U1")
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def check_texts(document: Any) -> None:
    """Raise unless all text of a document together takes bounded memory as arrays."""
    n_bytes, waiting = 0, [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            if value.get("dtype") == "str" and isinstance(texts := value.get("$values"), list):
                width = max((len(text) for text in texts if isinstance(text, str)), default=0)
                n_bytes += 4 * len(texts) * width
    require(
        n_bytes <= MAX_TEXT_BYTES,
        f"labels of {n_bytes:,} bytes take too much memory, because each takes as much as the "
        "longest; fit with labels of dtype object, which take only their own length",
    )


def check_text_bytes(n_values: int, width: int, allowed: int = 0) -> None:
    """Raise on text of a fixed width that would take much more memory than the file."""
    require(
        4 * n_values * width <= MAX_TEXT_BYTES + allowed,
        f"{n_values} labels of up to {width} characters take too much memory; fit with labels of "
        "dtype object, which take only their own length",
    )
