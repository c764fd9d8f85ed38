"""Files that are written completely or not at all: under a temporary name, and then renamed."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

LONGEST_STEM = 100
"""Bytes of a name that its temporary name repeats: file systems allow 143 or 255 for all of it."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block succeeds, and only then.

    A symbolic link is followed: the file it points to is replaced, and the link stays. The mode of
    an existing file is kept, and until then nobody else can read the temporary one.
    """
    target = _target(path)
    # A new file gets the mode that the user's mask allows; one that replaces another, its mode.
    mode = 0o600 if target.exists() else 0o666
    temporary = target.with_name(f".{_stem(target)}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except OSError as error:
        error.filename = os.fspath(target)  # callers do not know the temporary file
        raise
    finally:
        temporary.unlink(missing_ok=True)
    if sys.platform != "win32":
        _sync(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise, before there is anything to write, what ``replacing`` would raise."""
    with suppress(_OnlyTried), replacing(path) as file:
        file.write(bytes(4096))
        file.flush()
        os.fsync(file.fileno())
        raise _OnlyTried


class _OnlyTried(Exception):  # noqa: N818
    """Ends a write before it replaces anything."""


def remove_remains(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files that killed writes to this path have left."""
    target = Path(os.path.realpath(path))
    with suppress(OSError):
        for name in os.listdir(target.parent):
            if name.startswith(f".{_stem(target)}.") and name.endswith(".tmp"):
                target.with_name(name).unlink()


def _target(path: str | os.PathLike[str]) -> Path:
    """The file to replace, links followed; raise if it cannot be one."""
    target = Path(os.path.realpath(path))
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISLNK(os.lstat(target).st_mode):  # raises on a name that is too long
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(target))
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; pass the path of a file in it")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{target} is not a regular file and is not replaced")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: there is no folder {target.parent}")
    return target


def _stem(target: Path) -> str:
    """The beginning of a name, cut to a number of bytes."""
    return os.fsencode(target.name)[:LONGEST_STEM].decode(errors="ignore")


def _sync(folder: Path) -> None:
    """Make the new name survive a power failure, if the file system supports that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
