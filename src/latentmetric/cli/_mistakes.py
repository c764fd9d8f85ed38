"""Words on standard error, and a user's mistake as one line of them, with exit code 1."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

MISTAKES = (ValueError, OverflowError, OSError, EOFError, ImportError, MemoryError)
"""What bad input raises: wrong values, files that are not there, libraries not installed."""

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended before it was done, as shells have it."""


def tell(line: str) -> None:
    """A line on standard error; that nobody reads it any more ends no work."""
    try:
        typer.echo(line, err=True)
    except OSError:
        _write_to_nowhere(sys.stderr)


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
            # Whoever read standard output has had enough, as head does: no mistake.
            _write_to_nowhere(sys.stdout)
        except MISTAKES as error:
            tell(f"Error: {in_words(error)}")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            tell("Interrupted.")
            raise typer.Exit(INTERRUPTED) from error


def in_words(error: BaseException) -> str:
    """The message of an exception, on one line."""
    if isinstance(error, MemoryError):
        return " ".join(f"there is not enough memory: {error}".split())
    if isinstance(error, OverflowError):
        return " ".join(f"a number is too large: {error}".split())
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}"
    return " ".join(str(error).split()) or type(error).__name__


def _write_to_nowhere(stream: Any) -> None:
    """Let what is still to be written to a closed pipe vanish, now and when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show_warning(message: Any, *rest: Any, **others: Any) -> None:
    tell(f"Warning: {' '.join(str(message).split())}")
