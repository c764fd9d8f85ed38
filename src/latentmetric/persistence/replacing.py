"""Files that are written completely or not at all: under a temporary name, and then renamed."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block succeeds, and only then.

    A symbolic link stays, and the file it points to is replaced. The mode of an existing file is
    kept; until then only its owner can read the temporary one.
    """
    target, old_mode = Path(os.path.realpath(path)), None
    with suppress(FileNotFoundError, NotADirectoryError):
        old_mode = stat.S_IMODE(os.stat(target).st_mode)  # raises on names that are too long
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; pass the path of a file in it")
    if old_mode is not None and not target.is_file():
        raise FileExistsError(f"{target} is not a regular file and is not replaced")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: there is no folder {target.parent}")
    mode = 0o666 if old_mode is None else 0o600  # a new file gets what the user's mask allows
    temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if old_mode is not None:
            os.chmod(temporary, old_mode)
        os.replace(temporary, target)
    except OSError as error:
        error.filename = os.fspath(target)  # callers do not know the temporary file
        raise
    finally:
        temporary.unlink(missing_ok=True)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise, before there is anything to write, what ``replacing`` would raise."""
    with suppress(_OnlyTriedError), replacing(path):
        raise _OnlyTriedError


class _OnlyTriedError(Exception):
    """Ends a write before it replaces anything."""


def remove_temporary_files(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files that killed writes to this path have left."""
    target = Path(os.path.realpath(path))
    with suppress(OSError):
        for name in os.listdir(target.parent):
            if name.startswith(_prefix(target)) and name.endswith(".tmp"):
                target.with_name(name).unlink()


def _prefix(target: Path) -> str:
    """How temporary names begin; the name is cut, because file systems limit its bytes."""
    return f".{target.name[:32]}."
