"""Open rows of numbers in a file by its name's ending, and say what is wrong with it."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latentmetric.io.arrays import ArrayFile
from latentmetric.io.choosing import Choice
from latentmetric.io.columns import ColumnFile, ColumnRows
from latentmetric.io.formats import format_of
from latentmetric.io.rows import RowFile

UNREADABLE = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile,
    zlib.error, TypeError, AttributeError, OverflowError,
)  # fmt: skip
"""What libraries raise on damaged files, some of which promise more than memory holds.

The last three come from zarr where its description of an array holds values of other types.
"""

PLAIN = (OSError, ValueError, EOFError)
"""What this library raises itself."""


def open_rows(
    path: str | Path, key: str | None = None, columns: list[str] | None = None
) -> RowFile:
    """Open a table of numbers without reading it.

    Parameters
    ----------
    path : path
        .npy, .npz, .h5, .hdf5, .zarr, .parquet, .arrow or .feather.
    key : str, default=None
        The array of an .npz, the data set of an .h5, the array of a .zarr group; None takes the
        only one with two dimensions or more. Dimensions after the first are taken as one.
    columns : list of str, default=None
        The columns of a .parquet, .arrow or .feather file: several of numbers or Booleans, or one
        of lists of equal length. None takes those that hold numbers or Booleans.

    Returns
    -------
    RowFile

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from latentmetric.io import open_rows
    >>> path = tempfile.mktemp(suffix=".npy")
    >>> np.save(path, np.arange(6.0).reshape(3, 2))
    >>> open_rows(path)[1:]
    array([[2., 3.],
           [4., 5.]])
    """
    path = Path(path)
    form = format_of(path, ("arrays", "columns"))
    with readable(str(path), form.suffix):
        file = form.open(path, Choice(), str(path))
        if isinstance(file, ColumnFile):
            return ColumnRows(file, columns)
        assert isinstance(file, ArrayFile)
        return file.rows(file.only_table() if key is None else key)


@contextmanager
def readable(name: str, suffix: str) -> Iterator[None]:
    """Name the file where a library only says what it did not like."""
    try:
        yield
    except UNREADABLE as error:
        message = " ".join(str(error).split()) or type(error).__name__
        is_plain = isinstance(error, PLAIN) and type(error).__module__ == "builtins"
        if is_plain and name in message:
            raise
        raise ValueError(f"{name} cannot be read as {suffix}: {message}") from error
