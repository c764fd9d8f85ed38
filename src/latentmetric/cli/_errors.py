"""Messages on standard error; bad input is reported in one line, with exit code 1.

Messages hold names and values from outside: hidden characters in them are shown as codes.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NoReturn

import typer

from latentmetric.characters import visible

BAD_INPUT = (ValueError, OverflowError, OSError, EOFError, ImportError, MemoryError)
"""What bad input raises: wrong values, missing files, libraries that are not installed."""

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended before it was done, as in shells."""


def note(line: str) -> None:
    """Print a line on standard error; the work continues if that has been closed."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{visible(line)}\n")
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the exceptions of bad input into one line and exit code 1; warnings into a line each."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        # The commands compare the names of columns themselves and hand over plain arrays.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        try:
            yield
            sys.stdout.flush()
        except BAD_INPUT as error:
            if is_closed_pipe(error):
                raise
            note(f"Error: {in_words(error)}")
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            note("Interrupted.")
            raise typer.Exit(INTERRUPTED) from error


@contextmanager
def visible_usage_errors() -> Iterator[None]:
    """Escape the messages about wrong arguments, and suggest what may have been meant."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):
            message = visible(_plainer(error.format_message()))
            error.format_message = lambda: message
        raise


def _plainer(message: str) -> str:
    """A message about a wrong argument without what is typer's own, and with the closest word."""
    plain = message.replace(": Value error, ", ": ")
    found = re.search(r"'([^']*)' is not one of (.*)", plain)
    near = get_close_matches(found[1], re.findall("'([^']*)'", found[2]), 1) if found else []
    return f"{plain} Did you mean {near[0]!r}?" if near else plain


def show_traceback(kind: Any, error: BaseException, trace: Any) -> None:
    """Print what nothing else has handled; an ``excepthook``."""
    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        note(line)


def run_into_pipes(command: Callable[[], None]) -> NoReturn:
    """Run a command and exit; it is no error if a reader of its output ends first, such as head.

    Rich and typer exit with code 1 where the pipe is closed; the error is then behind their exit.
    """
    code: Any = 0
    try:
        command()
    except SystemExit as ended:
        code = 0 if is_closed_pipe(ended.__context__) else ended.code
    except OSError as error:
        if not is_closed_pipe(error):
            raise
    try:
        sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)
    raise SystemExit(code)


def is_closed_pipe(error: BaseException | None) -> bool:
    """Whether an error means that nothing reads a pipe any more, on Windows or elsewhere."""
    if not isinstance(error, OSError):
        return False
    is_invalid = error.errno == errno.EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and is_invalid)


def in_words(error: BaseException) -> str:
    """The message of an exception, on one line."""
    if isinstance(error, MemoryError):
        return " ".join(f"there is not enough memory: {error}".split())
    if isinstance(error, OverflowError):
        return " ".join(f"a number is too large: {error}".split())
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}"
    return " ".join(str(error).split()) or type(error).__name__


def _discard(stream: Any) -> None:
    """Drop what is still to be written to a closed pipe, now and when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show_warning(message: Any, *rest: Any, **others: Any) -> None:
    note(f"Warning: {' '.join(str(message).split())}")
