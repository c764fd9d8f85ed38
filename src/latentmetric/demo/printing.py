"""How the demo prints: headings, tables and sentences, and progress on standard error."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from latentmetric.characters import visible
from latentmetric.demo.contenders import Measured
from latentmetric.demo.words import percent
from latentmetric.evaluation.comparison import duration


class Printer:
    """Prints to standard output, and what is being done to standard error."""

    def __init__(self) -> None:
        from rich.console import Console

        self._out = Console(highlight=False)
        self._progress = Console(stderr=True, highlight=False)
        self._status = self._progress.status("") if self._progress.is_terminal else None

    def working(self) -> AbstractContextManager[Any]:
        """While the block runs, a terminal shows what is being done."""
        return nullcontext() if self._status is None else self._status

    def about_to(self, what: str) -> None:
        """Show what comes next: on a terminal in one place, elsewhere on a line of its own."""
        if self._status is not None:
            self._status.update(what)
        else:
            self._progress.print(f"… {what}", markup=False)

    def heading(self, text: str) -> None:
        """The title of a part."""
        self._out.print()
        self._out.print(text, style="bold", markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """A line, however long."""
        self._out.print(visible(text), markup=False, soft_wrap=True)

    def table(self, results: Mapping[str, Measured]) -> None:
        """A line for each method."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("method", no_wrap=True)
        for column in ("error", "references", "fit", "per query", "calibration error"):
            table.add_column(column, justify="right")
        for name, measured in results.items():
            table.add_row(name, *_cells(measured))
        self._out.print(table)


def _cells(measured: Measured) -> list[str]:
    return [
        percent(measured.error, 2),
        f"{measured.references:,}" if measured.references else "none",
        duration(measured.fit_seconds),
        _milliseconds(measured.query_seconds / measured.rows),
        "none" if measured.calibration is None else percent(measured.calibration, 1),
    ]


def _milliseconds(seconds: float) -> str:
    """The time of one query, in one unit for all methods; not every terminal has a µ."""
    return f"{1000 * seconds:.3f} ms"
