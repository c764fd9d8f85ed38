"""How many passes of Alg. 1 a round are worth their time, with the paper's other settings?

    LATENTMETRIC_DATA=folder python benchmarks/passes.py

Fits on a part of the training rows, validates on the rest; test rows are not used. Mean error ±
standard error over seeds, and processor seconds of a fit on one thread. Finished cells are kept in
benchmarks/results/passes.json.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from common import RESULTS, gemm_gflops, machine_facts, no_options, table, write_json
from data import load_benchmark
from quality import mean_and_error
from sklearn.model_selection import train_test_split

from latentmetric import MaPML

SETS = ("letter", "clinc150", "mnist", "cifar100")
PASSES = (1, 2, 3, 100)
SEEDS = (0, 1, 2, 3)
FITTED_ROWS, VALIDATION_ROWS = 20_000, 5_000
"""At most; a fifth of the rows is for validation if there are fewer."""


def measure(name: str, passes: int) -> dict[str, Any]:
    """Errors in percent and processor seconds, by seed."""
    X, y = (part := load_benchmark(name)).X_train, part.y_train
    n_validation = min(VALIDATION_ROWS, len(X) // 5)
    X, X_validation, y, y_validation = train_test_split(
        X, y, train_size=min(FITTED_ROWS, len(X) - n_validation), test_size=n_validation,
        stratify=y, random_state=0,
    )  # fmt: skip
    found: dict[str, Any] = {"errors": [], "seconds": [], "rows": len(X)}
    for seed in SEEDS:
        model = MaPML.as_published(max_passes=passes, random_state=seed, n_jobs=1)
        start = time.process_time()
        model.fit(X, y)
        found["seconds"].append(time.process_time() - start)
        found["errors"].append(100 * (1 - model.score(X_validation, y_validation)))
    return found


def main() -> None:
    no_options(__doc__)
    path = RESULTS / "passes.json"
    results = json.loads(path.read_text()) if path.exists() else {"cells": {}}
    results.setdefault("machine", machine_facts(gemm_gflops()))
    cells = results["cells"]
    for name in SETS:
        for passes in PASSES:
            key = f"{name}, {passes}"
            if key not in cells:
                cells[key] = measure(name, passes)
                write_json("passes", results)
    lines = [
        [
            f"{name}, {cells[f'{name}, 1']['rows']:,} rows",
            *[
                f"{mean_and_error(cells[f'{name}, {passes}']['errors'])} "
                f"({np.mean(cells[f'{name}, {passes}']['seconds']):.0f} s)"
                for passes in PASSES
            ],
        ]
        for name in SETS
    ]
    print(table(["set", *[f"{passes} passes at most" for passes in PASSES]], lines))


if __name__ == "__main__":
    main()
