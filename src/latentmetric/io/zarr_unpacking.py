"""Codecs that unpack chunks of zarr no further than the shape and the type of an array allow.

A few kilobytes can unpack to gigabytes. Blosc also believes the header of a chunk, and reads beyond
one that was cut: into memory of others, or to the end of the process. Arrays that name a codec that
packs are given one of these instead.
"""

from __future__ import annotations

import asyncio
import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import UnsupportedOperation
from math import prod
from typing import Any

import numcodecs
import numpy as np
import zarr.registry
from numcodecs.abc import Codec
from zarr.abc.codec import BytesBytesCodec

from latentmetric.characters import shortened

NAME = "latentmetric.unpacking"
"""Of both codecs below, one for each format of zarr."""

ONLY_READ = "this codec only unpacks; write the array with the codec that packed it"

BLOSC_HEADER_BYTES = 16
LZ4_HEADER_BYTES = 4

LARGEST_OVERHANG = 2**28
"""Bytes of a chunk that may be larger than the whole array."""

VALUE_BYTES = 16
"""Of a value within filters, which may give it another type, and its share of a shard's index."""

TEXT_BYTES = 2**10
"""Of a text of any length, on average."""

MOST_DICTIONARY_BYTES = 2**28
"""Of what LZMA remembers while it unpacks."""


def most_bytes(description: dict[str, Any]) -> int:
    """To how many bytes a chunk may unpack; refuse chunks far larger than their array."""
    shape, chunks = description.get("shape"), chunk_shape(description)
    if not _are_sizes(shape) or len(shape) != len(chunks):  # type: ignore[arg-type]
        raise ValueError(f"its shape {shape} and its chunks {chunks} do not go together")
    width = _width(description)
    each, whole = (prod(sizes) * (width or VALUE_BYTES) for sizes in (chunks, shape))  # type: ignore[arg-type]
    if each > max(2 * whole, LARGEST_OVERHANG):
        raise ValueError(
            f"each of its chunks takes {each:,} bytes, but the whole array {whole:,}; write it "
            "again with smaller chunks"
        )
    if width is None:
        return prod(chunks) * TEXT_BYTES + 2**26
    return prod(chunks) * max(width, VALUE_BYTES) + 2**16


def chunk_shape(description: dict[str, Any]) -> list[int]:
    """The shape of a chunk, or of a shard of them, which is one file."""
    chunks = description.get("chunks")
    grid = description.get("chunk_grid")
    if isinstance(grid, dict) and isinstance(grid.get("configuration"), dict):
        chunks = grid["configuration"].get("chunk_shape")
    if not _are_sizes(chunks) or 0 in chunks:  # type: ignore[operator]
        raise ValueError(f"its chunks have the shape {shortened(chunks, 40)}, not numbers above 0")
    return chunks  # type: ignore[return-value]


def _are_sizes(sizes: Any) -> bool:
    return isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)


def _width(description: dict[str, Any]) -> int | None:
    """Bytes of a value; None for text of any length."""
    kind = description.get("dtype", description.get("data_type"))
    if isinstance(kind, dict):
        settings = kind.get("configuration")
        length = settings.get("length_bytes") if isinstance(settings, dict) else None
        return length if type(length) is int and length > 0 else None
    if kind in ("|O", "string", "variable_length_bytes", "bytes"):
        return None
    return int(np.dtype(kind).itemsize)


def bounded(codecs: Any, most: int) -> Any:
    """The description of codecs with those here in place of others, also within shards."""
    if isinstance(codecs, list):
        return [bounded({"name": c} if isinstance(c, str) else c, most) for c in codecs]
    if not isinstance(codecs, dict):
        return codecs
    if codecs.get("id") in UNPACKERS:
        return {"id": NAME, "packed_by": codecs["id"], "settings": codecs, "most": most}
    name, settings = codecs.get("name"), codecs.get("configuration") or {}
    plain = name.removeprefix("numcodecs.") if isinstance(name, str) else ""
    if plain in UNPACKERS:
        own = {"packed_by": plain, "settings": settings, "most": most}
        return {"name": NAME, "configuration": own}
    within = {key: bounded(settings[key], most) for key in INNER if key in settings}
    return codecs | ({"configuration": settings | within} if within else {})


INNER = ("codecs", "index_codecs")
"""Where a codec for shards describes others."""


def unpacked(chunk: Any, packed_by: str, settings: dict[str, Any], most: int) -> Any:
    """The bytes that a chunk holds; refuse more than ``most``, before they take memory."""
    content = memoryview(chunk).cast("B")
    held = UNPACKERS[packed_by](content, settings, most)
    if memoryview(held).nbytes > most:
        raise ValueError(_too_much(most))
    return held


