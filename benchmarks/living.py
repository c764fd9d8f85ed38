"""Classes that come later, and rows that arrive in chunks: what is lost without a refit?

    LATENTMETRIC_DATA=folder python benchmarks/living.py [--parts added,streamed,made]

First part: a fifth of the classes, drawn at random, arrive after the fit. Test error of
``add_classes`` over all classes and over the new ones, beside a refit on all rows and Euclid's
3-NN, and the time of both.
Second part: a model is fitted on the first tenth of the rows, and the rest arrives by
``partial_fit`` in chunks of 1,000 rows; beside latent examples of all rows at once under the same
metric (``add_classes`` of every class), and a refit on all rows. Goal: within 0.5 points of the
first of these.
Third part: classes that overlap, drawn from normal distributions. What a refinement of new classes
changes, whatever the distance D²/T of known rows (LEAST_AWAY decides by it).
Mean ± standard error over seeds; times are those of the processor, of all threads
together. Parts that are not measured again are kept.
"""

from __future__ import annotations

import argparse
import json
import time
from copy import deepcopy
from typing import Any
from unittest.mock import patch

import numpy as np
from common import RESULTS, gemm_gflops, machine_facts, table, write_json
from data import Split, load_benchmark
from quality import mean_and_error

from latentmetric import Euclidean, MaPML

ADDED = {"cifar100": 20, "clinc150": 30}
"""How many classes arrive after the fit."""
STREAMED = ("clinc150", "letter", "mnist")
MADE = {
    "3 classes, 1 added": (3, 3, 600, 1.5, 1),
    "4 classes, 1 added": (4, 3, 800, 1.2, 1),
    "10 classes, 2 added": (10, 5, 1_500, 1.2, 2),
    "20 classes, 4 added": (20, 10, 2_500, 0.9, 4),
}
"""Classes, features, rows, deviation of the centres, and classes that arrive after the fit."""
PARTS = {"added": tuple(ADDED), "streamed": STREAMED, "made": tuple(MADE)}
SEEDS, MADE_SEEDS = (0, 1, 2), 6
CHUNK = 1_000


def error_of(model: Any, split: Split) -> float:
    return 100 * (1 - model.score(split.X_test, split.y_test))


def timed(action: Any) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def added_later(split: Split, n_added: int, seed: int) -> dict[str, float]:
    """Errors and seconds with some classes added after the fit."""
    X, y = split.X_train, split.y_train
    late = np.random.default_rng(seed).choice(np.unique(y), n_added, replace=False)
    is_late = np.isin(y, late)
    model = MaPML(random_state=seed).fit(X[~is_late], y[~is_late])
    adding = timed(lambda: model.add_classes(X[is_late], y[is_late]))
    again = MaPML(random_state=seed)
    refitting = timed(lambda: again.fit(X, y))
    of_new = np.isin(split.y_test, late)
    return {
        "added": error_of(model, split),
        "new classes": 100 * (1 - model.score(split.X_test[of_new], split.y_test[of_new])),
        "refitted": error_of(again, split),
        "Euclid": error_of(Euclidean().fit(X, y), split),
        "milliseconds a class": 1e3 * adding / n_added,
        "refit seconds": refitting,
    }


def streamed(split: Split, seed: int) -> dict[str, float]:
    """Errors with most rows arriving in chunks."""
    order = np.random.default_rng(seed).permutation(len(split.X_train))
    X, y = split.X_train[order], split.y_train[order]
    n_first = len(X) // 10
    first = MaPML(random_state=seed).fit(X[:n_first], y[:n_first])
    before, halves = error_of(first, split), np.array_split(first.classes_, 2)
    # Like partial_fit, without a refinement of the latent examples.
    at_once = MaPML(random_state=seed).fit(X[:n_first], y[:n_first]).set_params(refine=0)
    for half in halves:  # a model must keep two classes
        own = np.isin(y, half)
        at_once.remove_classes(half).add_classes(X[own], y[own])
    chunks = list(range(n_first, len(X), CHUNK))
    seconds = timed(
        lambda: [first.partial_fit(X[at : at + CHUNK], y[at : at + CHUNK]) for at in chunks]
    )
    return {
        "first tenth": before,
        "in chunks": error_of(first, split),
        "at once, same metric": error_of(at_once, split),
        "refitted": error_of(MaPML(random_state=seed).fit(X, y), split),
        "milliseconds a chunk": 1e3 * seconds / len(chunks),
    }


def made(name: str, seed: int) -> dict[str, float]:
    """Errors of new classes, refined and not, among classes that overlap."""
    n_classes, n_features, n_rows, spread, n_added = MADE[name]
    generator = np.random.default_rng(seed)
    centres = spread * generator.standard_normal((n_classes, n_features))
    y, y_test = (generator.integers(0, n_classes, n) for n in (n_rows, 2_000))
    X, X_test = (
        centres[of] + generator.standard_normal((len(of), n_features)) for of in (y, y_test)
    )
    late = np.isin(y, generator.choice(n_classes, n_added, replace=False))
    first = MaPML(random_state=seed).fit(X[~late], y[~late])
    model = first.model_
    found = {"D²/T": model.usual_distances.nearest / model.temperature}
    with patch("latentmetric.core.growing.LEAST_AWAY", 0.0):
        for column, refine in (("refined", "auto"), ("not refined", 0)):
            grown = deepcopy(first).set_params(refine=refine).add_classes(X[late], y[late])
            found[column] = 100 * (1 - grown.score(X_test, y_test))
    found["difference"] = found["refined"] - found["not refined"]
    return found


def figures(part: str, name: str) -> list[dict[str, float]]:
    """Those of every seed."""
    if part == "made":
        return [made(name, seed) for seed in range(MADE_SEEDS)]
    split = load_benchmark(name)
    if part == "added":
        return [added_later(split, ADDED[name], seed) for seed in SEEDS]
    return [streamed(split, seed) for seed in SEEDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    wanted = parser.parse_args().parts.split(",")
    path = RESULTS / "living.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    results["machine"] = machine_facts(gemm_gflops())
    for part in wanted:
        results[part] = {}
        for name in PARTS[part]:
            results[part][name] = found = figures(part, name)
            write_json("living", results)
        columns = list(found[0])
        lines = [
            [name, *[mean_and_error([run[column] for run in runs]) for column in columns]]
            for name, runs in results[part].items()
        ]
        print(table([part, *columns], lines), flush=True)


if __name__ == "__main__":
    main()
