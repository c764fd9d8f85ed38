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

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from latentmetric.characters import percent, visible
from latentmetric.cli._messages import note
from latentmetric.estimators.progress import History, refinement, seconds_left, watched_by

ERRORS = {"validation_error": "validation error", "loo_error": "error on training rows"}
"""The errors that rounds are judged by, in words."""


def measured(record: Mapping[str, Any]) -> str:
    """What a round is worth: its errors or, where an algorithm measures none, its objective."""
    errors = [f"{words} {percent(record[key])}" for key, words in ERRORS.items() if key in record]
    if not errors and "objective" in record:
        return f"objective {record['objective']:.4g}"
    return ", ".join(errors)


class FitProgress:
    """Shows the progress of a fit, and ends it after Ctrl-C."""

    def __init__(self, bar: Progress, each_round: bool) -> None:
        self._bar, self._task = bar, bar.add_task("", total=None, detail="")
        self._each_round, self._title = each_round, ""
        self._has_round = self.interrupted = False

    def begin(self, title: str) -> None:
        """Name the work that begins."""
        self._title = f"{title}: "
        self._bar.reset(self._task, total=None, description=visible(title), detail="")
        if self._bar.disable and not self._each_round:
            note(title)

    def has_read(self, done: int, total: int) -> None:
        """Show how many rows of a file have been read."""
        self._show(done, total, f"{self._title}read", f"{done:,} rows", done == total)

    def has_learned(self, history: History, n_rounds: int) -> bool:
        """Show a round that is over; whether it was the last one."""
        self._has_round = True
        record, left = history[-1], seconds_left(history, n_rounds)
        remaining = "" if left is None else f"about {left:.0f} s left"
        detail = ", ".join(part for part in (measured(record), remaining) if part)
        title = f"{self._title}round {record['round']} of {n_rounds}{refinement(record)}"
        self._show(record["round"], n_rounds, title, detail, self._each_round)
        return self.interrupted

    def _show(self, done: int, total: int, title: str, detail: str, in_lines: bool) -> None:
        if self._bar.disable and in_lines:
            note(f"{title}: {detail}" if detail else title)
        self._bar.update(
            self._task, completed=done, total=total, description=visible(title), detail=detail
        )

    @contextmanager
    def best_round_on_interrupt(self) -> Iterator[None]:
        """Let Ctrl-C end the fit inside the block with its best round."""
        before = signal.signal(signal.SIGINT, self.interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle Ctrl-C."""
        if self.interrupted or not self._has_round:
            raise KeyboardInterrupt
        self.interrupted = True
        note("Ending after this round. Ctrl-C again ends at once and keeps nothing.")


@contextmanager
def show_progress(title: str = "", each_round: bool = True) -> Iterator[FitProgress]:
    """Show the fits inside the block; without a terminal, each round or only each fit."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
    )
    console, is_terminal = Console(stderr=True), sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=not is_terminal) as bar:
        progress = FitProgress(bar, each_round)
        if title:
            progress.begin(title)
        with watched_by(progress):
            yield progress
