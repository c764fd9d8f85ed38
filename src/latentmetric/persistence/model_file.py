"""One file for a JSON document and the arrays that belong to it, in the safetensors format.

The format is small: eight bytes for the header's length, the header in JSON, the bytes of the
arrays. This module reads and writes it itself, so that a write is atomic and fails as an
``OSError``, and so that a read trusts nothing: every size is checked against the file before
memory is allocated, nothing is memory-mapped that another process might truncate, and no code
runs, whatever the file holds. Memory: a write copies no contiguous array, a read takes the file's
size and a bounded header.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

import numpy as np

from latentmetric.characters import shortened
from latentmetric.persistence.replacing import replacing

FORMAT_VERSION = 1
"""The newest version of the document that this library writes and reads."""

DOCUMENT_KEY = "latentmetric"
CHECKSUM_KEY = "latentmetric_crc32"
"""The keys of the document and its checksum in ``__metadata__``."""

MAX_HEADER_BYTES = 16 * 2**20
MAX_HEADER_ITEMS = 500_000
"""Limit on commas and brackets in a header, which bound the number of objects that it holds."""

SEEN_BYTES = 1024
"""Bytes at the start of a file that show whether it is a model file."""

CHECKPOINT_MARK = b'\\"estimator\\": \\"checkpoint\\"'
"""What the beginning of a checkpoint has and that of a model has not."""

MAX_DIMENSIONS = 2
MAX_NAME_LENGTH = 64

DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
}
CODES = {dtype: code for code, dtype in DTYPES.items()}

Array = np.ndarray[Any, Any]


class ModelFileError(ValueError):
    """A file is not a model file that this version of the library can read."""


@dataclass(frozen=True)
class _Place:
    """The dtype and shape of an array, and its position in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


def write_model_file(
    path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a document and arrays of at most two dimensions, completely or not at all.

    The document gets two more keys: "checksums" of the arrays, and "transposed", the names of
    those that are stored transposed because they are column-major in memory. Products with a
    matrix are rounded differently in the other memory order, so a read restores the order.
    """
    transposed = [name for name, array in arrays.items() if _is_column_major(array)]
    stored = {
        name: np.ascontiguousarray(array.T if name in transposed else array)
        for name, array in sorted(arrays.items())
    }
    checksums = {name: zlib.crc32(_bytes_of(array)) for name, array in stored.items()}
    text = json.dumps(
        dict(document) | {"transposed": transposed, "checksums": checksums}, allow_nan=False
    )
    header: dict[str, Any] = {
        "__metadata__": {DOCUMENT_KEY: text, CHECKSUM_KEY: _checksum_of(text)}
    }
    start = 0
    for name, array in stored.items():
        stop = start + array.nbytes
        code = CODES[array.dtype.newbyteorder("<")]
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": [start, stop]}
        start = stop
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)  # so that the arrays are aligned in the file
    _check_header_size(encoded)
    with replacing(path) as file:
        file.write(len(encoded).to_bytes(8, "little"))
        file.write(encoded)
        for array in stored.values():
            file.write(_bytes_of(array))


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """The document and the arrays; raise ``ModelFileError`` if they are damaged or incomplete."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        if os.path.isdir(path):
            raise IsADirectoryError(f"{os.fspath(path)} is a folder, not a model file")
        raise ModelFileError(f"{os.fspath(path)} is not a regular file")
    with open(path, "rb", buffering=0) as file:
        try:
            return _read(file)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)}: {error}") from error.__cause__


