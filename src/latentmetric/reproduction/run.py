"""Run the cells of some experiments with a progress bar, then write the report."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import latentmetric
from latentmetric.reproduction.cells import cell_path, run_cell
from latentmetric.reproduction.claims import Results, check_claims
from latentmetric.reproduction.estimate import estimate_lmnn
from latentmetric.reproduction.gallery import draw_gallery
from latentmetric.reproduction.plan import LARGE_SET, QUICK_ROWS, Cell, Setting, cells_of
from latentmetric.reproduction.report import write_report
from latentmetric.reproduction.sources import Source


def run(
    experiments: list[str], *, quick: bool, out: Path, n_trials: int, source: Source
) -> list[dict[str, Any]]:
    """Compute what is not there yet, and write tables, figures and claims to ``out``."""
    console = Console()
    source.check(experiments)
    cells = cells_of(experiments, n_trials, quick)
    out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    try:
        for cell in _with_progress(cells, console):
            found.append(run_cell(cell, source, out))
        n_rows = QUICK_ROWS if quick else None
        if "mnist" in experiments:
            draw_gallery(Setting("mnist", n_rows=n_rows), source, out)
        if LARGE_SET in experiments:
            estimate_lmnn(Setting(LARGE_SET, n_rows=n_rows), source, out)
    except KeyboardInterrupt:
        console.print(
            f"Interrupted: {len(found)} of {len(cells)} cells are kept in {out}; "
            "the same command goes on from there, with --report it tells what is there.",
            soft_wrap=True,
        )
        raise
    _tell(found, _facts(experiments, quick, n_trials), out, console)
    return found


def report(
    experiments: list[str], *, quick: bool, out: Path, n_trials: int, source: Source
) -> list[dict[str, Any]]:
    """Tables, figures and claims from what is in ``out``; nothing is computed."""
    paths = [cell_path(cell, source, out) for cell in cells_of(experiments, n_trials, quick)]
    found = [json.loads(path.read_text()) for path in paths if path.exists()]
    if not found:
        raise FileNotFoundError(f"{out} holds none of the {len(paths)} cells")
    facts = _facts(experiments, quick, n_trials) | {"cells": f"{len(found)} of {len(paths)}"}
    _tell(found, facts, out, Console())
    return found


def _tell(found: list[dict[str, Any]], facts: dict[str, Any], out: Path, console: Console) -> None:
    results = Results(found)
    verdicts = check_claims(results)
    page = write_report(results, verdicts, facts, out)
    for verdict in verdicts:
        console.print(
            f"[bold]{verdict.word:>12}[/]  {verdict.claim}\n              {verdict.figures}"
        )
    console.print(f"tables and figures: {page}", soft_wrap=True)


def _with_progress(cells: list[Cell], console: Console) -> Iterator[Cell]:
    """The cells one by one: a bar on a terminal, a line each elsewhere."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(cells))
        for place, cell in enumerate(cells, start=1):
            name = f"{cell.setting.name} {cell.method} {cell.seed}"
            progress.update(task, description=name)
            if not console.is_terminal:
                console.print(f"{place}/{len(cells)} {name}", soft_wrap=True)
            yield cell
            progress.advance(task)


def _facts(experiments: list[str], quick: bool, n_trials: int) -> dict[str, Any]:
    """What made the results."""
    command = f"latentmetric reproduce {experiments[0] if len(experiments) == 1 else 'all'}"
    return {
        "command": command + (" --quick" if quick else f" --trials {n_trials}"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "latentmetric": latentmetric.__version__,
    }
