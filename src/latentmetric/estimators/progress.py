"""Progress of a fit, reported to the log, to scikit-learn's callbacks if it has them, and to a
watcher, which can also stop the fit and works with every version of scikit-learn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

if TYPE_CHECKING:

    class CallbackSupportMixin:  # noqa: D101
        def set_callbacks(self, *callbacks: object) -> Any: ...  # noqa: D102
        def _init_callback_context(self, *, max_subtasks: int | None) -> Any: ...

    def with_callbacks(method: Method) -> Method: ...  # noqa: D103

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """A placeholder for versions of scikit-learn without callbacks."""

        def with_callbacks(method):
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


NOT_MEASURED = ("round", "iterations", "refinement", "seconds", "start_errors")
"""What the line of a round does not list: it is elsewhere in the line, or too much."""


def _log(verbose: int, text: str, *values: Any) -> None:
    """Log a line, at level INFO if ``verbose`` and DEBUG otherwise.

    If logging is not set up, ``verbose`` sends the lines to standard error.
    """
    if verbose:
        if _FALLBACK not in logger.handlers:
            logger.addHandler(_FALLBACK)
        if logger.getEffectiveLevel() > logging.INFO:
            logger.setLevel(logging.INFO)
    logger.log(logging.INFO if verbose else logging.DEBUG, text, *values)


_FALLBACK = logging.StreamHandler()
_FALLBACK.addFilter(lambda record: not logging.getLogger().handlers)


def _log_step(estimator: Any, history: History, n_rounds: int) -> None:
    """Log a line about the last step."""
    if not estimator.verbose and not logger.isEnabledFor(logging.DEBUG):
        return
    record, left = history[-1], seconds_left(history, n_rounds)
    _log(
        estimator.verbose, "%s round %d/%d%s: %s%.1f s%s",
        type(estimator).__name__, record["round"], n_rounds, refinement(record),
        "".join(
            f"{key.replace('_', ' ')} {_as_text(value)}, "
            for key, value in record.items()
            if key not in NOT_MEASURED
        ),
        sum(record["seconds"].values()),
        "" if left is None else f", about {left:.0f} s left",
    )  # fmt: skip


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_as_text(part)}" for name, part in value.items())
    return value if isinstance(value, str) else format(value, ".4g")


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


@dataclass
class ReadingLog:
    """Logs every few seconds how many rows of a file have been read."""

    name: str
    verbose: int
    start: float = field(default_factory=perf_counter)
    last: float = field(default_factory=perf_counter)

    def __call__(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` rows have been read."""
        watcher = _WATCHER.get()
        if watcher is not None:
            watcher.has_read(done, total)
        now = perf_counter()
        if now - self.last < SECONDS_BETWEEN_LINES and done < total:
            return
        self.last = now
        _log(
            self.verbose, "%s read %s of %s rows, about %.0f s left", self.name, f"{done:,}",
            f"{total:,}", (now - self.start) * (total - done) / done,
        )  # fmt: skip


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
        _log_step(self._estimator, history, self._n_steps)
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
