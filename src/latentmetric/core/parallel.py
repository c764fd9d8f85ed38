"""Threads over independent pieces of work, while BLAS uses one thread for each piece.

Many small GEMMs gain nothing from a threaded BLAS, but they do from many threads with one GEMM
each. NumPy releases the GIL inside GEMM, argmin and copies, so threads are enough. OpenBLAS ends
its threads when the process forks, and a product that needs them would never end; one that needs
none does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from threadpoolctl import OpenBLASController, ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")


def thread_count(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` means; None means as many as BLAS may use."""
    if n_jobs is None:
        allowed = _ORIGINAL or _blas_pools()
        return max((n_threads for _, n_threads in allowed), default=1)
    if n_jobs < 0:
        return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    return n_jobs


def parallel_map(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int
) -> list[Result]:
    """``function`` of every item, on up to ``n_threads`` threads; raise the first error.

    This thread is one of them: memory that a thread has freed is not free for others.
    """
    n_workers = min(n_threads, len(items))
    if n_workers <= 1:
        return [function(item) for item in items]
    results: list[Any] = [None] * len(items)
    waiting = iter(enumerate(items))  # each thread takes the next one
    states: Any = {**np.geterr(), "call": np.geterrcall()}

    def work() -> None:
        try:
            for number, item in waiting:
                results[number] = function(item)
        except BaseException:
            for _ in waiting:  # leave nothing to the others
                pass
            raise

    def work_elsewhere() -> None:
        with np.errstate(**states):
            work()

    with single_threaded_blas(), ThreadPoolExecutor(n_workers - 1) as pool:
        others = [pool.submit(work_elsewhere) for _ in range(n_workers - 1)]
        work()
        for other in others:
            other.result()
    return results


_LOCK = RLock()
_BLOCKS: dict[object, int] = {}
"""The thread of each open block of ``single_threaded_blas``."""
_ORIGINAL: list[tuple[Any, int]] = []
"""The BLAS libraries and their numbers of threads before the first of these blocks."""


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside the block, for the whole process.

    Blocks may overlap, nested or in several threads; the last to end restores what the first found.
    """
    block = object()
    try:
        with _LOCK:
            _BLOCKS[block] = get_ident()
            if len(_BLOCKS) == 1:
                _ORIGINAL[:] = _ORIGINAL or _blas_pools()
                _set_threads([(pool, 1) for pool, _ in _ORIGINAL])
        yield
    finally:
        with _LOCK:
            if _BLOCKS.pop(block, None) and not _BLOCKS:
                _set_threads(_ORIGINAL)
                _ORIGINAL.clear()


def _restore_in_child() -> None:
    """Free the lock, and end the blocks of threads that a forked child does not have."""
    _LOCK._at_fork_reinit()  # type: ignore[attr-defined]
    lost = [block for block, thread in _BLOCKS.items() if thread != get_ident()]
    for block in lost:
        del _BLOCKS[block]
    if lost and not _BLOCKS:
        _set_threads(_ORIGINAL)
        _ORIGINAL.clear()


def _set_threads(limits: list[tuple[Any, int]]) -> None:
    # Newer versions of threadpoolctl ignore every thread but the first one that set a limit.
    release = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    release(force=True)
    for pool, n_threads in limits:
        pool.set_num_threads(n_threads)
    release(force=True)


_SCANNED: list[tuple[int, list[Any]]] = []


def _blas_pools() -> list[tuple[Any, int]]:
    """All BLAS libraries of the process and their threads; each import may load another one."""
    n_modules = len(sys.modules)
    if not _SCANNED or _SCANNED[0][0] != n_modules:
        found = ThreadpoolController().select(user_api="blas").lib_controllers
        _SCANNED[:] = [(n_modules, found)]
    return [(pool, pool.get_num_threads() or 1) for pool in _SCANNED[0][1]]


# Forks wait until the lock is free, so that no child finds it taken by a lost thread. It is an
# RLock, because its owner may fork. The standard library treats its own locks like this.
if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_restore_in_child
    )


class lazy_property(cached_property[Value]):  # noqa: N801 - used like ``property``
    """``cached_property`` without a lock: threads may each compute a value at the same time.

    Python 3.11 holds one for all instances of a class; a process that forks meanwhile gives its
    child a lock that nobody releases.
    """

    if not TYPE_CHECKING:

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            return vars(instance).setdefault(self.attrname, self.func(instance))
