"""What commands print and write: tables for people, JSON for programs, files whole or not."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from latentmetric.cli._mistakes import tell
from latentmetric.persistence.model_file import replacing

Columns = dict[str, np.ndarray[Any, Any]]
"""By name, each of the same length."""

FORMATS = (".csv", ".tsv", ".parquet", ".npy")

ROWS_AT_A_TIME = 10_000

WIDTH_IN_PIPES = 160
"""Columns where there is no terminal whose width could be asked for."""


def print_json(content: Any) -> None:
    """One document on standard output."""
    sys.stdout.write(json.dumps(content, ensure_ascii=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table on standard output; the first column is words, the others are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD)
    for place, name in enumerate(header):
        table.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(cell) for cell in row])
    width = None if sys.stdout.isatty() else WIDTH_IN_PIPES
    Console(file=sys.stdout, width=width).print(table)


def check_format(out: Path | None) -> None:
    """Refuse, before any work, a file whose name does not tell what it is to be."""
    if out is None:
        return
    if out.suffix not in FORMATS:
        raise typer.BadParameter(
            f"{out} must end in one of {', '.join(FORMATS)}", param_hint="--out"
        )
    check_writable(out)


def check_writable(out: Path) -> None:
    """Refuse, before any work, a file that has no folder to be in."""
    if out.is_dir():
        raise IsADirectoryError(f"{out} is a folder; name a file in it with -o")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"cannot write {out}: there is no folder {out.parent}")


def write_columns(columns: Columns, out: Path | None) -> None:
    """Columns as a file by its name's ending, or as CSV on standard output."""
    if out is None:
        _write_csv(columns, sys.stdout, ",")
        return
    with replacing(out) as file:
        if out.suffix == ".npy":
            np.save(file, _one_array(columns), allow_pickle=False)
        elif out.suffix == ".parquet":
            _write_parquet(columns, file, out)
        else:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            _write_csv(columns, text, "\t" if out.suffix == ".tsv" else ",")
            text.detach()
    tell(f"{out}: {len(next(iter(columns.values()))):,} rows")


def _write_csv(columns: Columns, file: Any, delimiter: str) -> None:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    length = len(next(iter(columns.values())))
    for start in range(0, length, ROWS_AT_A_TIME):
        block = slice(start, start + ROWS_AT_A_TIME)
        writer.writerows(zip(*[column[block].tolist() for column in columns.values()], strict=True))
    file.flush()


def _write_parquet(columns: Columns, file: Any, out: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        message = f"{out} needs pyarrow to be written: pip install 'latentmetric[files]'"
        raise ImportError(message) from error
    table = pyarrow.table({name: pyarrow.array(column) for name, column in columns.items()})
    pyarrow.parquet.write_table(table, file)


def _one_array(columns: Columns) -> np.ndarray[Any, Any]:
    """The columns after the first, which numbers the rows: .npy files have no names or objects."""
    values = [
        column.astype(str) if column.dtype.kind == "O" else column
        for column in list(columns.values())[1:]
    ]
    return values[0] if len(values) == 1 else np.column_stack(values)
