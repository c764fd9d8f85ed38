"""What commands print and write: tables for people, JSON for programs, and complete files.

An output file is checked before any work: no command writes over a file that it reads, and one
that is not recognised as the command's own is replaced only with ``--overwrite``.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from latentmetric.characters import visible, visible_json
from latentmetric.cli._csv import Columns, write_csv
from latentmetric.cli._errors import note
from latentmetric.io import Table
from latentmetric.persistence.model_file import holds_model
from latentmetric.persistence.replacing import check_replaceable, replacing
from latentmetric.validation.labels import refuse_cut

ANSWER_FORMATS = (".csv", ".tsv", ".parquet", ".npy")

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Also replace a file that this command did not write.")
]
AnswersOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help=f"File to write: {' '.join(ANSWER_FORMATS)}. Default: CSV on standard output.",
    ),
]

WIDTH_IN_PIPES = 160
"""Width of tables in characters where there is no terminal."""

SEEN_BYTES = 4096
"""Bytes at the start of a file that show what it is."""


def say(line: str) -> None:
    """A line on standard output."""
    sys.stdout.write(f"{visible(line)}\n")


def print_json(content: Any) -> None:
    """One document on standard output."""
    is_ascii = "utf" not in (sys.stdout.encoding or "utf").lower()
    text = json.dumps(content, ensure_ascii=is_ascii, default=_plain)
    sys.stdout.write(f"{visible_json(text)}\n")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table on standard output; the first column is words, the others are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left", box=SIMPLE_HEAD)
    for place, name in enumerate(header):
        table.add_column(Text(name), justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(visible(cell)) for cell in row])
    width = None if sys.stdout.isatty() else WIDTH_IN_PIPES
    Console(file=sys.stdout, width=width).print(table)


def check_answers(out: Path | None, reads: Sequence[Path | None], overwrite: bool) -> None:
    """Check a file for the columns of answers; its ending is the format."""
    if out is None:
        return
    if out.suffix not in ANSWER_FORMATS:
        raise typer.BadParameter(
            f"{out} must end in one of {', '.join(ANSWER_FORMATS)}", param_hint="--out"
        )
    if out.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ImportError(f"{out} needs pyarrow to be written: pip install 'latentmetric[files]'")
    check_output(out, out.suffix, reads, overwrite)


def check_output(out: Path, kind: str, reads: Sequence[Path | None], overwrite: bool) -> None:
    """Refuse, before any work, a file that cannot be written or that must not be lost.

    Parameters
    ----------
    out : path
        The file to write.
    kind : str
        What it is to be: a key of ``KINDS``.
    reads : sequence of path or None
        The files that the command reads.
    overwrite : bool
        Whether an existing file of another kind may be replaced.
    """
    if out == Path("-"):
        raise ValueError("-o - is not a file; name one")
    if out.is_dir():
        raise IsADirectoryError(f"{out} is a folder; name a file in it with -o")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"cannot write {out}: there is no folder {out.parent}")
    refuse_what_is_read(out, out, reads, "name another file with -o")
    if out.exists():
        _refuse_others(out, kind, overwrite)
    check_replaceable(out)


def refuse_what_is_read(
    named: Path, written: Path, reads: Sequence[Path | None], advice: str
) -> None:
    """Refuse to write a file that is read, or into a folder that is; messages say ``named``."""
    for path in reads:
        if path is not None and _would_destroy(written, path):
            raise FileExistsError(f"{named} is not written: this command reads {path}; {advice}")


def _refuse_others(out: Path, kind: str, overwrite: bool) -> None:
    if not out.is_file():
        raise FileExistsError(f"{out} is not a regular file and cannot be replaced")
    what, is_recognised = KINDS[kind]
    if not overwrite and out.stat().st_size and not is_recognised(out):
        raise FileExistsError(
            f"{out} exists and is not recognised as {what}; name another file with -o, or replace "
            "it with --overwrite"
        )


def _would_destroy(out: Path, read: Path) -> bool:
    """Whether writing one path changes what is read from the other, links followed."""
    written, source = (Path(os.path.realpath(path)) for path in (out, read))
    if written == source or (read.is_dir() and source in written.parents):
        return True
    return out.exists() and read.exists() and os.path.samefile(out, read)


def _begins_with(*marks: bytes) -> Callable[[Path], bool]:
    """Recognise a file by its first bytes, and by words that occur soon after them."""

    def is_recognised(path: Path) -> bool:
        start = _start_of(path)
        return start.startswith(marks[0]) and all(mark in start for mark in marks[1:])

    return is_recognised


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(SEEN_BYTES)


def _is_report(path: Path) -> bool:
    is_page = _start_of(path).lstrip().lower().startswith(b"<!doctype html")
    return is_page and b"latentmetric" in path.read_bytes()


def _is_arrays_beside_index(path: Path) -> bool:
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return {"labels.npy", "centre.npy", "scale.npy"} <= set(archive.namelist())
    except Exception:  # a damaged one, or one of a version that Python does not know
        return False


def _has_header_of_answers(delimiter: str) -> Callable[[Path], bool]:
    def is_recognised(path: Path) -> bool:
        line = _start_of(path).decode(errors="replace").splitlines()[:1]
        return _are_names_of_answers(next(csv.reader(line, delimiter=delimiter), []))

    return is_recognised


def _is_parquet_of_answers(path: Path) -> bool:
    from pyarrow import parquet

    try:
        return _are_names_of_answers(parquet.read_schema(path).names)
    except Exception:  # a damaged one, or one that uses what this pyarrow does not know
        return False


def _are_names_of_answers(names: list[str]) -> bool:
    """What commands write: the row and the answer, perhaps after an id, or latent examples."""
    beginnings = (
        ["row", "label"], ["row", "rank", "reference", "label", "distance"],
        ["latent", "label", "rows"],
    )  # fmt: skip
    return any(
        names[skipped : skipped + len(own)] == own for own in beginnings for skipped in (0, 1)
    )


KINDS: dict[str, tuple[str, Callable[[Path], bool]]] = {
    "model": ("a latentmetric model file", holds_model),
    "report": ("a report of latentmetric", _is_report),
    "onnx": ("an ONNX model of latentmetric", _begins_with(b"\x08", b"latentmetric")),
    "faiss": ("a flat index of faiss", _begins_with(b"IxF")),
    "faiss arrays": ("the arrays beside a faiss index", _is_arrays_beside_index),
    "sklearn": ("a pickled pipeline of scikit-learn", _begins_with(b"\x80", b"sklearn.pipeline")),
    ".csv": ("answers of latentmetric", _has_header_of_answers(",")),
    ".tsv": ("answers of latentmetric", _has_header_of_answers("\t")),
    ".parquet": ("answers of latentmetric", _is_parquet_of_answers),
    ".npy": ("answers of latentmetric, as .npy has no names", lambda path: False),
}
"""What commands write: its name for messages, and whether an existing file is such."""


def write_columns(columns: Columns, out: Path | None) -> None:
    """Columns as a file by its name's ending, or as CSV on standard output."""
    if out is None:
        write_csv(columns, sys.stdout, ",")
        return
    with replacing(out) as file:
        if out.suffix == ".parquet":
            _write_parquet(columns, file)
        else:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            write_csv(columns, text, "\t" if out.suffix == ".tsv" else ",")
            text.detach()
    note(f"{out}: {len(next(iter(columns.values()))):,} rows")


