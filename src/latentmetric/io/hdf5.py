"""Data sets of HDF5 files, from nowhere but the file itself.

An HDF5 file can name other files, anywhere, and have the library read them: by external links, by
external storage and by virtual data sets. All three are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from latentmetric.io.arrays import AbsentError, GroupFile, RefusedError
from latentmetric.io.chunks import Chunks, RowsOfChunks
from latentmetric.io.rows import RowFile

MOST_LINKS = 16
"""Soft links that are followed for one name, which may lead in circles."""


class Hdf5File(GroupFile):
    """The data sets of a file, reached by hard links and by soft links along them."""

    def __init__(self, path: Path) -> None:
        top = h5py.File(path, "r")
        names = list(top) if isinstance(top, h5py.Group) else []
        super().__init__(path, top, [name for name in names if isinstance(name, str)])
        for name in names:
            if isinstance(name, bytes):
                self.unopened[ascii(name)] = "its name is not UTF-8"

    def _get(self, name: str) -> Any:
        found, left, n_links = self._top, _parts(name), 0
        while left:
            part = left.pop(0)
            link = _link(found, part)
            if isinstance(link, h5py.HardLink):
                found = found[part]
            elif isinstance(link, h5py.SoftLink):
                n_links += 1
                if n_links > MOST_LINKS:
                    raise RefusedError(f"it leads through more than {MOST_LINKS} links")
                found = self._top if link.path.startswith("/") else found
                left = _parts(link.path) + left
            elif n_links:
                raise OSError(f"it leads to {part!r}, which is not there")
            else:
                raise AbsentError(name)
        _refuse_other_files(found)
        return found

    def rows(self, name: str) -> RowFile:
        """A data set of numbers as rows of features, whose chunks are looked for first."""
        return RowsOfChunks(super().rows(name), _chunks(self._array(name)))

    def values(self, name: str) -> np.ndarray[Any, Any]:
        """A data set, read."""
        values = super().values(name)
        _chunks(self._array(name)).check()
        return values


def _chunks(array: Any) -> Chunks:
    """What was written of a data set: one that is not chunked has either all values or none."""
    missed = "they were never written; write the file again, to its end"
    if array.chunks is None:
        is_written = bool(array.id.get_storage_size())
        return Chunks(array.shape, array.shape, lambda numbers: is_written, lambda numbers: missed)
    return Chunks(
        array.shape,
        array.chunks,
        lambda numbers: _is_written(array, numbers),
        lambda numbers: missed,
    )


def _is_written(array: Any, numbers: tuple[int, ...]) -> bool:
    place = tuple(number * size for number, size in zip(numbers, array.chunks, strict=True))
    return array.id.get_chunk_info_by_coord(place).byte_offset is not None


def _link(group: Any, part: str) -> Any:
    """The link of this name in a group, or None; refuse those that lead to other files."""
    if not isinstance(group, h5py.Group):
        return None
    try:
        link = group.get(part, getlink=True)
    except TypeError as error:
        raise RefusedError("it is a link of a kind of its own, which is not followed") from error
    if isinstance(link, h5py.ExternalLink):
        raise RefusedError(
            f"it is a link to the file {link.filename!r}, and other files are not read; copy the "
            "data set into this one"
        )
    return link


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in ("", ".")]


def _refuse_other_files(found: Any) -> None:
    if not isinstance(found, h5py.Dataset):
        return
    for is_elsewhere, how in (
        (bool(found.external), "external storage"),
        (found.is_virtual, "a virtual data set"),
    ):
        if is_elsewhere:
            raise RefusedError(
                f"its values are in other files ({how}), which are not read; copy them into this "
                "one"
            )
