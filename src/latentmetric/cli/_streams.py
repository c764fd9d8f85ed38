"""Standard streams as callers leave them: some close them, some set them not to wait."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

STREAMS = ("stdin", "stdout", "stderr")
"""By the number of their descriptor."""


def take_streams() -> None:
    """Let nothing that is read or written be lost, whatever the caller did to the streams.

    A write to a pipe that does not wait is cut where the pipe is full, and a read where it is
    empty, without an error. A closed stream has a free descriptor: the next file that is opened
    would get its number, and what is meant for the stream with it.
    """
    for place in range(len(STREAMS)):
        # Closed, or Windows, which sets only pipes and only since Python 3.12.
        with suppress(OSError, AttributeError):
            os.set_blocking(place, True)
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(STREAMS):
        pass
    os.close(descriptor)
    for name in STREAMS[1:]:
        if getattr(sys, name) is None:
            # It lives as long as the process.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
