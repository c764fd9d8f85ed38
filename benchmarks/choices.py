"""The defaults of the refinement against other choices, on validation rows.

    LATENTMETRIC_DATA=folder python benchmarks/choices.py [--sets letter,banking77]

A fifth of at most 10,000 training rows validates; test rows are never read. One choice for all
sets: the table shows the error of each alternative, and at the end its mean rank over the sets.
Finished cells are kept in benchmarks/results/choices.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from common import RESULTS, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric import MaPML

SETS = ("digits", "letter", "banking77", "clinc150", "mnist")
SEEDS = (0, 1)
MOST_ROWS = 10_000
CHOICES: dict[str, dict[str, Any]] = {
    "default": {},
    "factor rate / 2": {"refinement.FACTOR_RATE": 5e-3},
    "factor rate × 2": {"refinement.FACTOR_RATE": 2e-2},
    "point rate / 2": {"refinement.POINT_RATE": 1e-2},
    "point rate × 2": {"refinement.POINT_RATE": 4e-2},
    "T / 2": {"setup.REFINEMENT_SHARE": 0.1},
    "T × 2": {"setup.REFINEMENT_SHARE": 0.4},
    "no distortion": {"population.DISTORTION": 0.0},
    "distortion × 1.5": {"population.DISTORTION": 0.75},
    "2 rounds": {"max_iter": 2},
    "10 rounds": {"max_iter": 10},
    "k-means to the end": {"max_passes": 100},
    "1 pass": {"refine": 1},
    "6 passes": {"refine": 6},
}
"""Constants by their modules, and parameters."""


def training_rows(name: str) -> tuple[Any, Any]:
    """Training rows and labels of a set."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, _, y, _ = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
        return X, y
    split = load_benchmark(name)
    chosen = np.random.default_rng(0).permutation(len(split.y_train))[:MOST_ROWS]
    return split.X_train[chosen], split.y_train[chosen]


def errors(name: str, choice: dict[str, Any]) -> Iterator[float]:
    """The validation error of each seed, in percent."""
    X, y = training_rows(name)
    parameters = {key: value for key, value in choice.items() if "." not in key}
    with ExitStack() as changed:
        for key, value in choice.items():
            if key not in parameters:
                module = ("estimators." if key.startswith("setup") else "core.") + key
                changed.enter_context(patch(f"latentmetric.{module}", value))
        for seed in SEEDS:
            fitted, held, labels, truth = train_test_split(
                X, y, test_size=0.2, stratify=y, random_state=seed
            )
            model = MaPML(start="euclidean", random_state=seed, **parameters)
            yield 100 * (1 - model.fit(fitted, labels).score(held, truth))


def report(cells: dict) -> str:
    """Errors by choice and set, and mean ranks."""
    names = [name for name in cells if len(cells[name]) == len(CHOICES)]
    means = np.array([[np.mean(cells[name][choice]) for name in names] for choice in CHOICES])
    ranks = (means[:, None, :] > means[None]).sum(axis=1).mean(axis=1) + 1
    lines = [
        [choice, *[f"{value:.2f}" for value in row], f"{rank:.1f}"]
        for choice, row, rank in zip(CHOICES, means, ranks, strict=True)
    ]
    return table(["choice", *names, "mean rank"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    path = RESULTS / "choices.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results = results or {"machine": machine_facts(gemm_gflops()), "cells": {}}
    for name in options.sets.split(","):
        cells = results["cells"].setdefault(name, {})
        for choice, changes in CHOICES.items():
            if choice not in cells:
                cells[choice] = list(errors(name, changes))
                print(name, choice, cells[choice], flush=True)
                write_json("choices", results)
    print(report(results["cells"]))


if __name__ == "__main__":
    main()
