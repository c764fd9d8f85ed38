"""Word of a fit's progress: to scikit-learn's callbacks where it has them, to the log, and to a
watcher that may ask to stop, which works with every version of scikit-learn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Protocol

logger = logging.getLogger("latentmetric")

SECONDS_BETWEEN_LINES = 2.0


History = Sequence[Mapping[str, Any]]


class Watcher(Protocol):
    """Follows a fit from outside."""

    def has_read(self, done: int, total: int) -> None:
        """So many rows of a file have been read."""

    def has_learned(self, history: History, n_rounds: int) -> bool:
        """A round is over; True asks the fit to end with what it has."""


_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Tell the watcher of the fits inside the block."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def round_is_over(name: str, history: History, n_rounds: int, verbose: int) -> bool:
    """Log the last round and tell the watcher, if there is one; True where it asks to stop."""
    _log_round(name, history, n_rounds, verbose)
    watcher = _WATCHER.get()
    return watcher is not None and watcher.has_learned(history, n_rounds)


def _log_round(name: str, history: History, n_rounds: int, verbose: int) -> None:
    """One line on the last round, at level INFO if ``verbose`` and DEBUG otherwise.

    Where nobody has set up logging, ``verbose`` sends the lines to standard error.
    """
    record = history[-1]
    if verbose:
        _let_it_be_seen()
    left = seconds_left(history, n_rounds)
    logger.log(
        logging.INFO if verbose else logging.DEBUG,
        "%s round %d/%d: %s, %.1f s%s",
        name,
        record["round"],
        n_rounds,
        measured(record),
        sum(record["seconds"].values()),
        "" if left is None else f", at most {left:.0f} s left",
    )


def measured(record: Mapping[str, Any]) -> str:
    """What a round has measured, in words and numbers."""
    return ", ".join(
        f"{key.replace('_', ' ')} {value:.4g}"
        for key, value in record.items()
        if key not in ("round", "seconds")
    )


def seconds_left(history: History, n_rounds: int) -> float | None:
    """By the last three rounds; round 0 has no metric to learn and tells nothing."""
    learned = [sum(record["seconds"].values()) for record in history if record["round"]][-3:]
    left = n_rounds - history[-1]["round"]
    return left * sum(learned) / len(learned) if learned and left else None


class ReadingLog:
    """Lines on how far the reading of a file has come, every few seconds."""

    def __init__(self, name: str, verbose: int) -> None:
        self._name, self._level = name, logging.INFO if verbose else logging.DEBUG
        self._start = self._last = perf_counter()
        if verbose:
            _let_it_be_seen()

    def __call__(self, done: int, total: int) -> None:
        watcher = _WATCHER.get()
        if watcher is not None:
            watcher.has_read(done, total)
        now = perf_counter()
        if now - self._last < SECONDS_BETWEEN_LINES and done < total:
            return
        self._last = now
        left = (now - self._start) * (total - done) / done
        logger.log(
            self._level, "%s read %s of %s rows, about %.0f s left", self._name, f"{done:,}",
            f"{total:,}", left,
        )  # fmt: skip


def _let_it_be_seen() -> None:
    """Lines to standard error for as long as nobody else handles them."""
    if _FALLBACK not in logger.handlers:
        logger.addHandler(_FALLBACK)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


_FALLBACK = logging.StreamHandler()
_FALLBACK.addFilter(lambda record: not logging.getLogger().handlers)


class RoundReporter:
    """Tells the estimator's callbacks of every round, and whether one of them asks to stop."""

    def __init__(self, estimator: Any, n_rounds: int) -> None:
        self._estimator = estimator
        start = getattr(estimator, "_init_callback_context", None)
        self._fit = start(max_subtasks=n_rounds) if start is not None else None
        self._round: Any = None

    def fit_begins(self, X: Any, y: Any) -> None:
        if self._fit is not None:
            self._fit.call_on_fit_task_begin(estimator=self._estimator, X=X, y=y)

    def round_begins(self, X: Any, y: Any) -> None:
        if self._fit is not None:
            self._round = self._fit.subcontext(task_name="round")
            self._round.call_on_fit_task_begin(estimator=self._estimator, X=X, y=y)

    def round_ends(self, X: Any, y: Any, attributes: Callable[[], dict[str, Any]]) -> bool:
        """True where a callback asks to stop. ``attributes`` is called only if one wants them."""
        return self._round is not None and self._ends(self._round, X, y, attributes)

    def fit_ends(self, X: Any, y: Any, attributes: Callable[[], dict[str, Any]]) -> None:
        if self._fit is not None:
            self._ends(self._fit, X, y, attributes)

    def _ends(self, task: Any, X: Any, y: Any, attributes: Callable[[], dict[str, Any]]) -> bool:
        stop: bool = task.call_on_fit_task_end(
            estimator=self._estimator, X=X, y=y, reconstruction_attributes=attributes
        )
        return stop
