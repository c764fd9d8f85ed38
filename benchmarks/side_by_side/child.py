"""Fit one method on the rows of a folder, in a process of its own, and write what it took.

    python child.py LEARNERS METHOD FOLDER OUT

LEARNERS is the module beside this file that builds the method. If it has PROBABILITIES, queries
are answered by predict_proba, which also gives a log-loss; else by predict. FOLDER has X_train.npy,
y_train.npy, X_test.npy and y_test.npy. OUT is written when the rows are loaded, after the fit and
after the queries, so that a process that is stopped leaves what it knew.
"""

from __future__ import annotations

import json
import platform
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = (
    "catboost",
    "faiss-cpu",
    "latentmetric",
    "metric-learn",
    "numpy",
    "pytabkit",
    "pytorch-metric-learning",
    "scikit-learn",
    "scipy",
    "sklvq",
    "torch",
    "xrfm",
)
ROW_ARRAYS = ("X_train", "y_train", "X_test", "y_test")
SMALLEST_SHARE = 1e-3
"""Probabilities below this count as this, as in the other benchmarks."""


def run(learners: str, method: str, folder: Path, out: Path) -> None:
    module = import_module(learners)
    X, y, queries, truth = (np.load(folder / f"{name}.npy") for name in ROW_ARRAYS)
    learner = module.LEARNERS[method]()
    facts: dict[str, Any] = {
        "data_megabytes": (X.nbytes + queries.nbytes) / 1e6,
        "loaded_megabytes": peak_megabytes(),
        "versions": versions(),
    }
    write(out, facts)
    _, facts["fit_seconds"], facts["fit_cpu_seconds"] = timed(lambda: learner.fit(X, y))
    facts["fit_peak_megabytes"] = peak_megabytes()
    write(out, facts)
    probable = hasattr(module, "PROBABILITIES")
    ask = learner.predict_proba if probable else learner.predict
    answers, seconds, cpu_seconds = timed(lambda: ask(queries))
    facts["query_seconds"], facts["query_cpu_seconds"] = seconds, cpu_seconds
    facts["query_microseconds"] = 1e6 * seconds / len(queries)
    facts["query_cpu_microseconds"] = 1e6 * cpu_seconds / len(queries)
    facts["peak_megabytes"] = peak_megabytes()
    predicted = answers.argmax(axis=1) if probable else answers
    facts["error"] = 100 * float(np.mean(predicted != truth))
    if probable:
        facts["log_loss"] = log_loss(answers, truth)
        facts["notes"] = getattr(learner, "notes_", "")
    write(out, facts)


def log_loss(probabilities: np.ndarray, codes: np.ndarray) -> float:
    right = probabilities[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(right, SMALLEST_SHARE)).mean())


def timed(action: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it gives, and its seconds by the clock and of the processor."""
    start, cpu_start = time.perf_counter(), time.process_time()
    result = action()
    return result, time.perf_counter() - start, time.process_time() - cpu_start


def peak_megabytes() -> float:
    """Largest resident size so far; getrusage would count the parent's before the start."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024 / 1e6


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write(out: Path, facts: dict[str, Any]) -> None:
    partial = out.with_suffix(".partial")
    partial.write_text(json.dumps(facts))
    partial.replace(out)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
