"""Two shapes of data and models: a map of two dimensions, and few rows with many features.

    python benchmarks/shapes.py

The map is learned from scikit-learn's digits and compared with NCA's on the same five splits:
3-NN with all training rows in the plane, 3-NN and the kernel vote with the latent examples. Goal:
3-NN in the plane at least as good as NCA's. The wide data are 200 rows of 4,096 features. Goal: a
fit takes at most 20 times the SVD of the rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import best_seconds, gemm_gflops, machine_facts, no_options, table, write_json
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from latentmetric import MaPML

N_SPLITS = 5
WIDE = (200, 4096)


def in_the_plane(transformer: Any, train: tuple, test: tuple) -> float:
    """Percent right of 3-NN after a map to two dimensions."""
    points, labels = transformer.transform(train[0]), train[1]
    plain = KNeighborsClassifier(3).fit(points, labels)
    return 100 * plain.score(transformer.transform(test[0]), test[1])


def maps() -> dict[str, list[float]]:
    """Percent right on each split."""
    X, y = load_digits(return_X_y=True)
    right: dict[str, list[float]] = {}
    for seed in range(N_SPLITS):
        rows, queries, labels, truth = train_test_split(
            X, y, test_size=0.3, stratify=y, random_state=seed
        )
        train, test = (rows, labels), (queries, truth)
        nca = NeighborhoodComponentsAnalysis(2, random_state=seed).fit(rows, labels)
        model = MaPML(n_components=2, random_state=seed).fit(rows, labels)
        kernel = 100 * model.score(queries, truth)
        found = {
            "NCA, 3-NN": in_the_plane(nca, train, test),
            "MaPML, 3-NN": in_the_plane(model, train, test),
            "MaPML, kernel vote of latents": kernel,
            "MaPML, 3-NN of latents": 100 * model.set_params(weights="uniform").score(*test),
        }
        for name, value in found.items():
            right.setdefault(name, []).append(value)
    return right


def wide() -> dict[str, float]:
    """Seconds of an SVD and of fits, and their ratio."""
    generator = np.random.default_rng(0)
    y = np.arange(WIDE[0]) % 4
    X = generator.standard_normal(WIDE)
    X[:, :40] += 2 * generator.standard_normal((4, 40))[y]
    seconds = {"svd": best_seconds(lambda: np.linalg.svd(X, full_matrices=False))}
    for name, model in (("MaPML", MaPML(random_state=0)), ("as published", _published())):
        start = time.perf_counter()
        model.fit(X, y)
        seconds[name] = time.perf_counter() - start
    return seconds


def _published() -> MaPML:
    return MaPML.as_published(random_state=0)


def main() -> None:
    no_options(__doc__)
    right, seconds = maps(), wide()
    lines = [[name, f"{np.mean(values):.1f} % right"] for name, values in right.items()]
    lines += [[f"{name}, 200 × 4,096", f"{value:.2f} s"] for name, value in seconds.items()]
    lines += [["fit / SVD", f"{seconds['MaPML'] / seconds['svd']:.1f} (goal: ≤ 20)"]]
    print(table(["what", "measured"], lines))
    facts = machine_facts(gemm_gflops())
    print(write_json("shapes", {"machine": facts, "right": right, "seconds": seconds}))


if __name__ == "__main__":
    main()
