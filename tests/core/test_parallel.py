import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from forking import forked, needs_forks
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from latentmetric.core import parallel
from latentmetric.core.parallel import (
    background_thread,
    blas_threads,
    parallel_map,
    thread_count,
)


def blas_limits():
    """The limits of the BLAS that NumPy and SciPy use. An OpenMP BLAS, such as that of faiss, is
    left out: its limit is per calling thread."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {pool["num_threads"] for pool in pools if pool["threading_layer"] != "openmp"}


@pytest.fixture
def two_threads():
    """BLAS may use two threads."""
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture
def limited_thread():
    """Starts a thread that limits BLAS; returns the event that ends it."""
    threads, ends = [], []

    def start(n_threads):
        entered, end = threading.Event(), threading.Event()

        def limit():
            with blas_threads(n_threads):
                entered.set()
                end.wait(30)

        threads.append(threading.Thread(target=limit))
        ends.append(end)
        threads[-1].start()
        entered.wait(10)
        return end, threads[-1]

    yield start
    for end, thread in zip(ends, threads, strict=True):
        end.set()
        thread.join()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_every_item_is_visited_once_and_results_are_in_order(n_threads):
    seen = []
    assert parallel_map(lambda item: seen.append(item) or -item, range(20), n_threads) == [
        -item for item in range(20)
    ]
    assert sorted(seen) == list(range(20))


@pytest.mark.parametrize("in_caller", [True, False])
def test_an_error_in_one_thread_reaches_the_caller_and_ends_the_others(in_caller):
    caller, seen = threading.get_ident(), []
    both = threading.Barrier(2)

    def fail(item):
        if item < 2:  # so that both threads have an item
            both.wait(10)
        seen.append(item)
        if (threading.get_ident() == caller) == in_caller:
            raise RuntimeError("enough")
        time.sleep(0.05)

    with pytest.raises(RuntimeError, match="enough"):
        parallel_map(fail, range(1_000), 2)
    assert len(seen) < 1_000


def test_threads_share_the_threads_of_blas_and_restore_them(two_threads):
    assert parallel_map(lambda _: blas_limits(), range(4), 2) == [{1}] * 4
    assert parallel_map(lambda _: blas_limits(), range(2), 6) == [{3}] * 2
    assert blas_limits() == {2}


def test_blas_is_set_only_when_the_limit_changes(two_threads, monkeypatch):
    calls, limit = [], ThreadpoolController.limit
    monkeypatch.setattr(
        ThreadpoolController, "limit", lambda *a, **k: calls.append(k["limits"]) or limit(*a, **k)
    )
    with blas_threads(1):
        for _ in range(5):
            parallel_map(lambda _: None, range(4), 2)
            with background_thread(2):
                pass
    assert calls == [None, 1]


def test_the_last_of_overlapping_limits_restores_what_the_first_found(two_threads, limited_thread):
    with blas_threads(2):
        end, thread = limited_thread(1)
        assert blas_limits() == {1}
    assert blas_limits() == {1}
    end.set()
    thread.join()
    assert blas_limits() == {2}


@pytest.mark.parametrize("moment", range(8))
def test_an_interrupt_while_a_limit_is_set_is_undone_by_the_next_block(
    moment, two_threads, monkeypatch
):
    moments = iter(range(8))

    def interrupted(function):
        def call(*arguments, **named):
            for action in (lambda: None, lambda: function(*arguments, **named)):
                found = action()
                if next(moments, None) == moment:
                    raise KeyboardInterrupt
            return found

        return call

    limiter = type(parallel._controller().limit(limits=None, user_api="blas"))
    with monkeypatch.context() as patched:
        for owner, name in ((ThreadpoolController, "limit"), (limiter, "restore_original_limits")):
            patched.setattr(owner, name, interrupted(getattr(owner, name)))
        with suppress(KeyboardInterrupt), blas_threads(1):
            pass
    with blas_threads(1):
        assert blas_limits() == {1}
    assert blas_limits() == {2}


@pytest.mark.slow
@needs_forks
def test_a_child_forked_while_a_thread_sets_limits_can_set_them():
    done = threading.Event()

    def set_limits():
        while not done.is_set():
            with blas_threads(1):
                pass

    def limits_can_be_set():
        with blas_threads(1):
            return blas_limits() == {1}

    setter = threading.Thread(target=set_limits)
    setter.start()
    try:
        assert all(forked(limits_can_be_set) for _ in range(5))
    finally:
        done.set()
        setter.join()


@pytest.mark.slow
@needs_forks
def test_a_child_keeps_only_the_limits_of_its_own_thread(two_threads, limited_thread):
    end, thread = limited_thread(1)
    assert forked(lambda: blas_limits() == {2})
    assert blas_limits() == {1}
    end.set()
    thread.join()
    with blas_threads(1):
        assert forked(lambda: blas_limits() == {1})


@pytest.mark.slow
@needs_forks
@pytest.mark.parametrize("ends", [True, False], ids=["a block that ends", "one that does not"])
def test_a_fork_waits_for_threads_of_blas_but_not_forever(ends, two_threads, monkeypatch):
    """OpenBLAS ends its threads before a fork, and a product that uses them would never end."""
    monkeypatch.setattr(parallel, "FORK_SECONDS", 5 if ends else 0.02)
    entered, done = threading.Event(), threading.Event()

    def threaded():
        with blas_threads(2):
            entered.set()
            while not done.is_set() and not (ends and blas_limits() == {1}):
                time.sleep(0.001)

    thread = threading.Thread(target=threaded)
    thread.start()
    entered.wait(10)
    try:
        assert forked(lambda: blas_limits() == {2})
        assert not (ends and parallel._LIMITS.blocks)
        assert blas_limits() == {2}
    finally:
        done.set()
        thread.join()


def test_thread_count_follows_blas_unless_given(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    with threadpool_limits(1, user_api="blas"):
        assert thread_count(None) == 1
    assert [thread_count(n_jobs) for n_jobs in (3, -1, -2, -50)] == [3, 6, 5, 1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_background_thread_works_in_the_order_of_submission(n_threads):
    seen = []

    def note(item):
        time.sleep(0.002 * (5 - item))
        seen.append(item)
        return threading.get_ident(), 2 * item

    with background_thread(n_threads) as executor:
        futures = [executor.submit(note, item) for item in range(5)]
        found = [future.result() for future in futures]
    assert seen == list(range(5))
    assert [value for _, value in found] == [0, 2, 4, 6, 8]
    assert ({thread for thread, _ in found} == {threading.get_ident()}) == (n_threads == 1)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_treat_errors_of_floats_as_the_caller(n_threads):
    large = np.float32([1e30])
    with np.errstate(over="raise"):
        with background_thread(n_threads) as executor, pytest.raises(FloatingPointError):
            executor.submit(np.square, large).result()
        with pytest.raises(FloatingPointError):
            parallel_map(np.square, [large] * 4, n_threads)
    with np.errstate(over="ignore"), background_thread(n_threads) as executor:
        assert np.isinf(executor.submit(np.square, large).result()).all()
