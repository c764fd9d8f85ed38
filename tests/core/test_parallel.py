import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from forking import forked, needs_forks
from threadpoolctl import threadpool_info, threadpool_limits

from latentmetric.core import parallel
from latentmetric.core.parallel import parallel_map, single_threaded_blas, thread_count


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
    """A thread that limits BLAS, and the event that ends it."""
    entered, end = threading.Event(), threading.Event()

    def limit():
        with single_threaded_blas():
            entered.set()
            end.wait(30)

    thread = threading.Thread(target=limit)
    thread.start()
    entered.wait(10)
    yield end, thread
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


def test_blas_uses_one_thread_for_each_item_and_is_restored(two_threads):
    assert parallel_map(lambda _: blas_limits(), range(4), 2) == [{1}] * 4
    assert blas_limits() == {2}


def test_blas_is_set_only_by_the_outermost_block(two_threads, monkeypatch):
    calls, set_threads = [], parallel._set_threads
    monkeypatch.setattr(
        parallel, "_set_threads", lambda limits: calls.append(limits) or set_threads(limits)
    )
    with single_threaded_blas():
        for _ in range(5):
            parallel_map(lambda _: None, range(4), 2)
        assert len(calls) == 1
    assert len(calls) == 2


def test_the_last_of_overlapping_limits_restores_what_the_first_found(two_threads, limited_thread):
    end, thread = limited_thread
    with single_threaded_blas():
        end.set()
        thread.join()
        assert blas_limits() == {1}
        assert thread_count(None) == 2
    assert blas_limits() == {2}


@pytest.mark.parametrize("moment", range(4))
def test_an_interrupt_while_a_limit_is_set_is_undone_by_the_next_block(
    moment, two_threads, monkeypatch
):
    moments, set_threads = iter(range(4)), parallel._set_threads

    def interrupted(limits):
        for action in (lambda: None, lambda: set_threads(limits)):
            action()
            if next(moments, None) == moment:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(parallel, "_set_threads", interrupted)
        with suppress(KeyboardInterrupt), single_threaded_blas():
            pass
    with single_threaded_blas():
        assert blas_limits() == {1}
    assert blas_limits() == {2}


@pytest.mark.slow
@needs_forks
def test_a_child_forked_while_a_thread_sets_limits_can_set_them():
    done = threading.Event()

    def set_limits():
        while not done.is_set():
            with single_threaded_blas():
                pass

    def limits_can_be_set():
        with single_threaded_blas():
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
    end, thread = limited_thread
    assert forked(lambda: blas_limits() == {2})
    assert blas_limits() == {1}
    end.set()
    thread.join()
    with single_threaded_blas():
        assert forked(lambda: blas_limits() == {1})


def test_thread_count_follows_blas_unless_given(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    with threadpool_limits(1, user_api="blas"):
        assert thread_count(None) == 1
    assert [thread_count(n_jobs) for n_jobs in (3, -1, -2, -50)] == [3, 6, 5, 1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_treat_errors_of_floats_as_the_caller(n_threads):
    large = np.float32([1e30])
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        parallel_map(np.square, [large] * 4, n_threads)
    with np.errstate(over="ignore"):
        assert np.isinf(parallel_map(np.square, [large] * 4, n_threads)).all()
