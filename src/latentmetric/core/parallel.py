"""Threads over independent pieces of work, which share the threads that BLAS would use.

Many small GEMMs gain nothing from a threaded BLAS, but they do from many threads with one GEMM
each. NumPy releases the GIL inside GEMM, argmin and copies, so threads are enough.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")

THREADED_FEATURES = 1_024
"""Below this many features, products with d×d matrices are too small to gain from threads.

On a busy machine they get slower: the BLAS threads wait for each other thousands of times.
"""


def thread_count(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` means; None means as many as BLAS may use now."""
    if n_jobs is None:
        pools = _controller().info()
        return max((pool["num_threads"] for pool in pools if pool["user_api"] == "blas"), default=1)
    if n_jobs < 0:
        return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    return n_jobs


def for_each(function: Callable[[Item], object], items: Sequence[Item], n_threads: int) -> None:
    """Call ``function`` on every item, on up to ``n_threads`` threads; raise the first error."""
    n_workers = min(n_threads, len(items))
    if n_workers <= 1:
        for item in items:
            function(item)
        return
    share = max(1, n_threads // n_workers)
    with blas_threads(share), ThreadPoolExecutor(n_workers) as pool:
        for _ in pool.map(function, items):
            pass


class OrderedSum:
    """Adds parts in the order of their numbers, whatever order threads deliver them in.

    So the sum is rounded the same way every time. No thread waits: early parts are kept.
    """

    def __init__(self, total: Any) -> None:
        self.total = total
        self._early: dict[int, Any] = {}
        self._next = 0
        self._lock = Lock()

    def add(self, number: int, part: Any) -> None:
        """Deliver part ``number`` of 0, 1, 2, …"""
        with self._lock:
            self._early[number] = part
            while self._next in self._early:
                self.total += self._early.pop(self._next)
                self._next += 1


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """Limit BLAS to ``n_threads`` inside the block.

    The limit applies to the whole process. If blocks overlap, nested or in several threads, the
    smallest limit applies, and the last block to end restores what the first one found.
    """
    block = object()
    try:
        _LIMITS.enter(block, n_threads)
        yield
    finally:
        _LIMITS.leave(block)


class _SharedLimits:
    """The limits of all open blocks, and what BLAS was set to before the first.

    An interrupt may come between any two lines, so the original setting is saved before it is
    changed and dropped only after it is restored.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._limits: dict[object, int] = {}
        self._before: Any = None

    def enter(self, block: object, n_threads: int) -> None:
        with self._lock:
            if self._before is None:
                self._before = _controller().limit(limits=None, user_api="blas")
            self._limits[block] = n_threads
            self._apply()

    def leave(self, block: object) -> None:
        with self._lock:
            self._limits.pop(block, None)
            self._apply()

    def _apply(self) -> None:
        if self._limits:
            _controller().limit(limits=min(self._limits.values()), user_api="blas")
        elif self._before is not None:
            self._before.restore_original_limits()
            self._before = None


_LIMITS = _SharedLimits()


_SCANNED: list[tuple[int, ThreadpoolController]] = []


def _controller() -> ThreadpoolController:
    """A controller of all BLAS libraries in the process; each import may load another one."""
    n_modules = len(sys.modules)
    if not _SCANNED or _SCANNED[0][0] != n_modules:
        _SCANNED[:] = [(n_modules, ThreadpoolController())]
    return _SCANNED[0][1]
