"""Every format of file that is read: how its name ends, what kind it is, how it is opened.

A format is added here and nowhere else. Everything that opens files, the help of the commands
and the messages about names all go by this list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from latentmetric.io.arrays import ArrayFile, open_npy, open_npz
from latentmetric.io.arrow import open_arrow
from latentmetric.io.choosing import Choice
from latentmetric.io.columns import ColumnFile, open_parquet
from latentmetric.io.rows import needs
from latentmetric.io.text import TextFile, open_text
from latentmetric.io.watching import refuse_unless_regular

Kind = Literal["arrays", "columns", "text"]
KINDS: tuple[Kind, ...] = ("arrays", "columns", "text")

Opener = Callable[[Path, Choice, str], ArrayFile | ColumnFile | TextFile]
"""Called with the path, how to read it, and what messages call it."""


@dataclass(frozen=True)
class Format:
    """One format.

    Parameters
    ----------
    suffix : str
        How names of such files end, in lower case.
    kind : {"arrays", "columns", "text"}
        What it holds: arrays by name, named columns, or a table in text. The first two are read a
        block at a time, text is read whole.
    open : callable
        Gives an ``ArrayFile``, a ``ColumnFile`` or a ``TextFile``, according to its kind.
    is_folder : bool, default=False
        Whether such a file is a folder.
    """

    suffix: str
    kind: Kind
    open: Opener
    is_folder: bool = False


def _arrays(open_file: Callable[[Path], ArrayFile]) -> Opener:
    return lambda path, choice, name: open_file(path)


def _columns(open_file: Callable[[Path], ColumnFile]) -> Opener:
    return lambda path, choice, name: open_file(path)


def _text(delimiter: str | None = None) -> Opener:
    return lambda path, choice, name: open_text(
        path,
        name,
        header=choice.header,
        encoding=choice.encoding,
        delimiter=delimiter,
        decimal=choice.decimal,
        known=choice.names,
        wanted=choice.wanted,
        missing=choice.missing,
        for_model=choice.for_model,
    )


def _open_hdf5(path: Path) -> ArrayFile:
    needs("h5py", "h5py", path)
    from latentmetric.io.hdf5 import Hdf5File

    return Hdf5File(path)


def _open_zarr(path: Path) -> ArrayFile:
    needs("zarr", "zarr", path)
    from latentmetric.io.zarr_folder import ZarrFolder

    return ZarrFolder(path)


FORMATS = (
    Format(".csv", "text", _text()),
    Format(".csv.gz", "text", _text()),
    Format(".tsv", "text", _text("\t")),
    Format(".tsv.gz", "text", _text("\t")),
    Format(".txt", "text", _text()),
    Format(".txt.gz", "text", _text()),
    Format(".npy", "arrays", _arrays(open_npy)),
    Format(".npz", "arrays", _arrays(open_npz)),
    Format(".h5", "arrays", _arrays(_open_hdf5)),
    Format(".hdf5", "arrays", _arrays(_open_hdf5)),
    Format(".zarr", "arrays", _arrays(_open_zarr), is_folder=True),
    Format(".parquet", "columns", _columns(open_parquet)),
    Format(".arrow", "columns", _columns(open_arrow)),
    Format(".feather", "columns", _columns(open_arrow)),
)

SIMILAR = 0.75
"""From this share of equal characters on, a name may have been meant by another."""

STREAM = FORMATS[0]
"""The format of what comes without a name, as on standard input."""


def suffixes(kinds: Sequence[Kind] = KINDS) -> list[str]:
    """How names of files of these kinds end."""
    return [known.suffix for known in FORMATS if known.kind in kinds]


def similar_name(path: Path) -> str:
    """What may have been meant by a name that does not exist, for messages; empty if unknown."""
    try:
        names = [found.name for found in path.parent.iterdir()]
    except OSError:
        return ""
    near = get_close_matches(path.name, names, 1, SIMILAR)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def format_of(path: Path, kinds: Sequence[Kind] = KINDS) -> Format:
    """The format of a file by its name; refuse what does not exist or has another name."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist{similar_name(path)}")
    name = path.name.lower()
    fitting = [f for f in FORMATS if f.kind in kinds and name.endswith(f.suffix)]
    if not fitting:
        raise ValueError(f"{path} must end in one of {', '.join(sorted(suffixes(kinds)))}")
    if path.is_dir() and not fitting[0].is_folder:
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not path.is_dir():
        refuse_unless_regular(path)
        if fitting[0].is_folder:
            raise NotADirectoryError(f"{path} is a file, but {fitting[0].suffix} is a folder")
    return fitting[0]
