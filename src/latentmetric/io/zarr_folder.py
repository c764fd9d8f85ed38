"""Arrays of .zarr folders, by a store that hands zarr nothing unchecked.

The store gives descriptions of arrays only if these ask for nothing that runs code, and reads only
regular files that lie in the folder and stay as they are.
"""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore

from latentmetric.io.arrays import AbsentError, GroupFile, RefusedError
from latentmetric.io.chunks import Chunks, RowsOfChunks
from latentmetric.io.rows import RowFile
from latentmetric.io.watching import mark
from latentmetric.io.zarr_codecs import refuse_unknown_2, refuse_unknown_3
from latentmetric.io.zarr_unpacking import bounded, chunk_shape, most_bytes

FORMATS: dict[str, Literal[2, 3]] = {"zarr.json": 3, ".zarray": 2, ".zgroup": 2}
"""Files that describe an array or a group, and the format they belong to."""

UNUSED = (".zattrs", ".zmetadata")
"""Files with notes, and with copies of the descriptions of a whole group."""

MOST_BYTES = 2**26
"""Of a description."""

PACKING = ("compressor", "filters", "codecs")
"""Where a description names its codecs."""


class ZarrFolder(GroupFile):
    """The arrays of a folder, in format 2 or 3. Groups are folders, which need no zarr."""

    def __init__(self, path: Path) -> None:
        self._root, self._store = path, CheckedStore(path)
        names = sorted(entry.name for entry in path.iterdir() if _kind(entry))
        super().__init__(path, self._get(""), names)

    def _get(self, name: str) -> Any:
        """The array of this name; None for a group."""
        place = "/".join(part for part in name.split("/") if part)
        kind = _kind(self._root / place)
        if kind is None:
            raise AbsentError(f"no {' or '.join(FORMATS)} describes what it holds")
        description = self._store.description(f"{place}/{kind}".removeprefix("/"))
        if kind == ".zgroup" or description.get("node_type") == "group":
            return None
        return zarr.open_array(self._store, path=place, mode="r", zarr_format=FORMATS[kind])

    def rows(self, name: str) -> RowFile:
        """An array of numbers as rows of features, whose chunks are looked for as they are read."""
        return RowsOfChunks(super().rows(name), self._chunks(name))

    def values(self, name: str) -> np.ndarray[Any, Any]:
        """An array, read."""
        self._chunks(name).check()
        return super().values(name)

    def _chunks(self, name: str) -> Chunks:
        array = self._array(name)
        place = "/".join(part for part in name.split("/") if part)
        described = self._store.description(
            f"{place}/{_kind(self._root / place)}".removeprefix("/")
        )

        def key(numbers: tuple[int, ...]) -> str:
            return f"{place}/{array.metadata.encode_chunk_key(numbers)}".removeprefix("/")

        return Chunks(
            tuple(array.shape),
            tuple(chunk_shape(described)),
            lambda numbers: self._store.mark(key(numbers)) is not None,
            lambda numbers: (
                f"no file {key(numbers)}; copy the folder again with all its chunks, or write it "
                "with write_empty_chunks=True"
            ),
        )


def _kind(folder: Path) -> str | None:
    """The name of the file that describes what a folder holds."""
    return next((kind for kind in FORMATS if (folder / kind).exists()), None)


class CheckedStore(Store):
    """What zarr may read of a folder."""

    supports_writes = False
    supports_deletes = False
    supports_partial_writes = False
    supports_listing = True

    def __init__(self, root: Path) -> None:
        super().__init__(read_only=True)
        self._root, self._real_root = root, root.resolve()
        self._files = LocalStore(root, read_only=True)
        self._marks: dict[str, tuple[int, int] | None] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckedStore) and self._root == other._root

    def description(self, key: str) -> dict[str, Any]:
        """What describes an array or a group, if it asks for nothing that may run code."""
        found = self.mark(key)
        if found is None or found[0] > MOST_BYTES:
            size = "nothing" if found is None else f"{found[0]} bytes"
            raise ValueError(f"{key} holds {size}, not the description of an array")
        try:
            description = json.loads((self._root / key).read_bytes())
        except ValueError as error:
            raise ValueError(f"{key} is not JSON: {error}") from error
        if not isinstance(description, dict):
            raise ValueError(f"{key} does not hold a JSON object")
        for unused in ("attributes", "consolidated_metadata"):
            description.pop(unused, None)
        if key.endswith(".zarray"):
            refuse_unknown_2(description)
        elif key.endswith("zarr.json") and description.get("node_type") != "group":
            refuse_unknown_3(description)
        packing = {key: description[key] for key in PACKING if key in description}
        if packing:
            most = most_bytes(description)
            description |= {key: bounded(held, most) for key, held in packing.items()}
        return description

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The content of a file, or a part of it; descriptions are given as they were checked."""
        name = key.rpartition("/")[2]
        if name in UNUSED or self.mark(key) is None:
            return None
        if name in FORMATS:
            return prototype.buffer.from_bytes(json.dumps(self.description(key)).encode())
        return await self._files.get(key, prototype, byte_range)

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        """Parts of files."""
        return [await self.get(key, prototype, wanted) for key, wanted in key_ranges]

    def mark(self, key: str) -> tuple[int, int] | None:
        """Size and time of a regular file in the folder, the same each time; None if there is none.

        Chunks that are not there hold the fill value, so one that vanished would be zeros.
        """
        path = self._root / key
        try:
            if not path.resolve().is_relative_to(self._real_root):
                raise RefusedError(f"{key} is a link that leads out of the folder")
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            now = None
        else:
            if stat.S_ISDIR(found.st_mode):
                return None
            if not stat.S_ISREG(found.st_mode):
                raise RefusedError(f"{key} is a pipe, a socket or a device, not a regular file")
            now = mark(found)
        if self._marks.setdefault(key, now) != now:
            raise OSError(f"{path} was changed while it was read; start again when it is complete")
        return now

    async def exists(self, key: str) -> bool:
        """Whether there is such a file."""
        return self.mark(key) is not None

    async def set(self, key: str, value: Buffer) -> None:
        """Nothing is written."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Nothing is deleted."""
        self._check_writable()

    async def set_partial_values(self, key_start_values: Iterable[Any]) -> None:
        """Nothing is written; stores of older versions of zarr must have this."""
        self._check_writable()

    def list(self) -> AsyncIterator[str]:
        """All files."""
        return self._files.list()

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """All files in a folder."""
        return self._files.list_prefix(prefix)

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """What a folder holds."""
        return self._files.list_dir(prefix)
