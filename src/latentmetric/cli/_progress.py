"""Progress of a fit on standard error: a bar on a terminal, a line a round elsewhere; and Ctrl-C.

The first Ctrl-C lets the round finish and ends the fit with the best one so far. The second, or
one before there is a round to keep, ends the command at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from latentmetric.characters import percent, visible
from latentmetric.cli._errors import note
from latentmetric.estimators.progress import History, refinement, seconds_left, watched_by

ERRORS = {"validation_error": "validation error", "loo_error": "error on training rows"}
"""The errors that rounds are judged by, in words."""


def judged(record: Mapping[str, Any]) -> str:
    """What a round is worth: its errors or, where an algorithm measures none, its objective."""
    errors = [f"{words} {percent(record[key])}" for key, words in ERRORS.items() if key in record]
    if not errors and "objective" in record:
        return f"objective {record['objective']:.4g}"
    return ", ".join(errors)


class Follower:
    """Shows the progress of a fit, and ends it after Ctrl-C."""

    def __init__(self, bar: Any = None, each_round: bool = True) -> None:
        self._bar, self._each_round = bar, each_round
        self._task = None if bar is None else bar.add_task("fit", total=None, detail="")
        self._title = ""
        self.n_rounds = 0
        self.interrupted = False

    def begin(self, title: str) -> None:
        """Another fit begins."""
        self._title = f"{title}: "
        if self._bar is not None:
            self._bar.reset(self._task, total=None, description=title, detail="")
        elif not self._each_round:
            self.say(title)

    def has_read(self, done: int, total: int) -> None:
        """Rows of a file have been read."""
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=done,
                total=total,
                description=f"{self._title}read",
                detail=f"{done:,} rows",
            )
        elif done == total:
            self.say(f"{self._title}read {total:,} rows")

    def has_learned(self, history: History, n_rounds: int) -> bool:
        """A round is over."""
        self.n_rounds += 1
        record, left = history[-1], seconds_left(history, n_rounds)
        remaining = "" if left is None else f"about {left:.0f} s left"
        detail = ", ".join(part for part in (judged(record), remaining) if part)
        title = f"{self._title}round {record['round']} of {n_rounds}{refinement(record)}"
        if self._bar is not None:
            self._bar.update(
                self._task, completed=record["round"], total=n_rounds, description=title,
                detail=detail,
            )  # fmt: skip
        elif self._each_round:
            self.say(f"{title}: {detail}" if detail else title)
        return self.interrupted

    def say(self, line: str) -> None:
        """A line on standard error, above the bar if there is one."""
        if self._bar is None:
            note(line)
        else:
            self._bar.console.print(visible(line), markup=False, highlight=False)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle Ctrl-C."""
        if self.interrupted or not self.n_rounds:
            raise KeyboardInterrupt
        self.interrupted = True
        self.say("Ending after this round. Ctrl-C again ends at once and keeps nothing.")


@contextmanager
def followed(each_round: bool = True) -> Iterator[Follower]:
    """Show the fits inside the block; without a terminal, each round or only each fit."""
    with _bar() as bar:
        follower = Follower(bar, each_round)
        with watched_by(follower):
            yield follower


@contextmanager
def keeping_the_best(follower: Follower) -> Iterator[None]:
    """Let Ctrl-C end the fit inside the block with its best round."""
    before = signal.signal(signal.SIGINT, follower.interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bar() -> Iterator[Any]:
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar
