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
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer import Option

from latentmetric.characters import visible
from latentmetric.cli._messages import note, print_json
from latentmetric.cli._options import Json, Overwrite
from latentmetric.persistence.model_file import is_model_file
from latentmetric.persistence.replacing import check_replaceable, replacing

Columns = dict[str, np.ndarray[Any, Any]]
"""By name, each of the same length."""

ROWS_AT_A_TIME = 10_000

FORMULA = re.compile(r"[=+\-@\t\r＝＋－＠](?![\d.]+(e[+-]?\d+)?$).", re.DOTALL | re.IGNORECASE)
"""How text begins that a spreadsheet would run; numbers, and the labels + and -, are none."""

ANSWER_FORMATS = (".csv", ".tsv", ".parquet", ".npy")

_HEADER = rb"([^,\t\n]*[,\t])?(row[,\t](label|rank[,\t]reference)|latent[,\t]label)\b"

MARKS = {
    ".csv": (_HEADER, b""),
    ".tsv": (_HEADER, b""),
    ".parquet": (b"PAR1", b"latentmetric"),
    ".npy": (b"(?!)", b""),  # it might be anybody's
    "report": (rb"\s*<!doctype html", b"latentmetric"),
    "onnx": (b"\x08", b"latentmetric"),
    "faiss": (b"IxF", b""),
    "arrays": (b"PK", b"centre.npy"),
    "sklearn": (b"\x80", b"sklearn.pipeline"),
}
"""How the files that commands write begin, and what they hold."""


def check_output(out: Path, kind: str, inputs: Sequence[Path | None], overwrite: bool) -> None:
    """Refuse, before any work, a file that cannot be written or that must not be lost.

    ``kind`` is what it is to be: "model" or a key of ``MARKS``.
    """
    if out == Path("-"):
        raise ValueError("-o - is not a file; name one")
    check_replaceable(out)
    for path in inputs:
        if path is not None and path.exists() and out.exists() and os.path.samefile(out, path):
            raise FileExistsError(
                f"{out} is not written: this command reads {path}; name another file"
            )
    if out.exists() and out.stat().st_size and not overwrite and not _is_own(out, kind):
        raise FileExistsError(
            f"{out} exists and is not recognised as a file that this command writes; name another "
            "file with -o, or replace it with --overwrite"
        )


def _is_own(path: Path, kind: str) -> bool:
    """Whether a command that writes this kind of file may have written this one."""
    if kind == "model":
        return is_model_file(path)
    begin, held = MARKS[kind]
    content = path.read_bytes()
    return re.match(begin, content, re.IGNORECASE) is not None and held in content


@dataclass
class Answers:
    """Options for answers: where and how to write them."""

    out: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            help=f"File to write: {' '.join(ANSWER_FORMATS)}. Else CSV is printed.",
        ),
    ] = None
    overwrite: Overwrite = False
    json: Json = False

    def check(self, *inputs: Path | None) -> None:
        """Refuse, before any work, a file that cannot be written; its ending is the format."""
        if self.out is None:
            return
        if self.out.suffix not in ANSWER_FORMATS:
            message = f"{str(self.out)!r} must end in one of {', '.join(ANSWER_FORMATS)}"
            raise typer.BadParameter(message, param_hint="--out")
        check_output(self.out, self.out.suffix, inputs, self.overwrite)

    def write(self, columns: Columns, array: Any, document: dict[str, Any] | None = None) -> None:
        """Write columns to a file, as its ending says, or as CSV to standard output.

        ``array`` is what an .npy file holds, ``document`` what is printed as JSON, if that is not
        the columns.
        """
        if self.out is not None:
            with replacing(self.out) as file:
                _write(columns, array, self.out.suffix, file)
            note(f"{self.out}: {len(array):,} rows")
        elif not self.json:
            _write_text(columns, sys.stdout, ",")
        if self.json:
            print_json(columns if document is None else document)


def _write(columns: Columns, array: Any, suffix: str, file: Any) -> None:
    if suffix == ".npy":
        np.save(file, without_objects(array), allow_pickle=False)
    elif suffix == ".parquet":
        from pyarrow import parquet, table

        parquet.write_table(table(columns, metadata={"writer": "latentmetric"}), file)
    else:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        _write_text(columns, text, "\t" if suffix == ".tsv" else ",")
        text.detach()


def _write_text(columns: Columns, file: Any, delimiter: str) -> None:
    """Write columns with a header; a terminal gets codes for hidden characters."""

    def safe(value: Any) -> str:
        text = visible(value) if file.isatty() else str(value)
        return f"'{text}" if FORMULA.match(text) else text

    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(map(safe, columns))
    for start in range(0, len(next(iter(columns.values()))), ROWS_AT_A_TIME):
        block = [values[start : start + ROWS_AT_A_TIME] for values in columns.values()]
        cells = [map(safe, own.tolist()) if _is_text(own) else own.tolist() for own in block]
        writer.writerows(zip(*cells, strict=True))
    file.flush()


def without_objects(values: Any) -> Any:
    """Objects as text, because nothing is pickled."""
    return values.astype(str) if values.dtype.kind == "O" else values


def _is_text(values: np.ndarray[Any, Any]) -> bool:
    return values.dtype.kind not in "biuf"
