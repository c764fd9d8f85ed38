"""Seconds that mean something: a call that takes little time is repeated."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import TypeVar

Result = TypeVar("Result")

ENOUGH_SECONDS = 0.2
"""A call is repeated until all calls together have taken this long."""

MOST_CALLS = 100


def timed(
    call: Callable[[], Result], clock: Callable[[], float] = perf_counter
) -> tuple[Result, float]:
    """The result of a call, and the median of the seconds that it takes."""
    seconds: list[float] = []
    while True:
        since = clock()
        result = call()
        seconds.append(clock() - since)
        if sum(seconds) >= ENOUGH_SECONDS or len(seconds) == MOST_CALLS:
            return result, median(seconds)


def duration(seconds: float) -> str:
    """Seconds as text, short ones in milliseconds."""
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"
