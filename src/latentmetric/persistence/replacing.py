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

ATTEMPTS = 5
"""How often another temporary name is tried where somebody else has locked the file."""

TRIED_BYTES = 4096
"""How much is written to find out whether a folder takes anything."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block succeeds, and only then.

    A symbolic link is followed: the file it points to is replaced, and the link stays. The mode of
    an existing file is kept, and until then nobody else can read the temporary one. What killed
    writes to the same path have left is removed.
    """
    target = _target(path)
    sweep(target)
    with _named_after(target), _created(target) as (temporary, file):
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    _sync_folder(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise, before there is anything to write, what ``replacing`` would raise."""
    with suppress(_OnlyTried), replacing(path) as file:
        file.write(bytes(TRIED_BYTES))
        file.flush()
        os.fsync(file.fileno())
        raise _OnlyTried


class _OnlyTried(Exception):  # noqa: N818
    """Ends a write before it replaces anything."""


def sweep(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files that killed writes to this path have left, as far as possible."""
    target = Path(os.path.realpath(path))
    own = re.compile(rf"\.{re.escape(_stem(target))}\.[0-9a-f]{{16}}\.tmp")
    left: list[str] = []
    with suppress(OSError), os.scandir(target.parent) as entries:
        left = [
            entry.path
            for entry in entries
            if own.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    for name in left:
        with suppress(OSError):
            _remove_if_abandoned(name)


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
    """The beginning of a name, cut between characters to a number of bytes."""
    stem = target.name
    while len(os.fsencode(stem)) > LONGEST_STEM:
        stem = stem[:-1]
    return stem


@contextmanager
def _created(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new locked file beside the target; if it is still there at the end, it is removed."""
    # A new file gets the mode that the user's mask allows; one that replaces another, its mode.
    mode = 0o600 if target.exists() else 0o666
    for attempt in range(ATTEMPTS):
        temporary = target.with_name(f".{_stem(target)}.{secrets.token_hex(8)}.tmp")
        file = open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
        try:
            with _locked(file.fileno()) as is_ours:
                if is_ours or attempt == ATTEMPTS - 1:
                    yield temporary, file
                    return
        finally:
            file.close()
            temporary.unlink(missing_ok=True)


@contextmanager
def _named_after(target: Path) -> Iterator[None]:
    """Put the target into errors of the system: callers do not know the temporary file."""
    try:
        yield
    except OSError as error:
        error.filename = os.fspath(target)
        raise


if sys.platform == "win32":  # where files that are open cannot be removed

    @contextmanager
    def _locked(descriptor: int) -> Iterator[bool]:
        yield True

    def _remove_if_abandoned(name: str) -> None:
        os.unlink(name)

else:

    @contextmanager
    def _locked(descriptor: int) -> Iterator[bool]:
        """Lock an open file until the end of the block, even if it is closed before.

        Whether it is locked and has not been removed; a file system may also know no locks.
        """
        kept = os.dup(descriptor)
        try:
            is_locked = True
            try:
                fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_locked = False
            except OSError:
                pass
            yield is_locked and os.fstat(kept).st_nlink > 0
        finally:
            os.close(kept)

    def _remove_if_abandoned(name: str) -> None:
        """Remove a file of this user that nobody holds a lock on."""
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_uid == os.geteuid():
                os.unlink(name)
        finally:
            os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, if the system supports that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
