"""Test error of MaPML with default parameters beside the rivals', as a mean over seeds.

    LATENTMETRIC_DATA=folder python benchmarks/quality.py [--rows "letter;MNIST"] [--seeds 3]

One setting for all sets; nothing is tuned. Published splits are fitted with each seed; small sets
are cross-validated, and ``digits split`` is the demo's split with ten seeds: mean ± standard
error. Finished rows are kept in benchmarks/results/quality.json and reused until the source
changes, and more seeds are added to them. --check measures the first run of each row again: rows
that repeat are those of today's source, the others are measured anew. --fresh measures all anew,
--report only prints the tables.
The rivals' cells come from baselines.py, those of the paper's settings from
results/quality_as_published.json.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from baselines import DIGITS_SPLIT, NOISY, REPEATED, calibration_error, splits
from common import RESULTS, gemm_gflops, machine_facts, table, write_json
from data import Split
from rivals import RIVALS, negative_log_likelihood

import latentmetric
from latentmetric import MaPML


@dataclass(frozen=True)
class Row:
    """A line of the table: a set, and what differs from the defaults."""

    set: str
    parameters: dict[str, Any] = field(default_factory=dict)
    goal: float | None = None
    wrong_labels: float = 0.0
    """Share of the training labels that are drawn at random."""


ROWS = {
    "letter": Row("letter", goal=1.7),
    "BANKING77": Row("banking77", goal=6.2),
    "CLINC150": Row("clinc150", goal=3.85),
    "CLINC150, 3 latents a class": Row("clinc150", {"n_latents": 3}, 4.7),
    "MNIST": Row("mnist", goal=1.55),
    "MNIST, 2 % latents": Row("mnist", {"n_latents": 0.02}, 1.95),
    "MNIST, noise 250/255": Row(NOISY, goal=5.0),
    "CIFAR-10 features": Row("cifar10", goal=9.4),
    "CIFAR-100 features": Row("cifar100", goal=28.2),
    "imagenet200 features": Row("imagenet200", goal=33.6),
    **{name: Row(name) for name in REPEATED},
    "digits split, 30 % wrong labels": Row(DIGITS_SPLIT, {}, None, 0.3),
    "digits split, 30 % wrong labels, label_noise": Row(
        DIGITS_SPLIT, {"label_noise": True}, 4.5, 0.3
    ),
}
ROUNDING = 1e-5
"""How much a log-loss may differ where only rounding does."""
FIGURES = ("error", "three_nearest_error", "nll", "ece", "seconds")


def measure(split: Split, row: Row, seed: int) -> dict[str, Any]:
    """Errors in percent and calibration of one fit."""
    classes, codes = np.unique(split.y_train, return_inverse=True)
    truth = np.searchsorted(classes, split.y_test)
    if row.wrong_labels:
        generator = np.random.default_rng(seed)
        wrong = generator.random(len(codes)) < row.wrong_labels
        codes[wrong] = generator.integers(len(classes), size=int(wrong.sum()))
    model = MaPML(random_state=seed, **row.parameters)
    start = time.process_time()
    model.fit(split.X_train, codes)
    seconds = time.process_time() - start
    shares = model.predict_proba(split.X_test)
    predicted = shares.argmax(axis=1)
    plain = model.set_params(weights="uniform").predict(split.X_test)
    return {
        "error": 100 * float(np.mean(predicted != truth)),
        "three_nearest_error": 100 * float(np.mean(plain != truth)),
        "nll": negative_log_likelihood(shares, truth),
        "ece": calibration_error(shares, predicted, truth),
        "seconds": seconds,
        "start": model.history_[0]["start"],
    }


def runs_of(row: Row, n_seeds: int) -> list[tuple[Split, int]]:
    """What a row is a mean of: each seed on a published split, or each fold or seed's split."""
    found = splits(row.set)
    if row.set in REPEATED:
        return [(split, seed) for seed, split in enumerate(found)]
    (split,) = found
    return [(split, seed) for seed in range(n_seeds)]


