"""Every format of file that is read, in one table: ``FORMATS``.

A format is a function that opens a file and gives its columns (``ColumnFile``). Opening reads no
rows of binary files, except of .npz, and nothing is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.extras import import_optional
from latentmetric.io.choosing import Choice
from latentmetric.io.columns import ArrayFile, ArrowFile, ColumnFile
from latentmetric.io.rows import readable
from latentmetric.io.text import TextFile


def open_npy(path: Path, choice: Choice) -> ColumnFile:
    """The array of an .npy file, which stays in the file."""
    return ArrayFile(str(path), {"array": np.load(path, mmap_mode="r", allow_pickle=False)}, choice)


def open_npz(path: Path, choice: Choice) -> ColumnFile:
    """The arrays of an .npz file, read."""
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        return ArrayFile(str(path), dict(file.items()), choice)


def open_hdf5(path: Path, choice: Choice) -> ColumnFile:
    """The data sets of an HDF5 file, also in groups."""
    arrays: dict[str, Any] = {}
    import_optional("h5py", "files", str(path)).File(path, "r").visititems(arrays.__setitem__)
    return ArrayFile(str(path), arrays, choice)


def open_zarr(path: Path, choice: Choice) -> ColumnFile:
    """The arrays of a zarr folder, also in groups, or the only one."""
    top = import_optional("zarr", "files", str(path)).open(path, mode="r")
    arrays = {"array": top} if hasattr(top, "shape") else dict(top.members(max_depth=None))
    return ArrayFile(str(path), arrays, choice)


def open_parquet(path: Path, choice: Choice) -> ColumnFile:
    """The columns of a Parquet file; row groups are read when rows of them are needed."""
    file = import_optional("pyarrow.parquet", "cli", str(path)).ParquetFile(path)
    groups = range(file.metadata.num_row_groups)
    starts = np.cumsum([0, *(file.metadata.row_group(group).num_rows for group in groups)])

    def read(columns: list[int], start: int, stop: int) -> Any:
        names = [file.schema_arrow.names[i] for i in columns]
        first, last = np.searchsorted(starts, start, "right") - 1, np.searchsorted(starts, stop)
        table = file.read_row_groups(list(range(first, last)), columns=names)
        # "a.b" also gives the field b of a column a
        return table.select(names).slice(start - int(starts[first]), stop - start)

    return ArrowFile(str(path), file.schema_arrow, file.metadata.num_rows, read)


def open_arrow(path: Path, choice: Choice) -> ColumnFile:
    """The columns of an Arrow file or stream, mapped; what is compressed is unpacked."""
    ipc = import_optional("pyarrow.ipc", "cli", str(path))
    import pyarrow

    file = pyarrow.memory_map(str(path))
    try:
        table = ipc.open_file(file).read_all()
    except pyarrow.ArrowInvalid:
        file.seek(0)
        table = ipc.open_stream(file).read_all()

    def read(columns: list[int], start: int, stop: int) -> Any:
        part = table.select(columns).slice(start, stop - start)
        part.validate(full=True)  # a damaged offset would end the process
        return part

    return ArrowFile(str(path), table.schema, len(table), read)


FORMATS: dict[str, Callable[[Path, Choice], ColumnFile]] = {
    ".csv": TextFile,
    ".csv.gz": TextFile,
    ".tsv": partial(TextFile, delimiter="\t"),
    ".tsv.gz": partial(TextFile, delimiter="\t"),
    ".txt": TextFile,
    ".txt.gz": TextFile,
    ".npy": open_npy,
    ".npz": open_npz,
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".zarr": open_zarr,
    ".parquet": open_parquet,
    ".arrow": open_arrow,
    ".feather": open_arrow,
}
"""How a file is opened, by the end of its name."""


def similar_name(path: Path) -> str:
    """What may have been meant by a name that does not exist, for messages; empty if unknown."""
    names = [found.name for found in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, 1, 0.75)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def open_file(path: Path, choice: Choice) -> ColumnFile:
    """Open a file by the end of its name."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist{similar_name(path)}")
    if path.is_dir() and not path.name.lower().endswith(".zarr"):
        holds_arrays = next(path.glob("*.npy"), None) is not None
        remedy = "; join its arrays: np.save('rows.npy', np.stack(arrays))" if holds_arrays else ""
        raise IsADirectoryError(f"{path} is a folder, not a file{remedy}")
    suffix = next((end for end in FORMATS if path.name.lower().endswith(end)), None)
    if suffix is None:
        raise ValueError(f"{path} must end in one of {', '.join(sorted(FORMATS))}")
    with readable(str(path)):
        return FORMATS[suffix](path, choice)
