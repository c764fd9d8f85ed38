"""How long LMNN would take on the large set, from how its time grows on small parts of it."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from latentmetric.estimators.lmnn import LMNN
from latentmetric.reproduction.cells import write_json
from latentmetric.reproduction.plan import LARGE_SET, Setting
from latentmetric.reproduction.sources import Source, sample

NAME = "lmnn-estimate.json"
PARTS = (4, 2, 1)
LARGEST_PART = 16_000
ITERATIONS = 20


def estimate_lmnn(setting: Setting, source: Source, out: Path) -> None:
    """Time a few iterations on parts of the rows and draw the line on; once for all."""
    path = out / NAME
    if path.exists():
        return
    split = source.load(setting)
    largest = min(LARGEST_PART, len(split.X_train) // 2)
    sizes = [largest // part for part in PARTS]
    seconds = [_seconds(*sample(split.X_train, split.y_train, size, seed=0)) for size in sizes]
    exponent, constant = np.polyfit(np.log(sizes), np.log(seconds), 1)
    n_rows = len(split.X_train)
    estimate = {
        "rows": sizes,
        "seconds": seconds,
        "iterations": ITERATIONS,
        "exponent": float(exponent),
        "all_rows": n_rows,
        "estimated_seconds": float(np.exp(constant) * n_rows**exponent),
    }
    write_json(path, estimate)


def _seconds(X: Any, y: Any) -> float:
    start = perf_counter()
    LMNN(max_iter=ITERATIONS, tol=0).fit(X, y)
    return perf_counter() - start


def told(out: Path) -> str:
    """A sentence for the report, empty where nothing was estimated."""
    path = out / NAME
    if not path.exists():
        return ""
    found = json.loads(path.read_text())
    timed = ", ".join(
        f"{seconds:.1f} s at {rows:,}"
        for rows, seconds in zip(found["rows"], found["seconds"], strict=True)
    )
    return (
        f"LMNN was not run on {LARGE_SET}. {found['iterations']} iterations took {timed} rows, "
        f"growing with the power {found['exponent']:.2f}; {found['all_rows']:,} rows would take "
        f"{found['estimated_seconds'] / 3600:.1f} hours for as many."
    )
