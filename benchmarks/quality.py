"""Test error with default parameters on seven real data sets, as a mean over seeds.

    LATENTMETRIC_DATA=folder python benchmarks/quality.py [--sets letter,mnist] [--seeds 0,1,2,3,4]

All sets use the same defaults; nothing is tuned. Finished cells are kept in
benchmarks/results/quality.json and reused until the source changes; --fresh starts over.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import time
from pathlib import Path

import numpy as np
from common import RESULTS, gemm_gflops, machine_facts, table, write_json
from data import BENCHMARK_SETS, Split, load_benchmark

import latentmetric
from latentmetric import MaPML
from latentmetric.core.distances import References, k_nearest
from latentmetric.core.votes import vote

TARGETS = {
    ("mnist", "latent"): 2.40,
    ("mnist", "original"): 2.05,
    ("cifar10", "latent"): 12.3,
    ("cifar10", "original"): 13.0,
    ("cifar100", "latent"): 34.0,
    ("clinc150", "latent"): 6.0,
    ("clinc150", "latent, kernel"): 5.5,
    ("banking77", "original"): 7.3,
    ("banking77", "latent, kernel"): 7.6,
    ("letter", "original"): 3.0,
}
CORE = (
    "alternation", "classes", "coordinates", "distances", "latents", "metric", "model",
    "population", "psd", "triplets", "votes",
)  # fmt: skip
"""Modules of ``latentmetric.core`` that the figures depend on."""
COLUMNS = ["latent", "original", "latent, kernel", "original, kernel"]


def percent_wrong(predicted: np.ndarray, truth: np.ndarray) -> float:
    return 100 * float(np.mean(predicted != truth))


def euclid(split: Split) -> float:
    centre = split.X_train.mean(axis=0)
    _, found = k_nearest(split.X_test - centre, References.of(split.X_train - centre), 3)
    _, codes = np.unique(split.y_train, return_inverse=True)
    winners = vote(codes[found], np.ones(found.shape))
    return percent_wrong(np.unique(split.y_train)[winners], split.y_test)


def cell(split: Split, seed: int) -> dict[str, float]:
    """Errors of one fit, with latent and with original references, by 3-NN and by kernel vote."""
    start = time.perf_counter()
    model = MaPML(random_state=seed).fit(split.X_train, split.y_train)
    errors = {"fit seconds": time.perf_counter() - start}
    for reference in ("latent", "original"):
        if reference == "original":
            model.set_references(split.X_train, split.y_train)
        for weights, suffix in (("uniform", ""), ("kernel", ", kernel")):
            model.set_params(weights=weights)
            errors[reference + suffix] = percent_wrong(model.predict(split.X_test), split.y_test)
    return errors


def report(results: dict) -> str:
    rows = []
    for name, cells in results["cells"].items():
        seeds = [cells[key] for key in cells if key != "euclid"]
        row = [name, f"{cells['euclid']:.2f}", len(seeds)]
        for column in COLUMNS:
            values = [seed[column] for seed in seeds]
            target = TARGETS.get((name, column))
            mark = (
                ""
                if target is None
                else f" (≤ {target})" + ("" if np.mean(values) <= target else " MISSED")
            )
            row.append(f"{np.mean(values):.2f} ± {np.std(values):.2f}{mark}")
        rows.append([*row, f"{np.mean([seed['fit seconds'] for seed in seeds]):.1f}"])
    return table(["set", "Euclid", "seeds", *COLUMNS, "fit s"], rows)


def kernel_against_majority(results: dict) -> str:
    """The largest loss of the kernel vote on any set, against 3-NN with the same references."""
    lines = []
    for reference in ("latent", "original"):
        losses = {}
        for name, cells in results["cells"].items():
            seeds = [cells[key] for key in cells if key != "euclid"]
            changes = [seed[f"{reference}, kernel"] - seed[reference] for seed in seeds]
            losses[name] = float(np.mean(changes))
        worst = max(losses, key=losses.get)
        lines.append(
            f"kernel vote minus 3-NN, {reference}: at worst {losses[worst]:+.2f} ({worst})"
        )
    return "\n".join([*lines, "goal with latents: at most +0.1"])


def source_hash() -> str:
    """Of the code that the figures depend on; words in docstrings and comments do not count."""
    folder = Path(latentmetric.__file__).parent
    files = [folder / "core" / f"{name}.py" for name in CORE]
    files += [folder / "estimators" / "mapml.py"]
    digest = hashlib.sha256()
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [part for part in body if not _is_text(part)]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:16]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(BENCHMARK_SETS))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "quality.json"
    results = {} if options.fresh or not path.exists() else json.loads(path.read_text())
    if results.get("source") != source_hash():
        results = {"source": source_hash(), "machine": machine_facts(gemm_gflops()), "cells": {}}
    for name in options.sets.split(","):
        split = load_benchmark(name)
        cells = results["cells"].setdefault(name, {})
        if "euclid" not in cells:
            cells["euclid"] = euclid(split)
        for seed in options.seeds.split(","):
            if seed not in cells:
                cells[seed] = cell(split, int(seed))
                print(name, seed, cells[seed], flush=True)
                write_json("quality", results)
    print(report(results))
    print(kernel_against_majority(results))


if __name__ == "__main__":
    main()
