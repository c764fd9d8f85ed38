"""Files that are written completely or not at all, and the remains of writes that were killed.

A file is written under a temporary name in the same folder and then renamed. Its writer holds a
lock on it, so that the remains of a killed writer can be told from the work of a living one.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

LONGEST_STEM = 100
"""Bytes of a name that its temporary name repeats: file systems allow 143 or 255 for all of it."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block succeeds, and only then.

    A symbolic link is followed: the file it points to is replaced, and the link stays. The mode of
    an existing file is kept, and until then nobody else can read the temporary one. What killed
    writes to the same path have left is removed.
    """
    target = _target(path)
    sweep(target)
    # A new file gets the mode that the user's mask allows; one that replaces another, its mode.
    mode = 0o600 if target.exists() else 0o666
    temporary = target.with_name(f".{_stem(target)}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            _lock(file.fileno())  # until the file is closed
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            if sys.platform == "win32":  # where only closed files can be renamed
                file.close()
            os.replace(temporary, target)
    except OSError as error:
        error.filename = os.fspath(target)  # callers do not know the temporary file
        raise
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise, before there is anything to write, what ``replacing`` would raise."""
    with suppress(_OnlyTried), replacing(path) as file:
        file.write(bytes(4096))
        file.flush()
        os.fsync(file.fileno())
        raise _OnlyTried


class _OnlyTried(Exception):  # noqa: N818
    """Ends a write before it replaces anything."""


def sweep(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files that killed writes to this path have left, as far as possible."""
    target = Path(os.path.realpath(path))
    own = re.compile(rf"\.{re.escape(_stem(target))}\.[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for name in os.listdir(target.parent):
            if own.fullmatch(name):
                with suppress(OSError):
                    _remove_if_abandoned(target.with_name(name))


def _remove_if_abandoned(path: Path) -> None:
    """Remove a regular file of this user that nobody holds a lock on."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        return
    if sys.platform == "win32":  # where files that are open cannot be removed
        path.unlink()
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if found.st_uid == os.geteuid():
            path.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    if sys.platform != "win32":
        with suppress(OSError):  # a file system may know no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


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


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, if the system supports that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
