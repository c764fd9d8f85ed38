"""Blosc that checks how long a chunk says it is.

The library underneath believes the header of a chunk, and reads beyond one that was cut: into
memory of others, or to the end of the process. Arrays that name Blosc are given this one.
"""

from __future__ import annotations

from typing import Any

import numcodecs
import zarr.registry
from numcodecs.blosc import Blosc
from zarr.codecs import BloscCodec

NAME = "latentmetric.blosc"
"""Of both codecs below, one for each format of zarr."""

HEADER_BYTES = 16


def checked(chunk: Any) -> Any:
    """The chunk, if it has the length that its header names, in the last four bytes of it."""
    content = memoryview(chunk).cast("B")
    promised = int.from_bytes(content[12:HEADER_BYTES], "little")
    if len(content) < max(promised, HEADER_BYTES):
        raise ValueError(
            f"a chunk ends after {len(content)} bytes, but its header promises "
            f"{max(promised, HEADER_BYTES)}"
        )
    return chunk


class CheckedBlosc(Blosc):
    """For format 2."""

    codec_id = NAME

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Unpack a chunk."""
        return super().decode(checked(buf), out)


class CheckedBloscCodec(BloscCodec):
    """For format 3, whose chunks come this way in one version of zarr or the other."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CheckedBloscCodec:
        """Take the settings as they are for Blosc."""
        return cls(**data.get("configuration", {}))

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        checked(chunk_bytes.as_numpy_array())
        return await super()._decode_single(chunk_bytes, chunk_spec)

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        checked(chunk_bytes.as_numpy_array())
        return super()._decode_sync(chunk_bytes, chunk_spec)


numcodecs.register_codec(CheckedBlosc)
zarr.registry.register_codec(NAME, CheckedBloscCodec)


def with_checked_blosc(codecs: Any) -> Any:
    """The description of codecs, with this Blosc in place of the other, also within shards."""
    if isinstance(codecs, list):
        return [NAME if codec == "blosc" else with_checked_blosc(codec) for codec in codecs]
    if not isinstance(codecs, dict):
        return codecs
    return {
        key: NAME if key in ("id", "name") and held == "blosc" else with_checked_blosc(held)
        for key, held in codecs.items()
    }