def renewed(name: str, cell: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """The figures of a row by today's source, from those that are there as far as they are."""
    source = source_hash()
    current = cell.get("source") == source
    if given.check and cell:
        current = repeated(cell, ROWS[name])
        print(name, "repeats" if current else "differs", flush=True)
    known = cell if current and not given.fresh else {}
    return {"source": source, **complete(known, ROWS[name], given.seeds)}


def complete(cell: dict[str, Any], row: Row, n_seeds: int) -> dict[str, Any]:
    """The figures of a row; runs that are there already are kept."""
    n_done = len(cell.get("error", []))
    parts = [measure(split, row, seed) for split, seed in runs_of(row, n_seeds)[n_done:]]
    return {key: cell.get(key, []) + [part[key] for part in parts] for key in (*FIGURES, "start")}


def repeated(cell: dict[str, Any], row: Row) -> bool:
    """Whether the first run of a row still makes as many errors, with the same probabilities.

    Probabilities may be rounded in another way on another processor.
    """
    split, seed = runs_of(row, 1)[0]
    found = measure(split, row, seed)
    as_many = all(found[key] == cell[key][0] for key in ("error", "three_nearest_error"))
    return as_many and bool(np.isclose(found["nll"], cell["nll"][0], rtol=ROUNDING))


def report(cells: dict, rivals: dict, published: dict) -> str:
    """Errors in percent of all methods on all sets."""
    names = [name for name in RIVALS if name != "3-NN, standardised"]
    lines = []
    for name in (name for name in ROWS if name in cells):
        row, found = ROWS[name], cells[name]
        paper = published.get(name, "") if not row.parameters else ""
        by_rival = rivals.get(row.set, {}) if not row.wrong_labels else {}
        best = by_rival.get("3-NN", {}), by_rival.get("3-NN, standardised", {})
        errors = [figures["error"] for figures in best if figures]
        cited = [f"{min(errors):.2f}" if errors else ""]
        cited += [
            f"{by_rival[rival]['error']:.2f}" if rival in by_rival else "" for rival in names[1:]
        ]
        lines.append([name, mean_and_error(found["error"]), goal(row, found), paper, *cited])
    header = ["set", "MaPML", "goal", "as published", "3-NN, all rows", *names[1:]]
    return table(header, lines)


def mean_and_error(values: list[float]) -> str:
    """Mean ± standard error."""
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.2f} ± {spread:.2f}"


def goal(row: Row, found: dict) -> str:
    """The goal, and whether it was missed."""
    if row.goal is None:
        return ""
    return f"≤ {row.goal}" + ("" if np.mean(found["error"]) <= row.goal else ", missed")


def calibration(cells: dict, rivals: dict) -> str:
    """Negative log-likelihood and expected calibration error, beside logistic regression's."""
    lines = []
    for name in (name for name in ROWS if name in cells and not ROWS[name].wrong_labels):
        other = rivals.get(ROWS[name].set, {}).get("logistic regression", {})
        texts = [f"{np.mean(cells[name][key]):.3f}" for key in ("nll", "ece")]
        texts += [f"{other[key]:.3f}" if other else "" for key in ("nll", "ece")]
        starts = ", ".join(sorted(set(cells[name]["start"])))
        seconds = f"{np.mean(cells[name]['seconds']):.1f}"
        lines.append([name, texts[0], texts[2], texts[1], texts[3], starts, seconds])
    header = ["set", "nll", "of LR", "ECE, %", "of LR", "start", "fit, processor s"]
    return table(header, lines)


def source_hash() -> str:
    """Of the code that the figures depend on; words in docstrings and comments do not count."""
    folder = Path(latentmetric.__file__).parent
    digest = hashlib.sha256()
    for file in [
        *sorted((folder / "core").glob("*.py")),
        *(folder / "estimators" / name for name in ("mapml.py", "setup.py")),
    ]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [part for part in body if not _is_text(part)]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:16]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def stored(name: str) -> dict:
    """The results of a benchmark, or nothing."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def as_published() -> dict[str, str]:
    """Errors with the paper's settings, 3-NN over 10 % latent examples, by row."""
    cells = stored("quality_as_published").get("cells", {})
    rows = {row.set: name for name, row in ROWS.items() if not row.parameters}
    found = {}
    for name, seeds in cells.items():
        errors = [seeds[seed]["latent"] for seed in seeds if seed != "euclid"]
        found[rows[name]] = mean_and_error(errors)
    return found


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", default=";".join(ROWS), help="names, separated by semicolons")
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 on")
    parser.add_argument("--fresh", action="store_true", help="measure the rows again")
    parser.add_argument("--check", action="store_true", help="measure their first runs again")
    parser.add_argument("--report", action="store_true", help="only print the tables")
    given = parser.parse_args()
    given.rows = given.rows.split(";")
    unknown = sorted(set(given.rows) - set(ROWS))
    if unknown:
        parser.error(f"--rows must be among {'; '.join(ROWS)}, got {'; '.join(unknown)}")
    if given.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {given.seeds}")
    return given


def main() -> None:
    given = options()
    machine = {} if given.report else machine_facts(gemm_gflops())
    for name in [] if given.report else given.rows:
        cell = renewed(name, stored("quality").get("cells", {}).get(name, {}), given)
        print(name, {key: cell[key] for key in FIGURES}, flush=True)
        # Others may have written in the meantime; their rows stay.
        results = stored("quality") or {"cells": {}}
        results["machine"] = machine
        results["cells"][name] = cell
        write_json("quality", results)
    rivals, cells = stored("baselines").get("cells", {}), stored("quality").get("cells", {})
    print(report(cells, rivals, as_published()))
    print(calibration(cells, rivals))


if __name__ == "__main__":
    main()