def _too_much(most: int) -> str:
    return (
        f"a chunk unpacks to more than {most:,} bytes, which is more than the shape and the type "
        "of its array need; it is damaged, or made to take memory"
    )


def _blosc(content: memoryview, settings: dict[str, Any], most: int) -> Any:
    """Blosc, if a chunk has the length that its header names, in the last four bytes of it."""
    promised = int.from_bytes(content[12:BLOSC_HEADER_BYTES], "little")
    if len(content) < max(promised, BLOSC_HEADER_BYTES):
        raise ValueError(
            f"a chunk ends after {len(content)} bytes, but its header promises "
            f"{max(promised, BLOSC_HEADER_BYTES)}"
        )
    _refuse_more(int.from_bytes(content[4:8], "little"), most)
    return numcodecs.Blosc().decode(content)


def _lz4(content: memoryview, settings: dict[str, Any], most: int) -> Any:
    _refuse_more(int.from_bytes(content[:LZ4_HEADER_BYTES], "little"), most)
    return numcodecs.LZ4().decode(content)


def _refuse_more(promised: int, most: int) -> None:
    if promised > most:
        raise ValueError(_too_much(most))


def _zstd(content: memoryview, settings: dict[str, Any], most: int) -> Any:
    from pyarrow import BufferReader, CompressedInputStream

    with CompressedInputStream(BufferReader(content), "zstd") as stream:
        return stream.read(most + 1)


def _zlib(content: memoryview, settings: dict[str, Any], most: int) -> Any:
    return _members(content, lambda: zlib.decompressobj(zlib.MAX_WBITS), most)


def _gzip(content: memoryview, settings: dict[str, Any], most: int) -> Any:
    return _members(content, lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), most)


def _bz2(content: memoryview, settings: dict[str, Any], most: int) -> Any:
    return _members(content, bz2.BZ2Decompressor, most)


def _lzma(content: memoryview, settings: dict[str, Any], most: int) -> Any:
    form, filters = settings.get("format", lzma.FORMAT_XZ), settings.get("filters")
    limit = None if form == lzma.FORMAT_RAW else MOST_DICTIONARY_BYTES
    return _members(content, lambda: lzma.LZMADecompressor(form, limit, filters), most)


def _members(content: memoryview, opened: Callable[[], Any], most: int) -> bytearray:
    """What one member after the other unpacks to, a little more than ``most`` bytes at most."""
    held = bytearray()
    left = bytes(content)
    while left and len(held) <= most:
        member = opened()
        held += member.decompress(left, most + 1 - len(held))
        if not member.eof and len(held) <= most:
            raise EOFError(f"a chunk of {len(content)} bytes was cut short")
        left = member.unused_data
    return held


UNPACKERS: dict[str, Callable[[memoryview, dict[str, Any], int], Any]] = {
    "blosc": _blosc, "gzip": _gzip, "zlib": _zlib, "zstd": _zstd, "lz4": _lz4, "lzma": _lzma,
    "bz2": _bz2,
}  # fmt: skip
"""How to unpack what each codec that packs has made."""


class UnpackingCodec(Codec):
    """For format 2."""

    codec_id = NAME

    def __init__(self, packed_by: str, settings: dict[str, Any], most: int) -> None:
        self.packed_by, self.settings, self.most = packed_by, settings, most

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Unpack a chunk."""
        return unpacked(buf, self.packed_by, self.settings, self.most)

    def encode(self, buf: Any) -> Any:
        """Refuse: arrays are opened to be read."""
        raise UnsupportedOperation(ONLY_READ)


@dataclass(frozen=True, eq=False)
class UnpackingBytesCodec(BytesBytesCodec):
    """For format 3, whose chunks come this way in one version of zarr or the other."""

    packed_by: str
    settings: dict[str, Any]
    most: int
    is_fixed_size = False

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> UnpackingBytesCodec:
        """Take what ``bounded`` describes."""
        return cls(**data["configuration"])

    def to_dict(self) -> dict[str, Any]:
        """What ``bounded`` describes."""
        own = {"packed_by": self.packed_by, "settings": self.settings, "most": self.most}
        return {"name": NAME, "configuration": own}

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        packed = np.ascontiguousarray(chunk_bytes.as_numpy_array())
        held = unpacked(packed, self.packed_by, self.settings, self.most)
        return chunk_spec.prototype.buffer.from_bytes(held)

    async def _encode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        raise UnsupportedOperation(ONLY_READ)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        """Refuse: arrays are opened to be read."""
        raise UnsupportedOperation(ONLY_READ)


numcodecs.register_codec(UnpackingCodec)
zarr.registry.register_codec(NAME, UnpackingBytesCodec)
