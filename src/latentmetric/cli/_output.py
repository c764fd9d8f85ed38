"""Files that commands write: checked before any work, and complete or not there at all.

No command writes over a file that it reads, and a file that is not recognised as the command's own
is replaced only with ``--overwrite``.
"""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from latentmetric.characters import visible
from latentmetric.cli._messages import note, print_json
from latentmetric.cli._options import ANSWER_FORMATS
from latentmetric.io import Table
from latentmetric.persistence.model_file import holds_model
from latentmetric.persistence.replacing import check_replaceable, replacing

Columns = dict[str, np.ndarray[Any, Any]]
"""By name, each of the same length."""

ROWS_AT_A_TIME = 10_000

FORMULA = re.compile(r"[=+\-@\t\r＝＋－＠](?![\d.]+(e[+-]?\d+)?$).", re.DOTALL | re.IGNORECASE)
"""How text begins that a spreadsheet would run; numbers, and the labels + and -, are none."""

ANSWERS = re.compile(r"([^,\t]*[,\t])?(row[,\t](label|rank[,\t]reference)|latent[,\t]label)\b")
"""The header of answers: the row and the answer, perhaps after an id, or latent examples."""

MARKS = {
    "report": (b"<!doctype html", b"latentmetric"),
    "onnx": (b"\x08", b"latentmetric"),
    "faiss": (b"ixf", b""),
    "arrays": (b"pk", b"centre.npy"),
    "sklearn": (b"\x80", b"sklearn.pipeline"),
}
"""How other files that commands write begin, and what they hold, in lower case."""


def check_output(out: Path, kind: str, inputs: Sequence[Path | None], overwrite: bool) -> None:
    """Refuse, before any work, a file that cannot be written or that must not be lost.

    ``kind`` is what it is to be: "model", a key of ``MARKS`` or the ending of answers.
    """
    if out == Path("-"):
        raise ValueError("-o - is not a file; name one")
    check_replaceable(out)
    refuse_inputs(out, inputs)
    if out.exists() and out.stat().st_size and not overwrite and not _is_own(out, kind):
        raise FileExistsError(
            f"{out} exists and is not recognised as a file that this command writes; name another "
            "file with -o, or replace it with --overwrite"
        )


def check_answers(out: Path | None, inputs: Sequence[Path | None], overwrite: bool) -> None:
    """Check a file for answers; its ending is the format."""
    if out is None:
        return
    if out.suffix not in ANSWER_FORMATS:
        message = f"{str(out)!r} must end in one of {', '.join(ANSWER_FORMATS)}"
        raise typer.BadParameter(message, param_hint="--out")
    check_output(out, out.suffix, inputs, overwrite)


def refuse_inputs(out: Path, inputs: Sequence[Path | None]) -> None:
    """Refuse to write over a file that is read, or into a folder that is; links are followed."""
    for path in inputs:
        if path is None or not path.exists():
            continue
        is_inside = path.is_dir() and path.resolve() in out.resolve().parents
        if is_inside or (out.exists() and os.path.samefile(out, path)):
            raise FileExistsError(
                f"{out} is not written: this command reads {path}; name another file"
            )


def _is_own(path: Path, kind: str) -> bool:
    """Whether a command that writes this kind of file may have written this one."""
    if kind == "model":
        return holds_model(path)
    if kind in ANSWER_FORMATS:
        return ANSWERS.match(_header(path)) is not None
    begin, held = MARKS[kind]
    content = path.read_bytes().lower()
    return content.lstrip().startswith(begin) and held in content


def _header(path: Path) -> str:
    """The names of the columns in a file of answers; .npy has none."""
    if path.suffix == ".npy":
        return ""
    if path.suffix != ".parquet":
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline()
    from pyarrow import parquet

    try:
        return ",".join(parquet.read_schema(path).names)
    except Exception:  # a damaged file: whatever pyarrow raises, it is not ours
        return ""


def numbered(n_rows: int, table: Table) -> Columns:
    """The columns that say which row an answer is for: the id, if there is one, and its number.

    An id column that is called row replaces the number.
    """
    ids = ids_of(table)
    return ids | {"row": np.arange(n_rows)} | ids


def ids_of(table: Table) -> Columns:
    """The ids of the rows of a table, if requested, under the name they have in the file."""
    return {} if table.ids is None else {str(table.id_name): table.ids}


def check_id_name(id_name: str | None, taken: Sequence[str]) -> None:
    """Refuse an id with the same name as a column of the answers."""
    if id_name in taken:
        raise ValueError(
            f"the id is called {id_name!r}, and so is a column of the answers; rename it in the "
            f"file: the answers have {', '.join(taken)}"
        )


def write_answers(columns: Columns, array: Any, document: Any, out: Path | None) -> None:
    """Write answers to a file, as its ending says, or as CSV to standard output.

    ``array`` is what an .npy file holds. ``document`` is printed as JSON, unless it is None.
    """
    if out is not None:
        with replacing(out) as file:
            _write(columns, array, out.suffix, file)
        note(f"{out}: {len(array):,} rows")
    elif document is None:
        _write_text(columns, sys.stdout, ",")
    if document is not None:
        print_json(document)


def _write(columns: Columns, array: Any, suffix: str, file: Any) -> None:
    if suffix == ".npy":
        np.save(file, without_objects(array), allow_pickle=False)
    elif suffix == ".parquet":
        from pyarrow import parquet, table

        # An array of text would be cut at the first zero character of each value.
        texts = {name: values.tolist() for name, values in columns.items() if _is_text(values)}
        parquet.write_table(table(columns | texts), file)
    else:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        _write_text(columns, text, "\t" if suffix == ".tsv" else ",")
        text.detach()


def _write_text(columns: Columns, file: Any, delimiter: str) -> None:
    """Write columns with a header; a terminal gets codes for hidden characters."""
    shown = visible if file.isatty() else str
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow([shown(without_formula(name)) for name in columns])
    for start in range(0, len(next(iter(columns.values()))), ROWS_AT_A_TIME):
        block = [values[start : start + ROWS_AT_A_TIME] for values in columns.values()]
        cells = [
            [shown(without_formula(str(value))) for value in values.tolist()]
            if _is_text(values)
            else values.tolist()
            for values in block
        ]
        writer.writerows(zip(*cells, strict=True))
    file.flush()


def without_formula(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would run it."""
    return f"'{text}" if FORMULA.match(text) else text


def without_objects(values: Any) -> Any:
    """Objects as text, because nothing is pickled."""
    return values.astype(str) if values.dtype.kind == "O" else values


def _is_text(values: np.ndarray[Any, Any]) -> bool:
    return values.dtype.kind not in "biuf"
