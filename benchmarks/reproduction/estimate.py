"""How long LMNN would take on the large set, extrapolated from small samples of it.

The time of a step is proportional to the number of rows, that of a search for impostors to its
square. Steps dominate on small samples and searches on all rows, so both terms are fitted.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import nnls

from latentmetric.core.types import Floats
from latentmetric.estimators.lmnn import LMNN
from reproduction.plan import LARGE_SET, LMNN_FIXED, Setting
from reproduction.sources import Source, sample
from reproduction.trials import write_json

NAME = "lmnn-estimate.json"
DIVISORS = (4, 2, 1)
LARGEST_SAMPLE = 32_000
ITERATIONS = 20


def estimate_lmnn(setting: Setting, source: Source, out: Path) -> None:
    """Time a few iterations on samples of the rows, and extrapolate; done once."""
    path = out / NAME
    if path.exists():
        return
    split = source.load(setting)
    largest = min(LARGEST_SAMPLE, len(split.X_train) // 2)
    sizes = [largest // divisor for divisor in DIVISORS]
    seconds = [_seconds(*sample(split.X_train, split.y_train, size, seed=0)) for size in sizes]
    n_rows = len(split.X_train)
    steps, searches = _extrapolate(np.array(sizes), np.array(seconds), n_rows)
    estimate = {
        "rows": sizes,
        "seconds": seconds,
        "iterations": ITERATIONS,
        "all_rows": n_rows,
        "estimated_step_seconds": steps,
        "estimated_search_seconds": searches,
    }
    write_json(path, estimate)


def _extrapolate(sizes: Floats, seconds: Floats, n_rows: int) -> tuple[float, float]:
    """Seconds at ``n_rows``: the term that grows with the rows, and that with their square."""
    share = sizes / n_rows
    terms = np.column_stack((share, share**2)) / seconds[:, None]
    (linear, quadratic), _ = nnls(terms, np.ones(len(sizes)))
    return float(linear), float(quadratic)


def _seconds(X: Any, y: Any) -> float:
    start = perf_counter()
    LMNN(max_iter=ITERATIONS, push=0.5, **LMNN_FIXED | {"tol": 0}).fit(X, y)
    return perf_counter() - start


def sentence(out: Path) -> str:
    """The estimate as a sentence for the report; empty if nothing was estimated."""
    path = out / NAME
    if not path.exists():
        return ""
    found = json.loads(path.read_text())
    timed = ", ".join(
        f"{seconds:.1f} s at {rows:,}"
        for rows, seconds in zip(found["rows"], found["seconds"], strict=True)
    )
    steps, searches = found["estimated_step_seconds"], found["estimated_search_seconds"]
    return (
        f"LMNN was not run on {LARGE_SET}. {found['iterations']} iterations took {timed} rows; "
        f"{found['all_rows']:,} rows would take {(steps + searches) / 3600:.1f} hours for as many, "
        f"{steps / 3600:.1f} of them for steps, which grow with the rows, and "
        f"{searches / 3600:.1f} for searches, which grow with their square."
    )
