"""How long LMNN would take on the large set, from how its time grows on small parts of it.

A step costs time in proportion to the rows, a search for impostors to their square. On parts the
steps weigh most, on the whole the searches, so a line through the parts drawn on would be wrong.
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
from latentmetric.reproduction.cells import write_json
from latentmetric.reproduction.plan import LARGE_SET, Setting
from latentmetric.reproduction.sources import Source, sample

NAME = "lmnn-estimate.json"
PARTS = (4, 2, 1)
LARGEST_PART = 32_000
ITERATIONS = 20


def estimate_lmnn(setting: Setting, source: Source, out: Path) -> None:
    """Time a few iterations on parts of the rows and draw the curve on; once for all."""
    path = out / NAME
    if path.exists():
        return
    split = source.load(setting)
    largest = min(LARGEST_PART, len(split.X_train) // 2)
    sizes = [largest // part for part in PARTS]
    seconds = [_seconds(*sample(split.X_train, split.y_train, size, seed=0)) for size in sizes]
    n_rows = len(split.X_train)
    steps, searches = _parts_by_growth(np.array(sizes), np.array(seconds), n_rows)
    estimate = {
        "rows": sizes,
        "seconds": seconds,
        "iterations": ITERATIONS,
        "all_rows": n_rows,
        "estimated_step_seconds": steps,
        "estimated_search_seconds": searches,
    }
    write_json(path, estimate)


def _parts_by_growth(sizes: Floats, seconds: Floats, n_rows: int) -> tuple[float, float]:
    """Seconds at ``n_rows``: the part that grows with the rows, and that with their square."""
    share = sizes / n_rows
    terms = np.column_stack((share, share**2)) / seconds[:, None]
    (linear, quadratic), _ = nnls(terms, np.ones(len(sizes)))
    return float(linear), float(quadratic)


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
    steps, searches = found["estimated_step_seconds"], found["estimated_search_seconds"]
    return (
        f"LMNN was not run on {LARGE_SET}. {found['iterations']} iterations took {timed} rows; "
        f"{found['all_rows']:,} rows would take {(steps + searches) / 3600:.1f} hours for as many, "
        f"{steps / 3600:.1f} of them for what grows with the rows and {searches / 3600:.1f} for "
        "what grows with their square."
    )
