"""What an array of zarr may ask for: codecs that only compute, and values that are no objects.

A codec is code that the description of an array names, and some of them unpickle. So descriptions
are read here, before zarr sees them, and what is not on these lists is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from latentmetric.io.arrays import RefusedError

CODECS = frozenset(
    (
        "bytes", "transpose", "sharding_indexed", "vlen-utf8", "vlen-bytes",
        "blosc", "gzip", "zlib", "zstd", "lz4", "lzma", "bz2",
        "shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "packbits", "astype",
        "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3",
    )
)  # fmt: skip
"""Their names in both formats; the third also has all but Blosc with "numcodecs." before."""

TYPES = frozenset(
    (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "string", "variable_length_bytes", "bytes",
        "fixed_length_utf32", "null_terminated_bytes",
    )
)  # fmt: skip
"""Of values, in format 3."""

NUMPY_TYPE = re.compile(r"[<>|=]?([biuf]\d{1,2}|[SU]\d{1,9}|\?|bool|u?int\d{1,2}|float\d{2})")
"""Of values in format 2, and of what codecs make: numbers, Booleans, text of a fixed length."""

OBJECT_CODECS = ("vlen-utf8", "vlen-bytes")
"""What makes text of any length out of bytes, which format 2 calls objects."""


def refuse_unknown_2(description: dict[str, Any]) -> None:
    """Refuse an array of format 2 if it asks for anything that is not listed."""
    filters = [_codec(given, "id") for given in _listed(description.get("filters") or [])]
    compressor = description.get("compressor")
    packed = [] if compressor is None else [_codec(compressor, "id")]
    for name, settings in [*filters, *packed]:
        _refuse_codec(name, settings)
    kind = description.get("dtype")
    if kind == "|O" and filters and filters[0][0] in OBJECT_CODECS:
        return
    if not isinstance(kind, str) or not NUMPY_TYPE.fullmatch(kind):
        raise RefusedError(f"it holds values of the type {kind!r}, not numbers or text")


def refuse_unknown_3(description: dict[str, Any]) -> None:
    """Refuse an array of format 3 if it asks for anything that is not listed."""
    for name, settings in _nested(description.get("codecs")):
        known = name if name == "numcodecs.blosc" else name.removeprefix("numcodecs.")
        _refuse_codec(known, settings)
        if "id" in settings:
            raise RefusedError(f"its codec {name!r} is given another name, {settings['id']!r}")
    held = description.get("data_type")
    kind = held.get("name") if isinstance(held, dict) else held
    if kind not in TYPES:
        raise RefusedError(f"it holds values of the type {kind!r}, not numbers or text")


def _refuse_codec(name: str, settings: dict[str, Any]) -> None:
    if name not in CODECS:
        raise RefusedError(
            f"it uses the codec {name!r}, and codecs can run code; write it again with one that "
            "is known to be harmless, such as zstd for numbers and vlen-utf8 for text"
        )
    for key in ("dtype", "astype", "encode_dtype", "decode_dtype"):
        kind = settings.get(key)
        if kind is not None and not (isinstance(kind, str) and NUMPY_TYPE.fullmatch(kind)):
            raise RefusedError(f"its codec {name!r} makes values of the type {kind!r}")


def _nested(codecs: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and the settings of each codec of format 3, and of those within it."""
    for given in _listed(codecs):
        held = {"name": given} if isinstance(given, str) else given
        name, _ = _codec(held, "name")
        settings = held.get("configuration") or {}
        if not isinstance(settings, dict):
            raise ValueError(f"the configuration of its codec {name!r} is not a JSON object")
        yield name, settings
        for within in ("codecs", "index_codecs"):
            yield from _nested(settings.get(within, []))


def _codec(given: Any, key: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(given, dict) or not isinstance(given.get(key), str):
        raise ValueError(f"one of its codecs is {given!r}, which has no {key}")
    return given[key], given


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"its codecs are {value!r}, not a list")
    return value
