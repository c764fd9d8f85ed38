"""What commands say: notes and errors on standard error, tables and JSON on standard output.

Messages hold names and values from outside: hidden characters in them are shown as codes.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from latentmetric.characters import visible

BAD_INPUT = (ValueError, OverflowError, OSError, EOFError, ImportError, MemoryError)
"""What bad input raises: wrong values, missing files, libraries that are not installed."""

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended before it was done, as in shells."""

WIDTH_IN_PIPES = 160
"""Width of tables in characters where there is no terminal."""


def note(line: str) -> None:
    """Print a line on standard error."""
    print(visible(line), file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the exceptions of bad input into one line and exit code 1; warnings into a line each."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: note(f"Warning: {describe(message)}")
        # The commands compare the names of columns themselves and hand over plain arrays.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        try:
            yield
        except BrokenPipeError:  # its reader has ended first, as head does; Typer knows
            raise
        except BAD_INPUT as error:
            note(f"Error: {describe(error)}")
            raise typer.Exit(1) from error


def describe(error: BaseException | str) -> str:
    """The message of an exception, on one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}"
    what = "there is not enough memory: " if isinstance(error, MemoryError) else ""
    return " ".join(f"{what}{error}".split()) or type(error).__name__


def say(line: str) -> None:
    """Print a line on standard output."""
    print(visible(line))  # noqa: T201


def print_json(content: Any) -> None:
    """Print one document on standard output."""
    print(json.dumps(content, default=_jsonable))  # noqa: T201


def _jsonable(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table on standard output; the first column is words, the others are numbers."""
    if title:
        say(title)
    table = Table(box=SIMPLE_HEAD)
    for index, name in enumerate(header):
        table.add_column(Text(name), justify="right" if index else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(visible(cell)) for cell in row])
    Console(width=None if sys.stdout.isatty() else WIDTH_IN_PIPES).print(table)
