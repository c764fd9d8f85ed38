"""A user's mistake is told in one line on standard error, with exit code 1."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

MISTAKES = (ValueError, OSError, EOFError, ImportError, MemoryError)
"""What bad input raises: wrong values, files that are not there, libraries not installed."""

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended before it was done, as shells have it."""


@contextmanager
def in_one_line() -> Iterator[None]:
    """Turn the exceptions of bad input into one line and exit code 1; warnings into a line each."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        # The commands compare the names of columns themselves and hand over plain arrays.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        try:
            yield
            sys.stdout.flush()
        except BrokenPipeError:
            _stop_writing()
        except MISTAKES as error:
            typer.echo(f"Error: {in_words(error)}", err=True)
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from error


def in_words(error: BaseException) -> str:
    """The message of an exception, on one line."""
    if isinstance(error, MemoryError):
        return " ".join(f"there is not enough memory: {error}".split())
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}"
    return " ".join(str(error).split()) or type(error).__name__


def _stop_writing() -> None:
    """Whoever read standard output has had enough, as ``head`` does; that is no mistake."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Any, *rest: Any, **others: Any) -> None:
    typer.echo(f"Warning: {' '.join(str(message).split())}", err=True)
