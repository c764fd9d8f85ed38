"""Progress of a fit, reported to the log, to scikit-learn's callbacks if it has them, and to a
watcher, which can also stop the fit and works with every version of scikit-learn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Protocol

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """A placeholder for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """A placeholder for versions of scikit-learn without callbacks."""
        return method


logger = logging.getLogger("latentmetric")

SECONDS_BETWEEN_LINES = 2.0


History = Sequence[Mapping[str, Any]]
Attributes = Callable[[], dict[str, Any]]


class Watcher(Protocol):
    """Observes a fit from outside."""

    def has_read(self, done: int, total: int) -> None:
        """Called when ``done`` of ``total`` rows of a file have been read."""

    def has_learned(self, history: History, n_rounds: int) -> bool:
        """Called after each round; return True to end the fit after this round."""


_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Let the watcher observe the fits inside the block."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


NOT_MEASURED = ("round", "iterations", "refinement", "seconds", "start_errors", "tried")
"""What the line of a round does not list: it is elsewhere in the line, or too much."""

_FALLBACK = logging.StreamHandler()
_FALLBACK.addFilter(lambda record: not logging.getLogger().handlers)


def _log(verbose: int, text: str) -> None:
    """Log a line, at level INFO if ``verbose`` and DEBUG otherwise.

    If logging is not set up, ``verbose`` sends the lines to standard error.
    """
    if verbose:
        logger.addHandler(_FALLBACK)  # once, however often it is added
        if logger.getEffectiveLevel() > logging.INFO:
            logger.setLevel(logging.INFO)
    logger.log(logging.INFO if verbose else logging.DEBUG, "%s", text)


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_as_text(part)}" for name, part in value.items())
    return value if isinstance(value, str) else format(value, ".4g")


def _measured(name: str, value: Any) -> str:
    """A number of a round and its name."""
    if name != "n_latents":
        return f"{name.replace('_', ' ')} {_as_text(value)}"
    if isinstance(value, float):
        return f"latent examples for {value:.0%} of the rows"
    return f"{value} latent example{'s' * (value > 1)} a class"


def refinement(record: Mapping[str, Any]) -> str:
    """Which pass of the refinement a round is, in brackets; nothing if it is none."""
    return f" (refinement {record['refinement']})" if "refinement" in record else ""


def iterations(record: Mapping[str, Any]) -> int:
    """The number of iterations up to a round; for MaPML, every round is one iteration."""
    done: int = record.get("iterations", record["round"])
    return done


def seconds_left(history: History, n_rounds: int) -> float | None:
    """An estimate from the last three rounds of the same kind, without round 0."""
    kind = "refinement" in history[-1]
    alike = [r for r in history if r["round"] and ("refinement" in r) == kind]
    learned = [sum(record["seconds"].values()) for record in alike][-3:]
    left = n_rounds - history[-1]["round"]
    return left * sum(learned) / len(learned) if learned and left else None


def _line(history: History, n_rounds: int) -> str:
    """The last round in one line."""
    record, left = history[-1], seconds_left(history, n_rounds)
    measured = [
        _measured(name, value) for name, value in record.items() if name not in NOT_MEASURED
    ]
    measured.append(f"{sum(record['seconds'].values()):.1f} s")
    measured += [] if left is None else [f"about {left:.0f} s left"]
    return f"round {record['round']}/{n_rounds}{refinement(record)}: {', '.join(measured)}"


def reading_log(name: str, verbose: int) -> Callable[[int, int], None]:
    """A function that logs every few seconds how many rows of a file have been read."""
    start = last = perf_counter()

    def report(done: int, total: int) -> None:
        nonlocal last
        watcher, now = _WATCHER.get(), perf_counter()
        if watcher is not None:
            watcher.has_read(done, total)
        if now - last >= SECONDS_BETWEEN_LINES or done == total:
            last, left = now, (now - start) * (total - done) / done
            _log(verbose, f"{name} read {done:,} of {total:,} rows, about {left:.0f} s left")

    return report


class Listener:
    """Reports the steps of a fit to scikit-learn's callbacks, the log and the watcher."""

    def __init__(self, estimator: Any, n_steps: int, X: Any, y: Any) -> None:
        self._estimator, self._n_steps = estimator, n_steps
        self._data = {"estimator": estimator, "X": X, "y": y}
        self._tasks: list[Any] = []
        """The fit and, while one runs, its step; empty if scikit-learn has no callbacks."""
        if hasattr(estimator, "_init_callback_context"):
            self._tasks.append(estimator._init_callback_context(max_subtasks=n_steps + 1))
            self._tasks[0].call_on_fit_task_begin(**self._data)

    def step_begins(self) -> None:
        """Report the start of a step."""
        if self._tasks:
            self._tasks.append(self._tasks[0].subcontext(task_name="round"))
            self._tasks[-1].call_on_fit_task_begin(**self._data)

    def step_ends(self, history: History, attributes: Attributes) -> bool:
        """Report the end of a step; return True if a callback or the watcher requests a stop."""
        if self._estimator.verbose or logger.isEnabledFor(logging.DEBUG):
            line = _line(history, self._n_steps)
            _log(self._estimator.verbose, f"{type(self._estimator).__name__} {line}")
        watcher = _WATCHER.get()
        stop = watcher is not None and watcher.has_learned(history, self._n_steps)
        return self.ends(attributes, len(self._tasks) - 1) or stop

    def ends(self, attributes: Attributes, keep: int = 0) -> bool:
        """Report the end of all tasks but the first few to ``keep``.

        ``attributes`` is called only if a callback wants them.
        """
        stop = False
        while len(self._tasks) > max(keep, 0):
            stop = self._tasks.pop().call_on_fit_task_end(
                **self._data, reconstruction_attributes=attributes
            )
        return stop
