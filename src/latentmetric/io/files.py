"""Open rows of numbers in a file by its name's ending, and say what is wrong with it."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latentmetric.io import arrays
from latentmetric.io import columns as _columns
from latentmetric.io.rows import RowFile

UNREADABLE = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile,
    zlib.error, TypeError, AttributeError, OverflowError,
)  # fmt: skip
"""What libraries raise on damaged files, some of which promise more than memory holds.

The last three come of zarr where its description of an array holds values of other types.
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
        .npy, .npz, .h5, .zarr, .parquet, .arrow or .feather.
    key : str, default=None
        The array of an .npz, the data set of an .h5, the array of a .zarr group; None takes the
        only one with two dimensions or more. Dimensions after the first are taken as one.
    columns : list of str, default=None
        The columns of a .parquet, .arrow or .feather file: several of numbers, or one of lists
        of equal length. None takes those that hold numbers.

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
    check_exists(path, (*arrays.SUFFIXES, *_columns.SUFFIXES))
    with readable(path):
        if path.suffix in _columns.SUFFIXES:
            return _columns.ColumnRows(_columns.open_columns(path), columns)
        file = arrays.open_arrays(path)
        return file.rows(file.only_table() if key is None else key)


def check_exists(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse what is not there, or has a name that does not tell what it is."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.suffix not in suffixes:
        raise ValueError(f"{path} must end in one of {', '.join(sorted(suffixes))}")
    if path.is_dir() and path.suffix != ".zarr":
        raise IsADirectoryError(f"{path} is a folder, not a file")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Name the file where a library only says what it did not like."""
    try:
        yield
    except UNREADABLE as error:
        message = " ".join(str(error).split()) or type(error).__name__
        is_plain = isinstance(error, PLAIN) and type(error).__module__ == "builtins"
        if is_plain and str(path) in message:
            raise
        raise ValueError(f"{path} cannot be read as {path.suffix}: {message}") from error
