import contextlib
import dis
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import threadpoolctl
from forking import forked, needs_forks
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from latentmetric.core import parallel
from latentmetric.core.parallel import (
    Assistant,
    OrderedSum,
    blas_threads,
    for_each,
    thread_count,
)


def blas_limits():
    """The limits of the BLAS that NumPy and SciPy use. An OpenMP BLAS, such as that of faiss, is
    left out: its limit is per calling thread."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return [pool["num_threads"] for pool in pools if pool["threading_layer"] != "openmp"]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_every_item_is_visited_once(n_threads):
    seen = []
    for_each(seen.append, range(20), n_threads)
    assert sorted(seen) == list(range(20))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_in_a_thread_reaches_the_caller(n_threads):
    def fail_on_three(item):
        if item == 3:
            raise RuntimeError("three")

    with pytest.raises(RuntimeError, match="three"):
        for_each(fail_on_three, range(5), n_threads)


@pytest.mark.parametrize("in_caller", [True, False])
def test_an_error_in_one_thread_ends_the_others_after_their_item(in_caller):
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
        for_each(fail, range(1_000), 2)
    assert len(seen) < 1_000


def test_the_caller_works_alone_if_no_thread_can_start(monkeypatch):
    def refuse(self, function):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(parallel.ThreadPoolExecutor, "submit", refuse)
    seen = []
    for_each(seen.append, range(20), 2)
    assert seen == list(range(20))


def test_threads_run_single_threaded_blas_and_restore_it():
    with threadpool_limits(2, user_api="blas"):
        inside = []
        for_each(lambda _: inside.extend(blas_limits()), range(4), 2)
        assert set(inside) == {1}
        assert set(blas_limits()) == {2}


def test_few_items_share_the_threads():
    inside = []
    for_each(lambda _: inside.extend(blas_limits()), range(2), 6)
    assert set(inside) == {3}


def test_the_last_of_overlapping_limits_restores_what_the_first_found():
    with threadpool_limits(2, user_api="blas"):
        first, second = blas_threads(1), blas_threads(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_limits()) == {1}
        second.__exit__(None, None, None)
        assert set(blas_limits()) == {2}


@pytest.mark.parametrize("moment", range(8))
def test_an_interrupt_at_any_moment_leaves_the_limit_as_it_was(moment, monkeypatch):
    """An interrupt before or after any call that sets or restores limits is undone by the next
    block at the latest."""
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
    with threadpool_limits(2, user_api="blas"):
        with monkeypatch.context() as patched:
            for owner, name in (
                (ThreadpoolController, "limit"),
                (limiter, "restore_original_limits"),
            ):
                patched.setattr(owner, name, interrupted(getattr(owner, name)))
            with suppress(KeyboardInterrupt), blas_threads(1):
                pass
        with blas_threads(1):
            assert set(blas_limits()) == {1}
        assert set(blas_limits()) == {2}


class Interrupt(BaseException):
    """What the handler of a signal raises."""


def interrupted_at(moment, work):
    """Run ``work`` with an exception at one of its moments; whether it has so many.

    Python handles signals where functions begin, after calls and where loops begin again.
    """
    files = {parallel.__file__, contextlib.__file__, threadpoolctl.__file__}
    passed, called = 0, {}

    def trace(frame, event, _):
        nonlocal passed
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            passed += name.startswith(("RESUME", "JUMP_BACKWARD")) or called.get(frame, False)
            called[frame] = name.startswith("CALL")
        if passed == moment:
            sys.settrace(None)
            raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except Interrupt:
        return True
    finally:
        called.clear()
        sys.settrace(before)
    return False


def test_a_signal_handler_that_raises_at_any_moment_leaves_the_limit_as_it_was():
    def limited():
        with blas_threads(1):
            pass

    with threadpool_limits(2, user_api="blas"):
        expected, moment = blas_limits(), 1
        limited()
        while interrupted_at(moment, limited):
            assert not parallel._LIMITS._blocks, moment
            assert not parallel._LIMITS.lock._is_owned(), moment
            assert blas_limits() == expected, moment
            moment += 1
    assert moment > 50


def test_the_handler_of_a_signal_may_compute_while_a_limit_is_set():
    with parallel._LIMITS.lock, blas_threads(1):
        assert set(blas_limits()) == {1}


@needs_forks
def test_a_child_forked_while_a_thread_sets_limits_can_set_them(monkeypatch):
    really_apply, done = parallel._SharedLimits._apply, threading.Event()

    def slow_apply(self):
        time.sleep(0.002)
        really_apply(self)

    def set_limits():
        while not done.wait(0.001):
            with blas_threads(1):
                pass

    def limits_can_be_set():
        with blas_threads(1):
            return set(blas_limits()) == {1}

    monkeypatch.setattr(parallel._SharedLimits, "_apply", slow_apply)
    setter = threading.Thread(target=set_limits)
    setter.start()
    try:
        assert all(forked(limits_can_be_set) for _ in range(5))
    finally:
        done.set()
        setter.join()


@needs_forks
def test_a_child_does_not_keep_the_limits_of_threads_that_it_does_not_have():
    entered, done = threading.Event(), threading.Event()

    def limited():
        with blas_threads(1):
            entered.set()
            done.wait()

    with threadpool_limits(2, user_api="blas"):
        thread = threading.Thread(target=limited)
        thread.start()
        entered.wait()
        try:
            assert forked(lambda: set(blas_limits()) == {2})
            assert set(blas_limits()) == {1}
        finally:
            done.set()
            thread.join()
        assert set(blas_limits()) == {2}
        with blas_threads(1):
            assert forked(lambda: set(blas_limits()) == {1})


@needs_forks
@pytest.mark.parametrize("ends", [True, False], ids=["a block that ends", "one that does not"])
def test_a_fork_waits_for_threads_of_blas_but_not_forever(ends, monkeypatch):
    """OpenBLAS ends its threads before a fork, and a product that uses them would never end."""
    monkeypatch.setattr(parallel, "FORK_SECONDS", 5 if ends else 0.02)
    entered, done = threading.Event(), threading.Event()

    def threaded():
        with blas_threads(2):
            entered.set()
            while not done.is_set() and not (ends and set(blas_limits()) == {1}):
                time.sleep(0.001)

    with threadpool_limits(2, user_api="blas"):
        thread = threading.Thread(target=threaded)
        thread.start()
        entered.wait()
        try:
            assert forked(lambda: set(blas_limits()) == {2})
            assert not (ends and parallel._LIMITS._blocks)
            assert set(blas_limits()) == {2}
        finally:
            done.set()
            thread.join()


def test_the_limit_of_one_thread_is_restored_by_another_that_ends_later():
    with threadpool_limits(2, user_api="blas"):
        entered, done = threading.Event(), threading.Event()

        def limited():
            with blas_threads(1):
                entered.set()
                done.wait()

        thread = threading.Thread(target=limited)
        with blas_threads(2):
            thread.start()
            entered.wait()
            assert set(blas_limits()) == {1}
        assert set(blas_limits()) == {1}
        done.set()
        thread.join()
        assert set(blas_limits()) == {2}


def test_many_callers_at_once_leave_the_limit_as_it_was():
    with threadpool_limits(2, user_api="blas"):
        callers = [
            threading.Thread(target=for_each, args=(lambda _: None, range(8), 2)) for _ in range(16)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert set(blas_limits()) == {2}


def test_thread_count_follows_blas_unless_given(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    with threadpool_limits(1, user_api="blas"):
        assert thread_count(None) == 1
    assert thread_count(3) == 3
    assert thread_count(-1) == 6
    assert thread_count(-2) == 5
    assert thread_count(-50) == 1


def test_an_ordered_sum_does_not_depend_on_the_order_of_arrival():
    parts = [np.float32(10.0**power) for power in range(-6, 7)]
    expected = None
    for seed in range(20):
        summed = OrderedSum(np.zeros(1, dtype=np.float32))
        for number in np.random.default_rng(seed).permutation(len(parts)):
            summed.add(int(number), parts[number])
        expected = summed.total if expected is None else expected
        assert summed.total == expected
    assert expected == sum(parts, start=np.float32(0))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_assistant_works_in_the_order_it_was_asked(n_threads):
    seen = []

    def note(item):
        time.sleep(0.002 * (5 - item))
        seen.append(item)
        return threading.get_ident(), 2 * item

    with Assistant(n_threads) as assistant:
        answers = [assistant.ask(note, item) for item in range(5)]
        found = [answer.result() for answer in answers]
    assert seen == list(range(5))
    assert [value for _, value in found] == [0, 2, 4, 6, 8]
    assert ({thread for thread, _ in found} == {threading.get_ident()}) == (n_threads == 1)


def fail():
    raise ZeroDivisionError("nothing")


def test_what_an_assistant_raised_reaches_the_one_who_asks_for_the_answer():
    with Assistant(2) as assistant:
        answer = assistant.ask(fail)
        with pytest.raises(ZeroDivisionError, match="nothing"):
            answer.result()


def test_an_assistant_drops_the_rest_if_the_caller_fails():
    seen, started = [], threading.Event()

    def wait():
        started.set()
        time.sleep(0.05)
        seen.append("first")

    with suppress(ValueError), Assistant(2) as assistant:
        assistant.ask(wait)
        assistant.ask(seen.append, "second")
        started.wait(10)
        raise ValueError
    assert seen == ["first"]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_assistant_treats_errors_of_floats_as_the_caller(n_threads):
    overflow = pytest.raises(FloatingPointError)
    with np.errstate(over="raise"), Assistant(n_threads) as assistant, overflow:
        assistant.ask(np.square, np.float32([1e30])).result()
    with np.errstate(over="ignore"), Assistant(n_threads) as assistant:
        assert np.isinf(assistant.ask(np.square, np.float32([1e30])).result()).all()


def test_blas_gets_the_threads_that_two_leave_to_each():
    before = blas_limits()
    with Assistant(2):
        assert set(blas_limits()) == {1}
    assert blas_limits() == before


def test_without_another_thread_the_caller_is_its_own_assistant(monkeypatch):
    def cannot_start(self, *arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(parallel.ThreadPoolExecutor, "submit", cannot_start)
    with Assistant(2) as assistant:
        assert assistant.ask(threading.get_ident).result() == threading.get_ident()
