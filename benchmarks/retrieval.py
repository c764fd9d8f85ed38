"""Zero-shot retrieval: learn on half of the classes, search among rows of the other half.

    LATENTMETRIC_DATA=folder python benchmarks/retrieval.py [--sets clinc150] [--fresh]

All rows of the first half of the classes are given to ``fit``; each row of the other half searches
the rest of them. "default" uses default parameters. "chosen" uses the candidate with the best
MAP@R in a validation that learns on three quarters of the first half of the classes and retrieves
the last quarter; not learning at all is one of the candidates, and the reported half takes no part
in the choice. Rows of unit norm are not normalised again. LMNN sees at most 164 principal
components of the first half and runs for at most 100 iterations. Of CIFAR-100's 30,000 rows every
third is searched. Finished cells are kept; --fresh starts over.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from common import PUBLISHED_LMNN, RESULTS, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from latentmetric import LMNN, MaPML
from latentmetric.evaluation import retrieval_scores

SETS = ("banking77", "clinc150", "cifar100")
SEEDS = (0, 1, 2)
COMPONENTS = 164
LMNN_ITERATIONS = 100
MOST_SEARCHED = 12_000
"""If there are more rows, every second, third, … is searched."""
SHOWN = ("recall@1", "map@r", "r_precision", "mrr")


def plain() -> FunctionTransformer:
    return FunctionTransformer()


def reduced(*steps):
    return make_pipeline(*steps[:-1], PCA(COMPONENTS, random_state=0), steps[-1])


FIXED: dict[str, Callable] = {
    "Euclid": lambda seed: plain(),
    "cosine": lambda seed: Normalizer(),
    "Euclid, 164 components": lambda seed: reduced(plain()),
    "LMNN, as published": lambda seed: reduced(LMNN(max_iter=LMNN_ITERATIONS, **PUBLISHED_LMNN)),
    "MaPML, as published": lambda seed: MaPML.as_published(random_state=seed),
}
CANDIDATES: dict[str, dict[str, Callable]] = {
    "MaPML, chosen": {
        "0 rounds": lambda seed: MaPML.as_published(max_iter=0, random_state=seed),
        "1 round": lambda seed: MaPML.as_published(max_iter=1, random_state=seed),
        "3 rounds": lambda seed: MaPML.as_published(max_iter=3, random_state=seed),
        "strong metric_reg": lambda seed: MaPML.as_published(metric_reg=17.0, random_state=seed),
        "normalised": lambda seed: make_pipeline(
            Normalizer(), MaPML.as_published(random_state=seed)
        ),
        "normalised, 3 rounds": lambda seed: make_pipeline(
            Normalizer(), MaPML.as_published(max_iter=3, random_state=seed)
        ),
        "normalised, strong metric_reg": lambda seed: make_pipeline(
            Normalizer(), MaPML.as_published(metric_reg=17.0, random_state=seed)
        ),
    },
    "LMNN, chosen": {
        "0 iterations": lambda seed: reduced(LMNN(max_iter=0, **PUBLISHED_LMNN)),
        "5 iterations": lambda seed: reduced(LMNN(max_iter=5, **PUBLISHED_LMNN)),
        "20 iterations": lambda seed: reduced(LMNN(max_iter=20, **PUBLISHED_LMNN)),
        "normalised, 20 iterations": lambda seed: reduced(
            Normalizer(), LMNN(max_iter=20, **PUBLISHED_LMNN)
        ),
    },
}
DEFAULT_OF = {"LMNN, chosen": "LMNN, as published", "MaPML, chosen": "MaPML, as published"}
RANDOM_METHODS = ("MaPML",)
"""Random methods, which are run with several seeds."""


def halves(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All rows, their labels, and the classes in order."""
    split = load_benchmark(name)
    X = np.concatenate((split.X_train, split.X_test))
    y = np.concatenate((split.y_train, split.y_test))
    return X, y, np.unique(y)


def scores_of(method, X, y, learned, searched) -> dict[str, float]:
    """The scores on some classes of a method that learned on others."""
    start = time.perf_counter()
    learn, search = np.isin(y, learned), np.flatnonzero(np.isin(y, searched))
    search = search[:: -(-len(search) // MOST_SEARCHED)]
    method.fit(X[learn], y[learn])
    seconds = time.perf_counter() - start
    scores = retrieval_scores(method.transform(X[search]), y[search], k=(1, 10))
    return {**scores, "fit seconds": seconds}


def chosen(name: str, X, y, seen) -> tuple[str, dict[str, float]]:
    """The candidate with the best MAP@R on held-out classes among those seen."""
    candidates = {"default": FIXED[DEFAULT_OF[name]], **CANDIDATES[name]}
    normal = np.allclose(np.linalg.norm(X, axis=1), 1, atol=1e-2)
    cut = 3 * len(seen) // 4
    found = {
        label: scores_of(make(0), X, y, seen[:cut], seen[cut:])["map@r"]
        for label, make in candidates.items()
        if not (normal and label.startswith("normalised"))
    }
    return max(found, key=found.get), found


def cells_of(name: str, cells: dict, save: Callable[[], None]) -> None:
    X, y, classes = halves(name)
    seen, unseen = np.array_split(classes, 2)
    for method in [*FIXED, *CANDIDATES]:
        cell = cells.setdefault(method, {"seeds": {}})
        make = FIXED.get(method)
        if method in CANDIDATES:
            if "chosen" not in cell:
                cell["chosen"], cell["validation map@r"] = chosen(method, X, y, seen)
                save()
            label = cell["chosen"]
            make = FIXED[DEFAULT_OF[method]] if label == "default" else CANDIDATES[method][label]
        for seed in SEEDS if method.startswith(RANDOM_METHODS) else SEEDS[:1]:
            if str(seed) not in cell["seeds"]:
                cell["seeds"][str(seed)] = scores_of(make(seed), X, y, seen, unseen)
                print(name, method, seed, cell, flush=True)
                save()


def report(results: dict) -> str:
    rows = []
    for name, cells in results["cells"].items():
        for method in [*FIXED, *CANDIDATES]:
            cell = cells.get(method, {"seeds": {}})
            if not cell["seeds"]:
                continue
            row = [name, method + (f": {cell['chosen']}" if "chosen" in cell else "")]
            for score in SHOWN:
                values = [100 * seed[score] for seed in cell["seeds"].values()]
                spread = f" ± {np.std(values):.2f}" if len(values) > 1 else ""
                row.append(f"{np.mean(values):.2f}{spread}")
            rows.append(row)
    return table(["set", "method", *SHOWN], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "retrieval.json"
    results = {} if options.fresh or not path.exists() else json.loads(path.read_text())
    results.setdefault("machine", machine_facts(gemm_gflops()))
    for name in options.sets.split(","):
        cells = results.setdefault("cells", {}).setdefault(name, {})
        cells_of(name, cells, lambda: write_json("retrieval", results))
    (RESULTS / "retrieval.md").write_text(report(results) + "\n")
    print(report(results))


if __name__ == "__main__":
    main()
