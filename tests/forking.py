"""Work in forked children, which may find locks taken by threads that they do not have."""

import os
import signal
import time

import pytest


def forked(work):
    """Whether ``work()`` is true in a forked child; a child that hangs is ended and fails."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    for _ in range(1_000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


def needs_forks(test):
    """Skip the test where the system cannot fork; newer Pythons warn of forks among threads."""
    skip = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
    return pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")(skip(test))
