"""Files that must stay as they are while they are read: regular, whole and unchanged."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import finalize


def refuse_unless_regular(path: Path) -> None:
    """Refuse pipes, sockets and devices: whoever opens one may wait for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(
            f"{path} is a pipe, a socket or a device, not a regular file; copy what it gives to a "
            "file, or send text to standard input, which the commands call -"
        )


def mark(found: os.stat_result) -> tuple[int, int]:
    """What changes when a file is written to."""
    return found.st_size, found.st_mtime_ns


class Watch:
    """A file as it was when it was opened.

    Rows of a file that is cut or written to are neither the old ones nor the new ones. A file that
    is deleted, or replaced by another of its name, stays whole for whoever has it open.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        file = path.open("rb")
        finalize(self, file.close)
        self._fd = file.fileno()
        self._before = mark(os.fstat(self._fd))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse what was read, or say why it failed, if the file was changed before or during."""
        try:
            yield
        except Exception:
            self._check()
            raise
        self._check()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Check also that whoever opened the file by its name meanwhile opened this one."""
        with self.unchanged():
            yield
            if not os.path.samestat(self._path.stat(), os.fstat(self._fd)):
                raise OSError(f"{self._name} was replaced while it was opened; try again")

    def _check(self) -> None:
        now = mark(os.fstat(self._fd))
        if now == self._before:
            return
        sizes = f"had {self._before[0]} bytes when it was opened and has {now[0]} now"
        if now[0] == self._before[0]:
            sizes = f"still has {now[0]} bytes, but others"
        raise OSError(
            f"{self._name} was changed while it was read: it {sizes}; start again when it is "
            "complete, and write new versions under another name"
        )
