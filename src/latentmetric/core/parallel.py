"""Threads over independent pieces of work, which share the threads that BLAS would use.

Many small GEMMs gain nothing from a threaded BLAS, but they do from many threads with one GEMM
each. NumPy releases the GIL inside GEMM, argmin and copies, so threads are enough.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock, get_ident
from time import monotonic, sleep
from typing import Any, Generic, TypeVar, overload

import numpy as np
from threadpoolctl import OpenBLASController, ThreadpoolController

from latentmetric.core.tuning import FORK_SECONDS

Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")


def thread_count(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` means; None means as many as BLAS may use now."""
    if n_jobs is None:
        pools = _controller().select(user_api="blas").lib_controllers
        return max((pool.get_num_threads() or 1 for pool in pools), default=1)
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

    def work() -> None:
        try:
            for number, item in waiting:
                results[number] = function(item)
        except BaseException:
            for _ in waiting:  # leave nothing to the others
                pass
            raise

    with blas_threads(max(1, n_threads // n_workers)), _thread_pool(n_workers - 1) as pool:
        others = [pool.submit(work) for _ in range(n_workers - 1)]
        work()
        for other in others:
            other.result()
    return results


@contextmanager
def background_thread(n_threads: int) -> Iterator[Executor]:
    """An executor with one thread, or with none if ``n_threads`` is 1; BLAS gets the others."""
    with (
        blas_threads(max(1, n_threads // 2)),
        _thread_pool(1) if n_threads > 1 else _SerialExecutor() as executor,
    ):
        yield executor


class _SerialExecutor(Executor):
    """Calls each function when it is submitted, in this thread."""

    def submit(  # type: ignore[override]
        self, function: Callable[..., Result], /, *arguments: Any
    ) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(function(*arguments))
        return future


def _thread_pool(n_threads: int) -> ThreadPoolExecutor:
    """Threads that treat errors of floats (``np.errstate``) as this one does."""

    def adopt(states: Any, call: Any) -> None:
        np.seterrcall(call)
        np.seterr(**states)

    return ThreadPoolExecutor(n_threads, initializer=adopt, initargs=(np.geterr(), np.geterrcall()))


@dataclass(eq=False)
class _Block:
    """A ``with`` statement that computes with so many threads of BLAS; None means no limit."""

    n_threads: int | None
    thread: int
    is_fork: bool = False


class _Limits:
    """The limits of all open blocks: the smallest applies, the last to end restores BLAS's own."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.blocks: list[_Block] = []
        self._original: Any = None
        self._applied: int | None = None

    def apply(self) -> None:
        """Set BLAS if the limit has changed; what it was is kept until it is restored.

        The caller holds the lock.
        """
        limits = [block.n_threads for block in self.blocks if block.n_threads is not None]
        limit = min(limits, default=None)
        if limit == self._applied and (limit is not None) == (self._original is not None):
            return
        if self._original is None:
            self._original = _controller().limit(limits=None, user_api="blas")
        self._applied = None  # until it is set: an interrupt may come before
        _release_controlling_thread()
        if limit is None:
            self._original.restore_original_limits()
            self._original = None
        else:
            _controller().limit(limits=limit, user_api="blas")
        self._applied = limit
        _release_controlling_thread()

    def before_fork(self) -> None:
        """Wait until other threads no longer compute with threads of BLAS; called with the lock.

        These end with the fork, even in the parent, and a product that needs them never ends.
        Products that begin from now on need none.
        """
        here = get_ident()
        threaded = [b for b in self.blocks if b.thread != here and b.n_threads != 1]
        if not threaded:
            return
        self.blocks.append(_Block(1, here, is_fork=True))
        self.apply()
        until = monotonic() + FORK_SECONDS
        while monotonic() < until and any(block in self.blocks for block in threaded):
            self.lock.release()
            sleep(0.001)
            self.lock.acquire()

    def after_fork(self, in_child: bool = False) -> None:
        """Drop the block of the fork and, in the child, those of threads that it does not have."""
        here = get_ident()
        self.blocks = [
            block
            for block in self.blocks
            if not (block.is_fork and (in_child or block.thread == here))
            and not (in_child and block.thread != here)
        ]
        self.apply()


def _release_controlling_thread() -> None:
    """Newer versions of threadpoolctl ignore every thread but the first one that set a limit."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def keep_over_forks(lock: Any, **hooks: Callable[[], object]) -> None:
    """Let forks wait until the lock is free, so that no child finds it taken by a lost thread.

    The lock is an ``RLock``, because its owner may fork. The standard library treats its own
    locks like this, down to the method with an underscore. ``hooks`` are further arguments of
    ``os.register_at_fork``, and are called while this thread holds the lock.
    """
    if hasattr(os, "register_at_fork"):  # Windows has no forks
        if hooks:  # registered first, called last before a fork and first after it
            os.register_at_fork(**hooks)
        os.register_at_fork(
            before=lock.acquire,
            after_in_parent=lock.release,
            after_in_child=lock._at_fork_reinit,
        )


_LIMITS = _Limits()
keep_over_forks(
    _LIMITS.lock,
    before=_LIMITS.before_fork,
    after_in_parent=_LIMITS.after_fork,
    after_in_child=lambda: _LIMITS.after_fork(in_child=True),
)


@contextmanager
def blas_threads(n_threads: int | None) -> Iterator[None]:
    """Limit BLAS to ``n_threads`` inside the block; None sets no limit, but forks wait for it.

    The limit applies to the whole process. If blocks overlap, nested or in several threads, the
    smallest limit applies, and the last block to end restores what the first one found.
    """
    block = _Block(n_threads, get_ident())
    try:
        with _LIMITS.lock:
            _LIMITS.blocks.append(block)
            _LIMITS.apply()
        yield
    finally:
        with _LIMITS.lock:
            _LIMITS.blocks = [other for other in _LIMITS.blocks if other is not block]
            _LIMITS.apply()


_SCANNED: list[tuple[int, ThreadpoolController]] = []


def _controller() -> ThreadpoolController:
    """A controller of all BLAS libraries in the process; each import may load another one."""
    n_modules = len(sys.modules)
    if not _SCANNED or _SCANNED[0][0] != n_modules:
        _SCANNED[:] = [(n_modules, ThreadpoolController())]
    return _SCANNED[0][1]


class lazy_property(Generic[Value]):  # noqa: N801 - used like ``property``
    """Computes a value once and keeps it in the instance's ``__dict__``, even of a frozen one.

    It has no lock. ``functools.cached_property`` of Python 3.11 holds one for all instances of a
    class while it computes; a process that forks at that moment gives its child a lock that nobody
    releases. Threads that read a value at the same time may each compute it.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> lazy_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> Value: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> Value | lazy_property[Value]:
        """The value; Python calls this only as long as ``__dict__`` does not have it."""
        if instance is None:
            return self
        value: Value = vars(instance).setdefault(self._name, self._compute(instance))
        return value
