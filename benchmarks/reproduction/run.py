"""Run the trials of some experiments with a progress bar, then write the report."""

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
from reproduction.claims import Results, check_claims
from reproduction.estimate import estimate_lmnn
from reproduction.gallery import draw_gallery
from reproduction.plan import LARGE_SET, QUICK_ROWS, Setting, Trial, trials_of
from reproduction.report import write_report
from reproduction.sources import Source
from reproduction.trials import run_trial, trial_path


def run(
    experiments: list[str], *, quick: bool, out: Path, n_trials: int, source: Source
) -> list[dict[str, Any]]:
    """Compute what ``out`` does not hold yet, and write tables, figures and claims to it."""
    console = Console()
    source.check(experiments)
    trials = trials_of(experiments, n_trials, quick)
    out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    try:
        for trial in _with_progress(trials, console):
            found.append(run_trial(trial, source, out))
        n_rows = QUICK_ROWS if quick else None
        if "mnist" in experiments:
            draw_gallery(Setting("mnist", n_rows=n_rows), source, out)
        if LARGE_SET in experiments:
            estimate_lmnn(Setting(LARGE_SET, n_rows=n_rows), source, out)
    except KeyboardInterrupt:
        console.print(
            f"Interrupted: {out} holds {len(found)} of {len(trials)} trials. The same command "
            "continues from there; --report shows the results so far.",
            soft_wrap=True,
        )
        raise
    _show(found, _facts(experiments, quick, n_trials), out, console)
    return found


def report(
    experiments: list[str], *, quick: bool, out: Path, n_trials: int, source: Source
) -> list[dict[str, Any]]:
    """Tables, figures and claims from the trials in ``out``; nothing is computed."""
    paths = [trial_path(trial, source, out) for trial in trials_of(experiments, n_trials, quick)]
    found = [json.loads(path.read_text()) for path in paths if path.exists()]
    if not found:
        raise FileNotFoundError(
            f"{out} holds none of the {len(paths)} trials: name another folder with --out, or "
            "compute them without --report"
        )
    facts = _facts(experiments, quick, n_trials) | {"trials": f"{len(found)} of {len(paths)}"}
    _show(found, facts, out, Console())
    return found


def _show(found: list[dict[str, Any]], facts: dict[str, Any], out: Path, console: Console) -> None:
    results = Results(found)
    verdicts = check_claims(results)
    page = write_report(results, verdicts, facts, out)
    checked = [verdict for verdict in verdicts if verdict.held is not None]
    for verdict in checked:
        console.print(
            f"[bold]{verdict.word:>12}[/]  {verdict.claim}\n              {verdict.figures}",
            soft_wrap=True,
        )
    if n_open := len(verdicts) - len(checked):
        console.print(f"{n_open} of {len(verdicts)} claims need results that are not there")
    console.print(f"tables and figures: {page}", soft_wrap=True)


def _with_progress(trials: list[Trial], console: Console) -> Iterator[Trial]:
    """The trials one by one: a bar on a terminal, a line for each elsewhere."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(trials))
        for number, trial in enumerate(trials, start=1):
            name = f"{trial.setting.name} {trial.method} {trial.seed}"
            progress.update(task, description=name)
            if not console.is_terminal:
                console.print(f"{number}/{len(trials)} {name}", soft_wrap=True)
            yield trial
            progress.advance(task)


def _facts(experiments: list[str], quick: bool, n_trials: int) -> dict[str, Any]:
    """The command and the versions."""
    command = f"python benchmarks/reproduce.py {experiments[0] if len(experiments) == 1 else 'all'}"
    return {
        "command": command + (" --quick" if quick else f" --trials {n_trials}"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "latentmetric": latentmetric.__version__,
    }
