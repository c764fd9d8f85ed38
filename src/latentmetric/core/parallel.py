"""Threads over independent pieces of work, which share out what BLAS would use.

Many small GEMMs gain nothing from a threaded BLAS; many threads with one GEMM each do. NumPy
releases the interpreter's lock inside GEMM, argmin and copies, so threads are enough.
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
"""Below this many features products with d×d matrices are too small to gain from threads.

On a busy machine they lose by them: the threads of BLAS wait for each other thousands of times.
"""


def thread_count(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` stands for; None is as many as BLAS may use at this moment."""
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
    """Adds parts that threads bring in any order in the order of their numbers.

    So the sum rounds alike every time. Nobody waits: a part that comes too early is kept.
    """

    def __init__(self, total: Any) -> None:
        self.total = total
        self._early: dict[int, Any] = {}
        self._next = 0
        self._lock = Lock()

    def add(self, number: int, part: Any) -> None:
        """Part ``number`` of 0, 1, 2, …"""
        with self._lock:
            self._early[number] = part
            while self._next in self._early:
                self.total += self._early.pop(self._next)
                self._next += 1


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """BLAS limited to ``n_threads`` inside the block, as it was before after the last block.

    The limit belongs to the process. Where blocks overlap, nested or from several threads, the
    smallest limit holds, and the last to leave restores what the first one found.
    """
    block = object()
    try:
        _LIMITS.enter(block, n_threads)
        yield
    finally:
        _LIMITS.leave(block)


class _SharedLimits:
    """The limits that blocks ask for at this moment, and what BLAS was set to before the first.

    An interrupt may come between any two lines: what was before is known before it is changed,
    and is forgotten only once it is restored.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: dict[object, int] = {}
        self._before: Any = None

    def enter(self, block: object, n_threads: int) -> None:
        with self._lock:
            if self._before is None:
                self._before = _controller().limit(limits=None, user_api="blas")
            self._asked[block] = n_threads
            self._apply()

    def leave(self, block: object) -> None:
        with self._lock:
            self._asked.pop(block, None)
            self._apply()

    def _apply(self) -> None:
        if self._asked:
            _controller().limit(limits=min(self._asked.values()), user_api="blas")
        elif self._before is not None:
            self._before.restore_original_limits()
            self._before = None


_LIMITS = _SharedLimits()


_SCANNED: list[tuple[int, ThreadpoolController]] = []


def _controller() -> ThreadpoolController:
    """Of all BLAS libraries in the process; what is imported may bring another one."""
    n_modules = len(sys.modules)
    if not _SCANNED or _SCANNED[0][0] != n_modules:
        _SCANNED[:] = [(n_modules, ThreadpoolController())]
    return _SCANNED[0][1]
