"""Few labels, many rows: what rows without labels gain, beside scikit-learn's methods.

    LATENTMETRIC_DATA=folder python benchmarks/unlabelled.py [--sets clinc150] [--fresh METHOD]

A share of each class's training rows keeps its labels, at least one row. Test error in percent,
mean ± standard error over seeds. Logistic regression, also inside self-training, uses C = 10; label
spreading uses the kernel "knn" with its default of 7 neighbours.
Finished cells are kept in results/unlabelled.json; --fresh measures one method again. Goal: never
worse than ignoring the rows.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import RESULTS, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from quality import mean_and_error
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from latentmetric import MaPML

SETS = {"clinc150": 15_000, "mnist": 10_000}
"""Training rows of each set, with and without labels."""
SHARES, SEEDS, UNLABELLED = (0.01, 0.05, 0.1), (0, 1, 2), -1


def linear() -> LogisticRegression:
    return LogisticRegression(C=10, max_iter=300)


Learner = Callable[[int], Any]

ON_LABELLED: dict[str, Learner] = {
    "MaPML, labelled rows": lambda seed: MaPML(random_state=seed),
    "logistic regression, labelled rows": lambda _: linear(),
}
ON_ALL: dict[str, Learner] = {
    "MaPML, all rows": lambda seed: MaPML(unlabelled=UNLABELLED, random_state=seed),
    "self-training": lambda _: SelfTrainingClassifier(linear()),
    "label spreading": lambda _: LabelSpreading(kernel="knn", n_neighbors=7),
}
METHODS = [*ON_LABELLED, *ON_ALL]


def with_few_labels(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    generator, few = np.random.default_rng(seed), np.full(len(y), UNLABELLED)
    for label in np.unique(y):
        rows = generator.permutation(np.flatnonzero(y == label))
        some = rows[: max(1, round(share * len(rows)))]
        few[some] = y[some]
    return few


def errors(
    split: Any, n_rows: int, share: float, seed: int, methods: list[str]
) -> dict[str, float]:
    """The test errors of some methods."""
    rows = np.random.default_rng(seed).permutation(len(split.y_train))[:n_rows]
    X, few = split.X_train[rows], with_few_labels(split.y_train[rows], share, seed)
    labelled = few != UNLABELLED
    fitted = {
        name: ON_ALL[name](seed).fit(X, few)
        if name in ON_ALL
        else ON_LABELLED[name](seed).fit(X[labelled], few[labelled])
        for name in methods
    }
    return {
        name: 100 * float(np.mean(model.predict(split.X_test) != split.y_test))
        for name, model in fitted.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--fresh", choices=METHODS, metavar="METHOD")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    path = RESULTS / "unlabelled.json"
    results = json.loads(path.read_text()) if path.exists() else {"cells": {}}
    results["machine"] = machine_facts(gemm_gflops())
    for name in options.sets.split(","):
        split = load_benchmark(name)
        for share in SHARES:
            cell = results["cells"].setdefault(f"{name}, {share:.0%}", {})
            for seed in SEEDS:
                found = cell.setdefault(str(seed), {})
                missing = [m for m in METHODS if m not in found or m == options.fresh]
                if not missing:
                    continue
                found |= errors(split, SETS[name], share, seed, missing)
                write_json("unlabelled", results)
                print(name, share, seed, cell[str(seed)], flush=True)
    lines = [
        [cell, *(mean_and_error([found[m] for found in by_seed.values()]) for m in METHODS)]
        for cell, by_seed in results["cells"].items()
    ]
    print(table(["labels", *METHODS], lines))


if __name__ == "__main__":
    main()
