"""Finding wrong labels: AUROC of ``label_scores`` beside cleanlab's confident learning.

    LATENTMETRIC_DATA=folder python benchmarks/doubts.py

A share of the training labels is replaced by others, drawn at random. The score should be low where
a label is wrong; AUROC in percent, mean ± standard error over seeds. cleanlab (2.9) gets
probabilities of five-fold cross-validation, of logistic regression and of 15-NN, and its scores are
those of ``get_label_quality_scores``. Goal: the best of the three on two of three sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import gemm_gflops, machine_facts, no_options, table, write_json
from data import load_benchmark
from quality import mean_and_error
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric import MaPML

SETS = ("clinc150", "letter", "mnist")
SHARES = (0.05, 0.1, 0.3)
SEEDS = (0, 1, 2)
MOST_ROWS = 10_000
"""Cross-validated logistic regression on more takes too long."""


def with_wrong_labels(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Labels 0 … C − 1, a share of them replaced by others."""
    generator, n_classes = np.random.default_rng(seed), int(y.max()) + 1
    wrong = generator.random(len(y)) < share
    return np.where(wrong, (y + generator.integers(1, n_classes, len(y))) % n_classes, y)


def scores_of(X: np.ndarray, noisy: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """How likely each label is, by three methods."""
    from cleanlab.rank import get_label_quality_scores

    model = MaPML(label_noise=True, random_state=seed).fit(X, noisy)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
    nearest = KNeighborsClassifier(15)
    return {"MaPML, label_scores": model.label_scores(X, noisy)} | {
        name: get_label_quality_scores(
            noisy, cross_val_predict(peer, X, noisy, cv=5, method="predict_proba")
        )
        for name, peer in (
            ("cleanlab, logistic regression", logistic),
            ("cleanlab, 15-NN", nearest),
        )
    }


def main() -> None:
    no_options(__doc__)
    results: dict[str, Any] = {"machine": machine_facts(gemm_gflops()), "cells": {}}
    lines = []
    for name in SETS:
        split = load_benchmark(name)
        rows = np.random.default_rng(0).permutation(len(split.X_train))[:MOST_ROWS]
        X, y = split.X_train[rows], np.unique(split.y_train[rows], return_inverse=True)[1]
        for share in SHARES:
            found: dict[str, list[float]] = {}
            for seed in SEEDS:
                noisy = with_wrong_labels(y, share, seed)
                for method, scores in scores_of(X, noisy, seed).items():
                    area = 100 * roc_auc_score(noisy == y, scores)
                    found.setdefault(method, []).append(area)
            results["cells"][f"{name}, {share:.0%}"] = found
            write_json("doubts", results)
            lines.append([name, f"{share:.0%}", *map(mean_and_error, found.values())])
            print(*lines[-1], flush=True)
    print(table(["data", "wrong labels", *found], lines))


if __name__ == "__main__":
    main()
