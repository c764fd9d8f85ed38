"""The defaults of OASIS, HR-SGD and LMNN against other choices, on validation rows.

    LATENTMETRIC_DATA=folder python benchmarks/rival_choices.py [--sets letter,banking77]

The rivals get the care that MaPML got in choices.py. A quarter of at most 6,000 training rows
validates; test rows are never read. One choice for all sets: the tables show the error of each
alternative, and at the end the geometric mean of its errors relative to Euclid's, and its mean
rank. Finished cells are kept in benchmarks/results/rival_choices.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from common import RESULTS, chosen, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from latentmetric import HRSGD, LMNN, OASIS, Euclidean

SETS = ("digits", "wine", "breast cancer", "letter", "banking77", "clinc150", "mnist")
SEEDS = (0, 1)
SMALL_SEEDS = tuple(range(8))
"""More divisions for the sets of a few hundred rows."""
MOST_ROWS = 6_000
DIGITS_TRAINING_ROWS = 1_200
HELD_OUT = 0.25
FEWEST_ERRORS = 0.1
"""In percent, added to both errors of a ratio, because some are zero."""

Maker = Callable[[int], Any]


def _of_unit_length(model: Any) -> Any:
    """Rows of length 1 from the mean of all rows, as OASIS's authors use them.

    They are centred before, because OASIS here centres rows, which would undo the unit length.
    """
    return make_pipeline(StandardScaler(with_std=False), Normalizer(), model)


def _oasis(psd: bool, aggressiveness: float, unit_length: bool = False) -> Maker:
    def make(seed: int) -> Any:
        model = OASIS(psd=psd, aggressiveness=aggressiveness, random_state=seed)
        return _of_unit_length(model) if unit_length else model

    return make


def _hrsgd(update: str, learning_rate: float) -> Maker:
    return lambda seed: HRSGD(update=update, learning_rate=learning_rate, random_state=seed)


def _lmnn(**changes: Any) -> Maker:
    before = {"push": 0.5, "tol": 1e-4, "max_iter": 1000, "target_neighbors": 3}
    return lambda seed: LMNN(random_state=seed, **before | changes)


CHOICES: dict[str, dict[str, Maker]] = {
    "Euclid": {
        "rows as they are": lambda seed: Euclidean(),
        "unit length": lambda seed: _of_unit_length(Euclidean()),
    },
    "OASIS": {
        f"{'metric' if psd else 'similarity'}, C = {value:g}{', unit length' if unit else ''}": (
            _oasis(psd, value, unit)
        )
        for psd in (False, True)
        for unit, values in ((False, (1e-4, 1e-3, 1e-2, 1e-1)), (True, (1e-3, 1e-1)))
        for value in values
    },
    "HRSGD": {
        f"{update}, η = {rate:g}": _hrsgd(update, rate)
        for update in ("damped", "unbiased")
        for rate in (1e-3, 1e-2, 1e-1, 1.0)
    },
    "LMNN": {
        "as published": _lmnn(),
        "μ = 0.1": _lmnn(push=0.1),
        "μ = 0.9": _lmnn(push=0.9),
        "1 target": _lmnn(target_neighbors=1),
        "5 targets": _lmnn(target_neighbors=5),
        "μ = 0.1, 5 targets": _lmnn(push=0.1, target_neighbors=5),
        "tolerance 0.001": _lmnn(tol=1e-3),
        "tolerance 0.01": _lmnn(tol=1e-2),
        "20 iterations": _lmnn(max_iter=20),
        "early stopping": _lmnn(early_stopping=True),
    },
}
"""Estimators from a seed, by method and choice."""


@lru_cache(maxsize=1)
def training_rows(name: str) -> tuple[Any, Any]:
    """Training rows and labels of a set."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:DIGITS_TRAINING_ROWS], y[:DIGITS_TRAINING_ROWS]
    if name in ("wine", "breast cancer"):
        X, y = (load_wine if name == "wine" else load_breast_cancer)(return_X_y=True)
        X, _, y, _ = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
        return StandardScaler().fit_transform(X), y
    split = load_benchmark(name)
    chosen = np.random.default_rng(0).permutation(len(split.y_train))[:MOST_ROWS]
    return split.X_train[chosen], split.y_train[chosen]


def divisions(name: str) -> Iterator[tuple[int, Any, Any, Any, Any]]:
    """Seeds, rows to fit, rows to validate, and their labels.

    The digits of a writer follow one another, so that a quarter of the rows in one piece has other
    writers than the rest, as the test rows have.
    """
    X, y = training_rows(name)
    if name == "digits":
        for seed, held in enumerate(np.split(np.arange(len(y)), round(1 / HELD_OUT))):
            yield seed, np.delete(X, held, axis=0), X[held], np.delete(y, held), y[held]
        return
    for seed in SMALL_SEEDS if len(y) < 1_000 else SEEDS:
        yield seed, *train_test_split(X, y, test_size=HELD_OUT, stratify=y, random_state=seed)


def errors(name: str, make: Maker) -> Iterator[float]:
    """The validation error of each division, in percent."""
    for seed, fitted, held, labels, truth in divisions(name):
        yield 100 * (1 - make(seed).fit(fitted, labels).score(held, truth))


def report(cells: dict, method: str) -> str:
    """Errors by choice and set, relative to Euclid's, and mean ranks."""
    choices = list(CHOICES[method])
    names = [name for name in SETS if len(cells.get(name, {}).get(method, {})) == len(choices)]
    means = np.array([[np.mean(cells[name][method][c]) for name in names] for c in choices])
    euclid = np.array([np.mean(cells[name]["Euclid"]["rows as they are"]) for name in names])
    relative = np.exp(np.log((means + FEWEST_ERRORS) / (euclid + FEWEST_ERRORS)).mean(axis=1))
    ranks = (means[:, None, :] > means[None]).sum(axis=1).mean(axis=1) + 1
    lines = [
        [choice, *[f"{value:.2f}" for value in row], f"{ratio:.2f}", f"{rank:.1f}"]
        for choice, row, ratio, rank in zip(choices, means, relative, ranks, strict=True)
    ]
    return table([method, *names, "of Euclid's", "mean rank"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", help=f"of {', '.join(SETS)}")
    parser.add_argument("--methods", help=f"of {', '.join(CHOICES)}")
    parser.add_argument("--report", action="store_true", help="only print the tables")
    options = parser.parse_args()
    sets = chosen(options.sets, SETS, "--sets")
    methods = chosen(options.methods, CHOICES, "--methods")
    path = RESULTS / "rival_choices.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results = results or {"machine": machine_facts(gemm_gflops()), "cells": {}}
    for method in [] if options.report else methods:
        for name in sets:
            cells = results["cells"].setdefault(name, {}).setdefault(method, {})
            for choice, make in CHOICES[method].items():
                if choice not in cells:
                    cells[choice] = list(errors(name, make))
                    print(name, method, choice, np.mean(cells[choice]), flush=True)
                    write_json("rival_choices", results)
    for method in methods:
        print(report(results["cells"], method), end="\n\n")


if __name__ == "__main__":
    main()