def write_array(values: np.ndarray[Any, Any], out: Path) -> None:
    """An array as an .npy file; objects become text, because nothing is pickled."""
    with replacing(out) as file:
        np.save(file, without_objects(values, str(out)), allow_pickle=False)
    note(f"{out}: {len(values):,} rows")


def without_objects(values: np.ndarray[Any, Any], out: str) -> np.ndarray[Any, Any]:
    """Objects as text of a fixed width; refuse what NumPy would cut."""
    if values.dtype.kind != "O":
        return values
    refuse_cut([str(value) for value in values.ravel()], f"{out} is not written: the model")
    return values.astype(str)


def ids_of(table: Table) -> Columns:
    """The ids of the rows of a table, if requested, under the name they have in the file."""
    return {} if table.ids is None else {str(table.id_name): table.ids}


def numbered(n_rows: int, table: Table) -> Columns:
    """The columns that say which row an answer is for: the id, if there is one, and its number.

    An id column that is called row replaces the number.
    """
    ids = ids_of(table)
    return ids if "row" in ids else ids | {"row": np.arange(n_rows)}


def check_id_name(id_name: str | None, taken: Sequence[str]) -> None:
    """Refuse an id with the same name as a column of the answers."""
    if id_name in taken:
        raise ValueError(
            f"the id is called {id_name!r}, and so is a column of the answers; rename it in the "
            f"file: the answers have {', '.join(taken)}"
        )


def _write_parquet(columns: Columns, file: Any) -> None:
    import pyarrow
    import pyarrow.parquet

    # An array of text would be cut at the first zero character of each value.
    plain = {
        name: column.tolist() if column.dtype.kind == "U" else column
        for name, column in columns.items()
    }
    table = pyarrow.table({name: pyarrow.array(column) for name, column in plain.items()})
    pyarrow.parquet.write_table(table, file)
