"""Open rows of numbers in a file by its name's ending, and say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.io.arrays import ArrayFile
from latentmetric.io.choosing import Choice
from latentmetric.io.columns import ColumnFile, ColumnRows
from latentmetric.io.formats import Format, format_of
from latentmetric.io.rows import RowFile
from latentmetric.io.watching import Watch

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
    source = Source(path, form, str(path))
    with source.opened():
        file = form.open(path, Choice(), str(path))
        if isinstance(file, ColumnFile):
            return SourceRows(ColumnRows(file, columns), source)
        assert isinstance(file, ArrayFile)
        return SourceRows(file.rows(file.only_table() if key is None else key), source)


class Source:
    """A file that is read: faults are given its name, and changes meanwhile are noticed."""

    def __init__(self, path: Path, form: Format, name: str) -> None:
        self._name, self._suffix = name, form.suffix
        # What a folder holds is watched file by file, by its store.
        self._watch = None if form.is_folder else Watch(path, name)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """While files are opened by name, and what is read at once is read."""
        watched = self._watch.opened() if self._watch else nullcontext()
        with _readable(self._name, self._suffix), watched:
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While a block is read from what is open."""
        watched = self._watch.unchanged() if self._watch else nullcontext()
        with _readable(self._name, self._suffix), watched:
            yield


class SourceRows(RowFile):
    """Rows of a file that is watched."""

    def __init__(self, rows: RowFile, source: Source) -> None:
        self._rows, self._source = rows, source
        self.shape, self.dtype, self.feature_names = rows.shape, rows.dtype, rows.feature_names

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        with self._source.reading():
            return self._rows[slice(start, stop)]


@contextmanager
def _readable(name: str, suffix: str) -> Iterator[None]:
    """Name the file where a library only says what it did not like, by any error there is."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        message = " ".join(str(error).split()) or type(error).__name__
        is_plain = isinstance(error, PLAIN) and type(error).__module__ == "builtins"
        if is_plain and name in message:
            raise
        raise ValueError(f"{name} cannot be read as {suffix}: {message}") from error