def _read(file: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    file_bytes = os.fstat(file.fileno()).st_size
    header, header_bytes = _read_header(file, file_bytes)
    document = _document_of(header)
    checksums, transposed = document.get("checksums"), document.get("transposed")
    if not isinstance(checksums, dict) or checksums.keys() != header.keys():
        raise ModelFileError("the document does not have one checksum for each array")
    if not isinstance(transposed, list) or any(
        not isinstance(name, str) or name not in header for name in transposed
    ):
        raise ModelFileError("the document's list of transposed arrays has unknown names")
    places = {name: _place(name, entry) for name, entry in header.items()}
    _check_places(places, file_bytes - 8 - header_bytes)
    arrays = {}
    for name, place in places.items():
        array = _read_array(file, name, 8 + header_bytes, place)
        if zlib.crc32(_bytes_of(array)) != checksums[name]:
            raise ModelFileError(f"the array {name!r} is damaged: its checksum differs")
        array = array.astype(place.dtype.newbyteorder("="), copy=False)
        arrays[name] = array.T if name in transposed else array
    return document, arrays


def _read_header(file: Any, file_bytes: int) -> tuple[dict[str, Any], int]:
    start = file.read(SEEN_BYTES)
    if not _begins_like_a_model(start):
        raise ModelFileError(f"not a latentmetric model file{_what_else(start)}")
    length = int.from_bytes(start[:8], "little")
    if length > file_bytes - 8:
        raise ModelFileError(
            f"cut short: the header has {length} bytes, but only {file_bytes - 8} are left"
        )
    file.seek(8)
    encoded = bytes(_exactly(file, bytearray(length)))
    try:
        _check_header_size(encoded)
        header = strict_json(encoded.decode())
    except ValueError as error:
        raise ModelFileError(f"the header is not valid: {error}") from error
    if not isinstance(header, dict) or not all(map(_is_name, header)):
        raise ModelFileError("the header is not a JSON object of named arrays")
    return header, length


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a model file or a checkpoint, complete or cut short."""
    start = _start_of(path)
    return _begins_like_a_model(start) and f'"{DOCUMENT_KEY}"'.encode() in start


def holds_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a model file and is not the checkpoint of a fit."""
    return is_model_file(path) and CHECKPOINT_MARK not in _start_of(path)


def _start_of(path: str | os.PathLike[str]) -> bytes:
    if not os.path.isfile(path):
        return b""  # to open a pipe would be to wait for its writer
    with open(path, "rb") as file:
        return file.read(SEEN_BYTES)


def _begins_like_a_model(start: bytes) -> bool:
    return start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= MAX_HEADER_BYTES


def _what_else(start: bytes) -> str:
    """What a file that is not a model seems to be, judging by its first bytes."""
    if not start:
        return ", it is empty"
    text = start.decode(errors="replace").rstrip("\ufffd")  # the last character may be cut
    is_text = "\0" not in text and "\ufffd" not in text
    return ", it looks like text" if is_text else ""


def check_document_size(document: Mapping[str, Any]) -> None:
    """Raise if a document is larger than a model file holds, before there are arrays."""
    _check_header_size(json.dumps({DOCUMENT_KEY: json.dumps(document)}).encode())


def _check_header_size(encoded: bytes) -> None:
    n_items = sum(encoded.count(mark) for mark in (b",", b"[", b"{"))
    if len(encoded) > MAX_HEADER_BYTES or n_items > MAX_HEADER_ITEMS:
        raise ValueError(
            f"parameters, classes, feature names and history take {len(encoded)} bytes and "
            f"{n_items} items as JSON; a model file holds at most {MAX_HEADER_BYTES} bytes and "
            f"{MAX_HEADER_ITEMS} items of them"
        )


def _document_of(header: dict[str, Any]) -> dict[str, Any]:
    """Remove the document from the header and return it; only the arrays remain there."""
    metadata = header.pop("__metadata__", None)
    text = metadata.get(DOCUMENT_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise ModelFileError("the file holds no latentmetric model")
    try:
        document = strict_json(text)
    except ValueError as error:
        raise ModelFileError(f"the document is not valid: {error}") from error
    if not isinstance(document, dict):
        raise ModelFileError("the document is not a JSON object")
    version: Any = document.get("format_version")
    if not _is_count(version) or version < 1:
        raise ModelFileError(
            f"the format version is {shortened(version, 20)!r}, not an integer above 0"
        )
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"the file has format version {version}, this latentmetric reads versions up to "
            f"{FORMAT_VERSION}; load it with a newer latentmetric"
        )
    if metadata.get(CHECKSUM_KEY) != _checksum_of(text):
        raise ModelFileError("the document is damaged: its checksum differs")
    return document


def strict_json(text: str) -> Any:
    """Parse JSON; raise ``ValueError`` on anything that parsers disagree about.

    That is duplicate keys, numbers beyond float64, NaN, and nesting deeper than Python recurses.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_without_duplicates, parse_float=_finite,
            parse_constant=_no_constant,
        )  # fmt: skip
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("a number is too large for float64")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _place(name: str, entry: Any) -> _Place:
    """The header's entry of an array; raise if it is not consistent in itself."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"the array {name!r} is not described by dtype, shape and offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        raise ModelFileError(
            f"the array {name!r} has dtype {shortened(code, 20)!r}; "
            f"a model file holds only {', '.join(DTYPES)}"
        )
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(_is_count, shape)):
        raise ModelFileError(f"the shape of the array {name!r} is not at most 2 numbers")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise ModelFileError(f"the place of the array {name!r} is not two numbers")
    place = _Place(DTYPES[code], tuple(shape), *offsets)
    needed = prod(shape) * place.dtype.itemsize
    if place.stop - place.start != needed:
        raise ModelFileError(
            f"the array {name!r} of shape {place.shape} needs {needed} bytes, "
            f"but its place has {place.stop - place.start}"
        )
    return place


def _check_places(places: dict[str, _Place], data_bytes: int) -> None:
    """Raise unless the arrays follow each other without gap or overlap and fill the file."""
    end = 0
    for place in sorted(places.values(), key=lambda place: (place.start, place.stop)):
        if place.start != end:
            raise ModelFileError(f"arrays overlap or leave a gap at byte {end} of the data")
        end = place.stop
    if end != data_bytes:
        cut = ": it was cut short" if end > data_bytes else ""
        raise ModelFileError(
            f"the arrays need {end} bytes, but the file has {data_bytes} after its header{cut}"
        )


def _read_array(file: Any, name: str, data_start: int, place: _Place) -> Array:
    array = np.empty(place.shape, place.dtype)
    file.seek(data_start + place.start)
    _exactly(file, _bytes_of(array))
    return array


def _exactly(file: Any, buffer: Any) -> Any:
    """Fill the buffer from the file; raise if the file ends before."""
    view = memoryview(buffer)
    while len(view):
        n_read = file.readinto(view)
        if not n_read:
            raise ModelFileError("the file was cut short while it was read")
        view = view[n_read:]
    return buffer


def _bytes_of(array: Array) -> Any:
    """The array's bytes, not copied."""
    return array.reshape(-1).view(np.uint8).data


def _is_column_major(array: Array) -> bool:
    return array.ndim == 2 and array.strides[0] < array.strides[1]


def _checksum_of(text: str) -> str:
    return f"{zlib.crc32(text.encode(errors='surrogatepass')):08x}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_name(name: str) -> bool:
    return name.isidentifier() and len(name) <= MAX_NAME_LENGTH
