"""Threads over independent pieces of work, which share the threads that BLAS would use.

Many small GEMMs gain nothing from a threaded BLAS, but they do from many threads with one GEMM
each. NumPy releases the GIL inside GEMM, argmin and copies, so threads are enough.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock, RLock, get_ident
from time import monotonic, sleep
from typing import Any, Generic, Self, TypeVar
from weakref import WeakSet

import numpy as np
from threadpoolctl import OpenBLASController, ThreadpoolController

Item = TypeVar("Item")

THREADED_FEATURES = 1_024
"""Below this many features, products with d×d matrices are too small to gain from threads.

On a busy machine they get slower: the BLAS threads wait for each other thousands of times.
"""

FORK_SECONDS = 1.0
"""A fork waits this long at most for blocks to end: longer than any one matrix product takes."""


def thread_count(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` means; None means as many as BLAS may use now."""
    if n_jobs is None:
        pools = _controller().select(user_api="blas").lib_controllers
        return max((pool.get_num_threads() or 1 for pool in pools), default=1)
    if n_jobs < 0:
        return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    return n_jobs


@contextmanager
def small_numbers_may_vanish() -> Iterator[None]:
    """Let numbers become 0 that are too small for a float, whatever ``np.errstate`` says outside.

    Weights of rows far away are such numbers. All other errors of floats are left to the caller.
    """
    with np.errstate(under="ignore"):
        yield


def for_each(function: Callable[[Item], object], items: Sequence[Item], n_threads: int) -> None:
    """Call ``function`` on every item, on up to ``n_threads`` threads; raise the first error.

    This thread is one of them: memory that a thread has freed is not free for others. The others
    treat errors of floats (``np.errstate``) as this one does.
    """
    n_workers = min(n_threads, len(items))
    waiting = iter(items)  # each thread takes the next one

    def work() -> None:
        try:
            for item in waiting:
                function(item)
        except BaseException:
            for _ in waiting:  # leave nothing to the others
                pass
            raise

    if n_workers <= 1:
        work()
        return
    states: dict[str, Any] = {**np.geterr(), "call": np.geterrcall()}

    def work_alike() -> None:
        with np.errstate(**states):
            work()

    share = max(1, n_threads // n_workers)
    with blas_threads(share), ThreadPoolExecutor(n_workers - 1) as pool:
        others = []
        with suppress(RuntimeError):  # no thread starts while Python ends
            others = [pool.submit(work_alike) for _ in range(n_workers - 1)]
        work()
        for other in others:
            other.result()


Result = TypeVar("Result")


class Answer(Generic[Result]):
    """What an assistant was asked for."""

    def __init__(self, compute: Callable[[], Result], pool: ThreadPoolExecutor | None) -> None:
        self._future: Future[Result] | None = None
        if pool is not None:
            with suppress(RuntimeError):  # no thread starts while Python ends
                self._future = pool.submit(compute)
        if self._future is None:
            self._value = compute()

    def result(self) -> Result:
        """The answer, as soon as it is there; raises what its computation raised."""
        return self._value if self._future is None else self._future.result()


class Assistant:
    """Another thread that works one piece after the other, in the order they were asked for.

    With ``n_threads=1`` there is none, and each piece is done at once. It treats errors of floats
    (``np.errstate``) as the caller does. BLAS gets the rest of the threads.
    """

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(1) if n_threads > 1 else None
        self._limit = blas_threads(max(1, n_threads // 2))
        self._states: dict[str, Any] = {**np.geterr(), "call": np.geterrcall()}

    def __enter__(self) -> Self:
        self._limit.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._limit.__exit__(*exception)

    def ask(self, function: Callable[..., Result], *arguments: Any) -> Answer[Result]:
        """Have the function called with these arguments."""

        def compute() -> Result:
            with np.errstate(**self._states):
                return function(*arguments)

        return Answer(compute, self._pool)


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
def blas_threads(n_threads: int | None) -> Iterator[None]:
    """Limit BLAS to ``n_threads`` inside the block; None sets no limit, but forks wait for it.

    The limit applies to the whole process. If blocks overlap, nested or in several threads, the
    smallest limit applies, and the last block to end restores what the first one found.
    """
    block = _Block(n_threads)
    try:
        try:
            _LIMITS.enter(block)
            yield
        finally:
            _LIMITS.leave(block)
    except BaseException:  # perhaps of a signal's handler while the block was left: leave it again
        _LIMITS.leave(block)
        raise


class _Block:
    """An open block, which counts only as long as the code inside it exists."""

    def __init__(self, n_threads: int | None) -> None:
        self.n_threads, self.thread = n_threads, get_ident()


class _SharedLimits:
    """The limits of all open blocks, and what BLAS was set to before the first.

    An interrupt may come between any two lines, so the original setting is saved before it is
    changed and dropped only after it is restored. The lock is reentrant, because the handler of a
    signal may compute, too.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._blocks: WeakSet[_Block] = WeakSet()
        self._before: Any = None
        self._forks: dict[int, _Block] = {}

    def enter(self, block: _Block) -> None:
        with self.lock:
            if block.n_threads is None:
                self._blocks.add(block)
                return
            if self._before is None:
                self._before = _controller().limit(limits=None, user_api="blas")
            self._blocks.add(block)
            self._apply()

    def leave(self, block: _Block) -> None:
        with self.lock:
            self._blocks.discard(block)
            if block.n_threads is not None:
                self._apply()

    def _apply(self) -> None:
        limits = [block.n_threads for block in self._blocks if block.n_threads is not None]
        _let_any_thread_limit()
        if limits:
            _controller().limit(limits=min(limits), user_api="blas")
        elif self._before is not None:
            self._before.restore_original_limits()
            self._before = None
        _let_any_thread_limit()

    def before_fork(self) -> None:
        """Wait until other threads no longer compute with threads of BLAS; called with the lock.

        These end with the fork, even in the parent, and a product that needs them never ends.
        Products that begin from now on need none.
        """
        here = get_ident()
        threaded = {
            block for block in self._blocks if block.thread != here and block.n_threads != 1
        }
        if not threaded:
            return
        self._forks[here] = _Block(1)
        self.enter(self._forks[here])
        since = monotonic()
        while monotonic() < since + FORK_SECONDS and not threaded.isdisjoint(self._blocks):
            self.lock.release()
            sleep(0.001)
            self.lock.acquire()

    def after_fork(self) -> None:
        """In the parent: the limits are again those of the open blocks."""
        block = self._forks.pop(get_ident(), None)
        if block is not None:
            self.leave(block)

    def after_fork_in_child(self) -> None:
        """In the child: blocks of other threads will never end, because these are gone."""
        self._forks.clear()
        for block in list(self._blocks):
            if block.thread != get_ident():
                self._blocks.discard(block)
        self._apply()


def _let_any_thread_limit() -> None:
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


_LIMITS = _SharedLimits()
keep_over_forks(
    _LIMITS.lock,
    before=_LIMITS.before_fork,
    after_in_parent=_LIMITS.after_fork,
    after_in_child=_LIMITS.after_fork_in_child,
)


_SCANNED: list[tuple[int, ThreadpoolController]] = []


def _controller() -> ThreadpoolController:
    """A controller of all BLAS libraries in the process; each import may load another one."""
    n_modules = len(sys.modules)
    if not _SCANNED or _SCANNED[0][0] != n_modules:
        _SCANNED[:] = [(n_modules, ThreadpoolController())]
    return _SCANNED[0][1]
