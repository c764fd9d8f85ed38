"""How long calls of ``predict`` with few rows take, as a server makes them.

    [LATENTMETRIC_DATA=folder] python benchmarks/latency.py [--sets letter] [--threads 1]

Ours with both votes, beside scikit-learn's KNeighborsClassifier(3) with the latent examples as its
rows: as many references, no metric. All take turns on the same rows, so that other work on the
machine slows all of them alike. Calls come from one thread, or from four at the same time. Times
are microseconds per call, of the processor from one thread and by the clock from four: p50 is the
median, p99 is what one call in a hundred exceeds. Ratios are to the faster of scikit-learn's two.
Goals for the p50 from one thread: of one row at most 1 times scikit-learn's, of 10,000 at most 1.2.

Data: MNIST, letter and CLINC150 from the data folder. Without it, image-like rows of MNIST's size.
"""

from __future__ import annotations

import argparse
import copy
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
from common import gemm_gflops, machine_facts, positive, table, write_json
from data import load_benchmark
from image_like import make_image_like
from sklearn.neighbors import KNeighborsClassifier

from latentmetric import MaPML

SETS = ("mnist", "letter", "clinc150")
ROWS_PER_CALL = (1, 10, 100, 10_000)
THREADS = (1, 4)
MIN_CALLS = 3
GOAL = 1.0

OURS = ("kernel", "3-NN")
THEIRS = ("sklearn auto", "sklearn brute")

Call = Callable[[np.ndarray], Any]


def data_sets(names: list[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Name, training rows, labels and queries."""
    if os.environ.get("LATENTMETRIC_DATA"):
        for name in names:
            split = load_benchmark(name)
            yield name, split.X_train, split.y_train, split.X_test
        return
    made = make_image_like(70_000, 784, 10)
    yield "image-like", made.X[:60_000], made.y[:60_000], made.X[60_000:]


def fitted_calls(X: np.ndarray, y: np.ndarray) -> tuple[MaPML, dict[str, Call]]:
    """A model after one round, because more of them do not change what a query costs."""
    model = MaPML(max_iter=1, refine=0, random_state=0).fit(X, y)
    three = copy.copy(model).set_params(weights="uniform", n_neighbors=3)
    latents = model.latent_examples_, model.latent_labels_
    auto, brute = (
        KNeighborsClassifier(3, algorithm=algorithm).fit(*latents)
        for algorithm in ("auto", "brute")
    )
    models = (model, three, auto, brute)
    return model, {name: one.predict for name, one in zip((*OURS, *THEIRS), models, strict=True)}


def some_queries(queries: np.ndarray, n_rows: int, number: int) -> np.ndarray:
    """Other rows in each call; repeated if a call has more rows than there are."""
    return queries[(n_rows * number + np.arange(n_rows)) % len(queries)]


def timed(call: Call, rows: np.ndarray, clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    call(rows)
    return 1e6 * (clock() - start)


def measured(
    calls: dict[str, Call], queries: np.ndarray, n_rows: int, n_threads: int, seconds: float
) -> dict[str, list[float]]:
    """Microseconds of each call; one after the other, each from all threads at once."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    with ThreadPoolExecutor(n_threads) as pool:
        began = time.perf_counter()
        for number in count():
            if number > MIN_CALLS and time.perf_counter() > began + seconds * len(calls):
                return found
            batches = [
                some_queries(queries, n_rows, n_threads * number + thread)
                for thread in range(n_threads)
            ]
            for name, call in calls.items():
                if n_threads == 1:
                    times = [timed(call, batches[0], time.process_time)]
                else:
                    times = list(pool.map(timed, [call] * n_threads, batches))
                if number:  # the first calls warm up
                    found[name] += times
    raise AssertionError


def summary(times: dict[str, list[float]]) -> dict[str, Any]:
    result: dict[str, Any] = {
        name: {
            "calls": len(taken),
            "p50_microseconds": float(np.percentile(taken, 50)),
            "p99_microseconds": float(np.percentile(taken, 99)),
        }
        for name, taken in times.items()
    }
    for quantile in ("p50", "p99"):
        fastest = min(result[name][f"{quantile}_microseconds"] for name in THEIRS)
        for name in OURS:
            ratio = result[name][f"{quantile}_microseconds"] / fastest
            result[name][f"{quantile}_ratio"] = ratio
    return result


def line_of(entry: dict[str, Any]) -> list[Any]:
    calls = entry["calls"]
    cells = [
        f"{calls[name]['p50_microseconds']:,.0f} / {calls[name]['p99_microseconds']:,.0f}"
        for name in (*OURS, *THEIRS)
    ]
    ratios = [
        f"{calls[name][f'{quantile}_ratio']:.2f}" for name in OURS for quantile in ("p50", "p99")
    ]
    return [entry["data"], f"{entry['rows']:,}", entry["threads"], *cells, *ratios]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=positive, default=2.0, help="for each of the four, per line"
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--threads", nargs="+", default=list(THREADS), choices=THREADS, type=int)
    arguments = parser.parse_args()
    results: dict[str, Any] = {"machine": machine_facts(gemm_gflops()), "goal": GOAL, "lines": []}
    for name, X, y, queries in data_sets(arguments.sets):
        model, calls = fitted_calls(X, y)
        for n_threads in arguments.threads:
            for n_rows in ROWS_PER_CALL:
                times = measured(calls, queries, n_rows, n_threads, arguments.seconds)
                entry = {
                    "data": name,
                    "references": len(model.latent_examples_),
                    "features": X.shape[1],
                    "rows": n_rows,
                    "threads": n_threads,
                    "calls": summary(times),
                }
                results["lines"].append(entry)
                print(*line_of(entry), flush=True)
    worst = max(
        entry["calls"][name]["p50_ratio"]
        for entry in results["lines"]
        for name in OURS
        if entry["rows"] == 1 and entry["threads"] == min(arguments.threads)
    )
    results["worst_p50_ratio_of_one_row"] = worst
    print(
        table(
            [
                "data", "rows", "threads", *[f"{name}, µs p50 / p99" for name in (*OURS, *THEIRS)],
                *[f"{name} {quantile} ratio" for name in OURS for quantile in ("p50", "p99")],
            ],
            [line_of(entry) for entry in results["lines"]],
        )
    )  # fmt: skip
    print(f"one row, worst p50 ratio {worst:.2f} (goal: at most {GOAL:g})")
    whole = set(arguments.sets) == set(SETS) and set(arguments.threads) == set(THREADS)
    print(write_json("latency" if whole else "latency_part", results))


if __name__ == "__main__":
    main()
