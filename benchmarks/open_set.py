"""How well a score separates CLINC150's out-of-scope rows from rows of its 150 classes.

    LATENTMETRIC_DATA=folder python benchmarks/open_set.py

AUROC in percent on validation and on test rows. The score of ``score_samples``, minus the distance
to the nearest reference, is the simplest of those that did well on the validation rows. No
out-of-scope row is used in a fit. Logistic regression uses the C with the best accuracy on the
in-scope validation rows.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from common import gemm_gflops, machine_facts, no_options, table, write_json
from data import Split, load_benchmark
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from latentmetric import Euclidean, MaPML

SEEDS = range(5)
STRENGTHS = (1, 10, 100)
PARTS = ("val", "test")


def parts() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows of each part, in-scope rows first, and the labels of the in-scope rows."""
    path = Path(os.environ["LATENTMETRIC_DATA"]) / "clinc150_embeddings.npz"
    with np.load(path) as arrays:
        return {
            part: (
                np.concatenate((arrays[f"x_{part}"], arrays[f"x_oos_{part}"])).astype(np.float32),
                arrays[f"y_{part}"],
            )
            for part in PARTS
        }


def areas(scores: dict[str, np.ndarray], n_known: int) -> dict[str, float]:
    """AUROC of each score, in percent."""
    return {
        name: 100 * roc_auc_score(np.arange(len(values)) < n_known, values)
        for name, values in scores.items()
    }


def neighbour_scores(model, references: np.ndarray, rows: np.ndarray) -> dict[str, np.ndarray]:
    distances, found = model.kneighbors(rows, 3)
    spacing = model.kneighbors(references, 2)[0][:, 1]
    shares = model.set_params(weights="kernel").predict_proba(rows).max(axis=1)
    return {
        "score_samples (nearest reference)": model.score_samples(rows),
        "mean of 3 nearest": -distances.mean(axis=1),
        "nearest, in units of that reference's spacing": -distances[:, 0] / spacing[found[:, 0]],
        "largest share of the kernel vote": shares,
    }


def logistic_scores(split: Split, tests: dict) -> dict[str, dict[str, float]]:
    rows, labels = tests["val"]
    fits = [
        LogisticRegression(C=strength, max_iter=1000).fit(split.X_train, split.y_train)
        for strength in STRENGTHS
    ]
    best = max(fits, key=lambda fit: fit.score(rows[: len(labels)], labels))
    found = {}
    for part, (rows, labels) in tests.items():
        scores = {
            "largest probability": best.predict_proba(rows).max(axis=1),
            "largest logit": best.decision_function(rows).max(axis=1),
        }
        found[part] = areas(scores, len(labels))
    return found


def neighbour_areas(model, references, tests: dict) -> dict[str, dict[str, float]]:
    return {
        part: areas(neighbour_scores(model, references, rows), len(labels))
        for part, (rows, labels) in tests.items()
    }


def measure(split: Split, tests: dict) -> dict[str, list[dict]]:
    """For each model, the AUROCs of each seed."""
    results = {
        "Euclid": [
            neighbour_areas(Euclidean().fit(split.X_train, split.y_train), split.X_train, tests)
        ],
        "logistic regression": [logistic_scores(split, tests)],
        "MaPML, latent": [],
        "MaPML, original": [],
    }
    for seed in SEEDS:
        model = MaPML.as_published(random_state=seed).fit(split.X_train, split.y_train)
        results["MaPML, latent"].append(neighbour_areas(model, model.latent_examples_, tests))
        model.set_references(split.X_train, split.y_train)
        results["MaPML, original"].append(neighbour_areas(model, split.X_train, tests))
    return results


def report(results: dict[str, list[dict]]) -> str:
    rows = []
    for model, seeds in results.items():
        for score in seeds[0]["test"]:
            row = [model, score]
            for part in PARTS:
                values = [seed[part][score] for seed in seeds]
                spread = f" ± {np.std(values):.2f}" if len(values) > 1 else ""
                row.append(f"{np.mean(values):.2f}{spread}")
            rows.append(row)
    return table(["model", "score", "validation", "test"], rows)


def main() -> None:
    no_options(__doc__)
    results = measure(load_benchmark("clinc150"), parts())
    path = write_json("open_set", {"machine": machine_facts(gemm_gflops()), "auroc": results})
    path.with_suffix(".md").write_text(report(results) + "\n")
    print(report(results))


if __name__ == "__main__":
    main()
