"""MaPML beside the methods that people pick in 2026: error, log-loss, time and memory.

    python benchmarks/peers_2026.py --make-environments FOLDER
    LATENTMETRIC_DATA=folder python benchmarks/peers_2026.py --environments FOLDER
    python benchmarks/peers_2026.py --sets letter --methods MaPML --fresh --environments FOLDER
    python benchmarks/peers_2026.py --report

Every cell, a method on a set, is a process with one thread that is stopped when it passes ten
minutes of the processor or 12 GB. Each is kept in benchmarks/results/peers_2026.json as soon as it
ends, and not run again by the next call, unless it failed or with --fresh. The tables also go to
peers_2026.md. side_by_side/learners_2026.py says how each method is built.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import RESULTS, chosen, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from side_by_side import cells as cells_of
from side_by_side import environments
from side_by_side.cells import Cell, Limits, search_after
from side_by_side.learners_2026 import LEARNERS
from side_by_side.plan import LIMIT_GIGABYTES, LIMIT_SECONDS, MAIN
from side_by_side.rows import nested_order
from side_by_side.running import exit_on_signals, measure, parser_of, pending, stored
from sklearn.model_selection import StratifiedKFold
from tables import N_FOLDS, read_table

NAME = "peers_2026"
OURS = "MaPML"
PROBE = "linear probe"

PYTABKIT = "pytabkit"
ENVIRONMENTS = {PYTABKIT: (("torch==2.13.0",), ("pytabkit[models]==1.7.3", "xrfm==0.4.5"))}
"""What is installed into each, in steps. CatBoost with its defaults runs in that of this script."""
IN_PYTABKIT = ("RealMLP", "TabM", "xRFM", "ModernNCA", "CatBoost tuned")
"""Beginnings of the names of methods."""
SEARCHED = " tuned"
"""The end of the name of a method that searches for its parameters."""

HEADER = ["method", "error, %", "log-loss", "fit, s", "query, µs", "peak, MB", "notes"]

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class DataSet:
    """A table of tables.py, in its first fold, or a benchmark; at most so many training rows."""

    source: str
    text: str
    is_table: bool = False
    embeddings: bool = False
    most_rows: int | None = None


SETS = {
    "phoneme": DataSet("phoneme", "a table of KEEL, first of five folds", is_table=True),
    "satimage": DataSet("satimage", "a table of KEEL, first of five folds", is_table=True),
    "letter": DataSet("letter", "the usual 16,000 and 4,000 rows"),
    "BANKING77": DataSet("banking77", "text embeddings", embeddings=True),
    "CLINC150": DataSet("clinc150", "text embeddings", embeddings=True),
    "MNIST 10k": DataSet("mnist", "pixels, 10,000 of the 60,000 training rows", most_rows=10_000),
}
"""In the order of the run: the cheap ones first."""


# Rows


def arrays_of(name: str) -> Arrays:
    """Rows in float32 and codes of classes."""
    found = _first_fold(name) if SETS[name].is_table else _benchmark(name)
    return {
        key: np.ascontiguousarray(values, np.float32 if key.startswith("X") else np.int64)
        for key, values in found.items()
    }


def _first_fold(name: str) -> Arrays:
    X, y = read_table(SETS[name].source)
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    train, test = next(splitter.split(X, y))
    return {"X_train": X[train], "y_train": y[train], "X_test": X[test], "y_test": y[test]}


def _benchmark(name: str) -> Arrays:
    split = load_benchmark(SETS[name].source)
    classes, codes = np.unique(split.y_train, return_inverse=True)
    kept = slice(None)
    if SETS[name].most_rows:
        kept = np.sort(nested_order(codes)[: SETS[name].most_rows])
    truth = np.searchsorted(classes, split.y_test)
    return {
        "X_train": split.X_train[kept],
        "y_train": codes[kept],
        "X_test": split.X_test,
        "y_test": truth,
    }


# Cells


def environment_of(method: str) -> str:
    return PYTABKIT if method.startswith(IN_PYTABKIT) else MAIN


def methods_of(name: str, methods: list[str]) -> list[str]:
    """The linear probe is for embeddings."""
    return [method for method in methods if method != PROBE or SETS[name].embeddings]


def begin() -> None:
    """The machine is measured once: a run may be continued many times."""
    results = stored(NAME)
    if "machine" not in results:
        machine = machine_facts(gemm_gflops())
        machine["command"] = f"python benchmarks/{NAME}.py --environments FOLDER"
        write_json(NAME, {"machine": machine, "threads": 1, **results})


def keep(name: str, method: str, cell: Cell) -> None:
    """The file is read again: runs may share it."""
    results = stored(NAME)
    results["cells"].setdefault(name, {})[method] = cell
    write_json(NAME, results)


def run(
    sets: list[str], methods: list[str], limits: Limits, home: Path | None, fresh: bool
) -> None:
    for name in sets:
        found = stored(NAME)["cells"].get(name, {})
        wanted = [
            method
            for method in methods_of(name, methods)
            if pending(found.get(method), limits, fresh)
        ]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            for key, values in arrays_of(name).items():
                np.save(folder / f"{key}.npy", values)
            for method in wanted:
                cell = _given_up(name, method, limits) or measure(
                    "learners_2026", method, environment_of(method), folder, home, limits
                )
                keep(name, method, cell)
                print(name, *line(method, cell), sep=" | ", flush=True)


def _given_up(name: str, method: str, limits: Limits) -> Cell | None:
    """The cell of a search whose method passed a limit with its defaults."""
    if not method.endswith(SEARCHED):
        return None
    default = stored(NAME)["cells"].get(name, {}).get(method.removesuffix(SEARCHED))
    return search_after(default, limits)


# Report


def line(method: str, cell: Cell | None) -> list[str]:
    label = f"**{method}**" if method == OURS else method
    if cell is None:
        return [label, *[""] * 5, "not run"]
    if not cells_of.finished(cell):
        return [label, *[""] * 5, cell["reason"]]
    return [
        label,
        f"{cell['error']:.2f}",
        f"{cell['log_loss']:.3f}",
        f"{cell['fit_cpu_seconds']:.1f}",
        f"{cell['query_cpu_microseconds']:.1f}",
        f"{cell['peak_megabytes']:.0f}",
        cell["notes"],
    ]


def report(cells: dict[str, dict[str, Cell]]) -> str:
    """A table for each set; finished methods in the order of their errors."""
    parts = [
        f"One run each, one thread. Seconds are the processor's; a process is stopped after "
        f"{LIMIT_SECONDS:g} of them or at {LIMIT_GIGABYTES:g} GB. Fits contain the search for "
        "parameters. Queries are answered by `predict_proba`, all test rows at once. Probabilities "
        "below 0.001 count as 0.001 in the log-loss. The peak is the resident size of the process, "
        "with the libraries that it imports."
    ]
    for name in [name for name in SETS if name in cells]:
        found = {method: cells[name].get(method) for method in methods_of(name, list(LEARNERS))}
        order = sorted(found, key=lambda method: (found[method] or {}).get("error", np.inf))
        lines = [line(method, found[method]) for method in order]
        parts.append(f"## {name}\n\n{SETS[name].text}\n\n{table(HEADER, lines)}")
    return "\n\n".join(parts)


def main() -> None:
    given = parser_of(__doc__, SETS, LEARNERS).parse_args()
    if given.make_environments:
        environments.make(given.make_environments, ENVIRONMENTS)
        return
    exit_on_signals()
    if not given.report:
        sets = chosen(given.sets, SETS, "--sets")
        methods = chosen(given.methods, LEARNERS, "--methods")
        limits = Limits(given.limit_seconds, LIMIT_GIGABYTES)
        begin()
        run(sets, methods, limits, given.environments, given.fresh)
    text = report(stored(NAME)["cells"])
    print(text)
    (RESULTS / f"{NAME}.md").write_text(f"# Beside the peers of 2026\n\n{text}\n")


if __name__ == "__main__":
    main()
