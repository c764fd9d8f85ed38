"""Memory and time of the retrieval scores of 450,000 embeddings.

    python benchmarks/retrieval_memory.py [--rows 450000] [--features 64] [--queries N] [--large]

Rows search among themselves: 1,000 classes of 450 rows, or, with --large, one class of 100,000
rows beside 1,000 of 350. With --queries, only that many random rows search among all rows: the
time is proportional to their number, the memory is not.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import PeakMemory, gemm_gflops, machine_facts, write_json

from latentmetric.evaluation import retrieval_scores

N_CLASSES = 1000
N_LARGE = 100_000
LIMIT_GB = 2.0


def embeddings(n_rows: int, n_features: int, large: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows around random centres, in random order."""
    generator = np.random.default_rng(0)
    y = np.arange(n_rows) % N_CLASSES
    if large:
        y[:N_LARGE] = N_CLASSES
    generator.shuffle(y)
    centres = generator.standard_normal((N_CLASSES + 1, n_features), dtype=np.float32)
    X = generator.standard_normal((n_rows, n_features), dtype=np.float32)
    for start in range(0, n_rows, 10_000):
        X[start : start + 10_000] += 0.6 * centres[y[start : start + 10_000]]
    return X, y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=450_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    machine = machine_facts(gemm_gflops(size=2048))
    X, y = embeddings(options.rows, options.features, options.large)
    n_queries = options.queries or len(X)
    start = time.perf_counter()
    with PeakMemory() as memory:
        scores = retrieval_scores(
            X[:n_queries], y[:n_queries], X, y, k=(1, 10), queries_in_references=True, n_jobs=1
        )
    results = {
        "machine": machine,
        "rows": len(X),
        "features": X.shape[1],
        "queries": n_queries,
        "largest class": int(np.bincount(y).max()),
        "seconds": time.perf_counter() - start,
        "peak resident GB": memory.peak / 1e9,
        "of it before the search GB": memory.before / 1e9,
        "limit GB": LIMIT_GB,
        "scores": scores,
    }
    suffix = "_large_class" if options.large else ""
    write_json(f"retrieval_memory{suffix}", results)
    print(results)


if __name__ == "__main__":
    main()
