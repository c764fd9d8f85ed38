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

FORMAT_VERSION = 2
"""The newest version of the document that this library writes and reads."""

DOCUMENT_KEY = "latentmetric"
"""The key of the document in the file's metadata."""

MAX_DOCUMENT_BYTES = 16 * 2**20
MAX_DOCUMENT_ITEMS = 500_000
"""Limit on commas and brackets, which bound the number of objects that a document holds."""

BUDGET_BYTES, BUDGET_FACTOR = 64 * 2**20, 8
"""Memory for what is made from a file and not stored in it: this much, and a multiple of its
arrays."""

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


class Contents(Arrays):
    """The arrays of a file by name, and the memory that its model may take beside them."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays)
        n_bytes = sum(array.nbytes for array in arrays.values())
        self.budget = BUDGET_BYTES + BUDGET_FACTOR * n_bytes

    def spend(self, n_bytes: int, what: str) -> None:
        """Raise ``ModelFileError`` if less memory than this is left."""
        self.budget -= n_bytes
        require(self.budget >= 0, f"{what} would take too much memory for a file of this size")


def write_model_file(
    path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a document and arrays, completely or not at all."""
    stored = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps({**document, "crc32": _checksum(document, stored)})
    _check_size(text)
    content = safetensors.numpy.save(stored, {DOCUMENT_KEY: text})
    with replacing(path) as file:
        file.write(content)


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Contents]:
    """The document and the arrays; raise ``ModelFileError`` if they are damaged or incomplete."""
    with open(path, "rb"):  # for the system's own words where that is impossible
        pass
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(DOCUMENT_KEY, "null")
            _check_size(text)
            document = json.loads(text)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        require(isinstance(document, dict), "the file holds no latentmetric model")
        version = document.get("format_version")
        require(
            type(version) is int and 1 <= version <= FORMAT_VERSION,
            f"the file has format version {shortened(version, 20)!r}, this latentmetric reads "
            f"versions 1 to {FORMAT_VERSION}; load a newer file with a newer latentmetric",
        )
        given = document.pop("crc32", None)
        require(given == _checksum(document, arrays), "the file is damaged: its checksum differs")
    except OSError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except Exception as error:  # whatever the libraries underneath say of a damaged file
        what = "cut short or damaged" if is_model_file(path) else "not a latentmetric model file"
        raise ModelFileError(f"{os.fspath(path)}: {what} ({one_line(error)})") from error
    return document, Contents(arrays)


def one_line(error: Exception) -> str:
    """What an error says, on one line."""
    named = "" if isinstance(error, SafetensorError) else f"{type(error).__name__}: "
    return shortened(named + " ".join(str(error).split()), 200)


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a model file or a checkpoint, complete or cut short."""
    if not os.path.isfile(path):
        return False  # to open a pipe would be to wait for its writer
    with open(path, "rb") as file:
        start = file.read(1024)
    return start[8:9] == b"{" and f'"{DOCUMENT_KEY}"'.encode() in start


def _check_size(text: str) -> None:
    n_items = sum(text.count(mark) for mark in ",[{")
    require(
        len(text) <= MAX_DOCUMENT_BYTES and n_items <= MAX_DOCUMENT_ITEMS,
        f"parameters, classes, feature names and history take {len(text)} bytes and {n_items} "
        f"items as JSON; a model file holds at most {MAX_DOCUMENT_BYTES} bytes and "
        f"{MAX_DOCUMENT_ITEMS} items of them",
    )


def _checksum(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> int:
    found = zlib.crc32(json.dumps(document).encode())
    for name, array in sorted(arrays.items()):
        found = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), found)
        found = zlib.crc32(array.reshape(-1).view(np.uint8).data, found)
    return found


def pack(value: Any, arrays: Arrays, name: str) -> Any:
    """A value as JSON; arrays of numbers go to ``arrays`` under names that begin with ``name``.

    Products are rounded differently in another memory order, so the order is kept.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list):
        return [pack(item, arrays, f"{name}_{index}") for index, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"$tuple": pack(list(value), arrays, name)}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: pack(item, arrays, f"{name}_{key}") for key, item in value.items()}
        return {"$pairs": [pack(list(pair), arrays, name) for pair in value.items()]}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"$type": np.dtype(value).name}
    if isinstance(value, np.ndarray) and value.dtype.name in NUMBERS:
        transposed = value.ndim == 2 and value.strides[0] < value.strides[1]
        name = name if name not in arrays else f"{name}_{len(arrays)}"
        native = value.astype(value.dtype.newbyteorder("="), copy=False)
        arrays[name] = np.ascontiguousarray(native.T if transposed else native)
        return {"$array": name} | ({"transposed": True} if transposed else {})
    if isinstance(value, np.ndarray) and value.dtype.kind in "UO" and value.ndim == 1:
        kind = "str" if value.dtype.kind == "U" else "object"
        return {"$values": pack(value.tolist(), {}, name), "dtype": kind}
    shown = f"values of dtype {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
    raise TypeError(f"a model file cannot hold {shown}, which is a {type(value).__name__}")


def unpack(stored: Any, contents: Contents) -> Any:
    """The value that ``pack`` stored; its arrays are taken out of ``contents``."""
    if isinstance(stored, list):
        return [unpack(item, contents) for item in stored]
    if not isinstance(stored, dict):
        return stored
    tag = next((key for key in stored if key.startswith("$")), "")
    if not tag:
        return {key: unpack(item, contents) for key, item in stored.items()}
    held = stored[tag]
    if tag == "$tuple":
        return tuple(unpack(held, contents))
    if tag == "$pairs":
        return {key: unpack(item, contents) for key, item in held}
    if tag == "$type" and held in (*NUMBERS, "object"):
        return np.dtype(held).type
    if tag == "$array":
        require(held in contents, f"the array {shortened(held, 40)!r} is missing")
        array = contents.pop(held)
        return array.T if stored.get("transposed") else array
    if tag == "$values":
        is_text = stored["dtype"] == "str"
        known = (str,) if is_text else (str, bool, int, float, type(None))
        fits = all(type(value) in known for value in held)
        require(fits, "a list of values does not hold what its dtype says")
        width = max(map(len, held), default=1) if is_text else 0
        contents.spend(4 * len(held) * width, "text as wide as the longest (dtype object is not)")
        array = np.empty(len(held), dtype=f"U{width or 1}" if is_text else object)
        array[:] = held
        return array
    raise ModelFileError(f"a value is marked as {shortened(tag, 20)!r}, which is no known kind")
