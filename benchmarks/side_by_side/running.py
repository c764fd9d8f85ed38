"""What all comparisons of cells share: options, stored cells, one process each, and signals."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from common import RESULTS, positive
from side_by_side import environments
from side_by_side.cells import Cell, Limits, finished, over_limit, run
from side_by_side.plan import LIMIT_SECONDS

CHILD = Path(__file__).parent / "child.py"


def parser_of(doc: str, sets: Iterable[str], methods: Iterable[str]) -> argparse.ArgumentParser:
    """The options that every comparison has."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--sets", help=f"of {', '.join(sets)}")
    parser.add_argument("--methods", help=f"of {', '.join(methods)}")
    parser.add_argument("--limit-seconds", type=positive, default=LIMIT_SECONDS)
    parser.add_argument("--environments", type=Path, help="folder of the virtual environments")
    parser.add_argument("--make-environments", type=Path, metavar="FOLDER")
    parser.add_argument("--fresh", action="store_true", help="measure the chosen cells again")
    parser.add_argument("--report", action="store_true", help="only write the report")
    return parser


def stored(name: str) -> dict[str, Any]:
    """The results on disk; read again for every change, as runs may share the file."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {"cells": {}}


def pending(cell: Cell | None, limits: Limits, fresh: bool) -> bool:
    """Whether a cell is still to be run; one that failed, or had tighter limits, is tried again."""
    return fresh or cell is None or not (finished(cell) or over_limit(cell, limits))


def measure(
    module: str, method: str, environment: str, folder: Path, home: Path | None, limits: Limits
) -> Cell:
    """Fit a method of ``module`` to the rows in a folder, in a process of its environment."""
    python = environments.python_of(environment, home)
    command = [python, str(CHILD), module, method, str(folder)]
    return run(command, environments.variables(environment), limits)


def exit_on_signals() -> None:
    """End by an exception, so that the process of the current cell is ended too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
