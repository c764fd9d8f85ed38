"""Test error and calibration of rivals, on the published splits and on small sets.

    LATENTMETRIC_DATA=folder python benchmarks/baselines.py [--sets iris,letter] [--rivals 3-NN]

The rivals are in rivals.py, with all that is chosen for them on training rows. The small sets are
cross-validated, and ``digits split`` is the demo's split with ten seeds: mean ± standard error.
RBF-SVM and LMNN are fitted on as many rows as --minutes allow. Each cell is written to
benchmarks/results/baselines.json when it is ready, and not computed again: a run can be stopped
and resumed. --report only prints the table.

The negative log-likelihood (nats) counts no probability below 0.001, because the votes of a few
neighbours are often 0. The expected calibration error, in percent, has 15 bins of equal width.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from common import RESULTS, gemm_gflops, machine_facts, table, write_json
from data import BENCHMARK_SETS, Split, load_benchmark, load_noisy_mnist
from rivals import RIVALS, Outcome, negative_log_likelihood
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from small_sets import SMALL_SETS, folds, load_small

from latentmetric.core.types import Floats, Ints

BINS = 15
DIGITS_SPLIT, DIGITS_SEEDS = "digits split", range(10)
NOISY = "mnist noisy"
REPEATED = [*SMALL_SETS, DIGITS_SPLIT]
PUBLISHED = ["letter", "banking77", "clinc150", "mnist", NOISY, "cifar10", "cifar100"]
PUBLISHED += [name for name in BENCHMARK_SETS if name not in PUBLISHED]
SETS = [*REPEATED, *PUBLISHED]
STAGES = [
    (REPEATED, list(RIVALS)),
    (PUBLISHED, ["3-NN", "tuned k-NN", "logistic regression"]),
    (PUBLISHED, ["RBF-SVM"]),
    (PUBLISHED, ["k-means prototypes"]),
    (PUBLISHED, ["LMNN"]),
]
"""The order of the cells: the cheap and the most telling ones first."""


def calibration_error(shares: Floats, predicted: Ints, codes: Ints) -> float:
    """Mean distance between confidence and accuracy over the bins, in percent."""
    confidence = shares.max(axis=1)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    surplus = np.bincount(bins, confidence - (predicted == codes), minlength=BINS)
    return 100 * float(np.abs(surplus).sum()) / len(codes)


def splits(name: str) -> Iterator[Split]:
    """One split of a published set, or those of the folds or seeds."""
    if name == DIGITS_SPLIT:
        X, y = load_digits(return_X_y=True)
        for seed in DIGITS_SEEDS:
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=0.3, stratify=y, random_state=seed
            )
            yield Split(name, X_train, y_train, X_test, y_test)
    elif name in SMALL_SETS:
        X, y = load_small(name)
        for train, test in folds(name, y):
            yield Split(name, X[train], y[train], X[test], y[test])
    else:
        yield _published(name)


@lru_cache(maxsize=1)
def _published(name: str) -> Split:
    return load_noisy_mnist() if name == NOISY else load_benchmark(name)


def measure(rival: str, split: Split, minutes: float) -> dict[str, Any]:
    """The figures of one fit. The rival never gets the test labels."""
    classes, codes = np.unique(split.y_train, return_inverse=True)
    truth = np.searchsorted(classes, split.y_test)
    start = time.perf_counter()
    found: Outcome = RIVALS[rival](split.X_train, codes, split.X_test, minutes)
    figures = {
        "error": 100 * float(np.mean(found.predicted != truth)),
        "nll": None,
        "ece": None,
        "seconds": time.perf_counter() - start,
        "rows": found.rows,
        "all_rows": len(codes),
        "chosen": found.chosen,
        "converged": found.converged,
    }
    if found.shares is not None:
        figures["nll"] = negative_log_likelihood(found.shares, truth)
        figures["ece"] = calibration_error(found.shares, found.predicted, truth)
    return figures


def cell(rival: str, name: str, minutes: float) -> dict[str, Any]:
    """The figures of a set: of its one split, or means over several with their standard errors."""
    parts = [measure(rival, split, minutes) for split in splits(name)]
    if len(parts) == 1:
        return parts[0]
    cell: dict[str, Any] = {}
    for key in ("error", "nll", "ece"):
        values = [part[key] for part in parts]
        known = None not in values
        cell[key] = float(np.mean(values)) if known else None
        cell[f"{key}_se"] = float(np.std(values, ddof=1) / len(values) ** 0.5) if known else None
    cell["errors"] = [part["error"] for part in parts]
    cell["seconds"] = sum(part["seconds"] for part in parts)
    cell["converged"] = all(part["converged"] for part in parts)
    for key in ("rows", "all_rows", "chosen"):
        cell[key] = [part[key] for part in parts]
    return cell


def wanted(sets: list[str], rivals: list[str]) -> Iterator[tuple[str, str]]:
    """Cells in the order of the stages. Only the small sets have standardised 3-NN."""
    for stage_sets, stage_rivals in STAGES:
        for name in stage_sets:
            for rival in stage_rivals:
                if name in sets and rival in rivals:
                    yield name, rival


def report(cells: dict, key: str = "error") -> str:
    """A line for each set; * marks fits on a sample of the training rows."""
    rows = []
    for name in SETS:
        own = cells.get(name, {})
        if own:
            rows.append([name, *[_text(own.get(rival), key) for rival in RIVALS]])
    return table(["set", *RIVALS], rows)


def _text(figures: dict | None, key: str) -> str:
    if figures is None or figures[key] is None:
        return ""
    digits = 3 if key == "nll" else 2
    text = f"{figures[key]:.{digits}f}"
    if f"{key}_se" in figures:
        return f"{text} ± {figures[f'{key}_se']:.{digits}f}"
    return text + ("" if figures["rows"] == figures["all_rows"] else f" * {figures['rows']:,} rows")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rivals", help='separated by ";" because names have commas; default: all')
    parser.add_argument("--minutes", type=float, default=10, help="for one fit of RBF-SVM or LMNN")
    parser.add_argument("--report", action="store_true", help="only print the tables")
    options = parser.parse_args()
    options.sets = options.sets.split(",")
    options.rivals = options.rivals.split(";") if options.rivals else list(RIVALS)
    for given, known in ((options.sets, SETS), (options.rivals, list(RIVALS))):
        for name in given:
            if name not in known:
                parser.error(f"{name!r} is not one of {known}")
    return options


def main() -> None:
    options = parsed()
    path = RESULTS / "baselines.json"
    results = json.loads(path.read_text()) if path.exists() else {"cells": {}}
    cells = results["cells"]
    todo = [
        (name, rival)
        for name, rival in wanted(options.sets, options.rivals)
        if rival not in cells.get(name, {})
    ]
    if todo and not options.report:
        results["machine"] = machine_facts(gemm_gflops())
        for name, rival in todo:
            figures = cell(rival, name, options.minutes)
            cells.setdefault(name, {})[rival] = figures
            write_json("baselines", results)
            brief = {key: figures[key] for key in ("error", "nll", "ece", "seconds", "rows")}
            print(name, rival, brief, flush=True)
    for key, title in (("error", "error, %"), ("nll", "NLL"), ("ece", "ECE, %")):
        print(f"\n{title}\n\n{report(cells, key)}")


if __name__ == "__main__":
    main()
