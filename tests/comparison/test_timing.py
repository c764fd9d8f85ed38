"""Repeated calls, by a clock that the test sets."""

import pytest

from latentmetric.comparison.timing import MOST_CALLS, timed


class Clock:
    """A clock that a call moves on by the next of some durations; the last one repeats."""

    def __init__(self, *durations):
        self.now, self.durations, self.calls = 0.0, durations, 0

    def __call__(self):
        return self.now

    def work(self):
        self.now += self.durations[min(self.calls, len(self.durations) - 1)]
        self.calls += 1
        return self.calls


@pytest.mark.parametrize(
    ("durations", "calls", "seconds"),
    [
        ((1.0,), 1, 1.0),  # long enough
        ((0.05,), 4, 0.05),  # repeated until 0.2 s have passed
        ((0.1, 0.01), 11, 0.01),  # a slow first call does not count
        ((0.0,), MOST_CALLS, 0.0),  # faster than the clock
    ],
)
def test_quick_calls_are_repeated(durations, calls, seconds):
    clock = Clock(*durations)
    result, measured = timed(clock.work, clock)
    assert (result, clock.calls) == (calls, calls)
    assert measured == pytest.approx(seconds)
