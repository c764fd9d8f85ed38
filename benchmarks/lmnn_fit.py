"""LMNN on all of MNIST, 60,000 × 784: does it finish, in how long, and in how much memory?

    LATENTMETRIC_DATA=folder python benchmarks/lmnn_fit.py [--components 164]

Goal: peak memory (the data included) under 3 times the data. The time is reported as a ratio to
that of the matrix products of one search of all rows among all rows, 2·n²·d operations.
"""

from __future__ import annotations

import argparse
import logging
import time

from common import PUBLISHED_LMNN, PeakMemory, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from sklearn.decomposition import PCA

from latentmetric import LMNN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--components", type=int, help="principal components kept; default: all")
    components = parser.parse_args().components
    logging.basicConfig(level=logging.INFO)
    gflops = gemm_gflops()
    split = load_benchmark("mnist")
    X_train, X_test = split.X_train, split.X_test
    if components:
        pca = PCA(components, random_state=0).fit(X_train)
        X_train, X_test = pca.transform(X_train), pca.transform(X_test)
    model = LMNN(verbose=1, **PUBLISHED_LMNN)
    wall, cpu = time.perf_counter(), time.process_time()
    with PeakMemory() as memory:
        model.fit(X_train, split.y_train)
    seconds, cpu = time.perf_counter() - wall, time.process_time() - cpu
    data = X_train.nbytes
    peak = memory.peak - memory.before + data
    one_search = 2 * len(X_train) ** 2 * X_train.shape[1] / gflops / 1e9
    objectives = [record["objective"] for record in model.history_]
    converged = objectives[-2] - objectives[-1] <= model.tol * objectives[-1]
    results = {
        "machine": machine_facts(gflops),
        "shape": list(X_train.shape),
        "fit_seconds": seconds,
        "fit_cpu_seconds": cpu,
        "fit_over_one_search": seconds / one_search,
        "reached_tolerance": converged,
        "iterations": model.n_iter_,
        "searches": len(model.history_),
        "impostor_pairs": [record["impostors"] for record in model.history_],
        "objectives": objectives,
        "data_megabytes": data / 1e6,
        "peak_over_data": peak / data,
        "error_percent": 100 * (1 - model.score(X_test, split.y_test)),
    }
    print(
        table(
            ["what", "measured", "goal"],
            [
                ["fit, s", f"{seconds:.0f}", ""],
                ["fit / one search as GEMM", f"{results['fit_over_one_search']:.0f}", ""],
                ["tolerance reached", "yes" if converged else "no", "yes"],
                ["iterations", str(model.n_iter_), ""],
                ["searches", str(len(model.history_)), ""],
                ["peak memory / data", f"{peak / data:.2f}", "< 3"],
                ["test error, %", f"{results['error_percent']:.2f}", ""],
            ],
        )
    )
    print(write_json(f"lmnn_fit{components or ''}", results))


if __name__ == "__main__":
    main()
