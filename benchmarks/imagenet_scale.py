"""Fit MaPML_5 on image-like rows of ImageNet's size: time by part, memory, errors, query costs.

    python benchmarks/imagenet_scale.py [--rows N] [--classes C] [--passes P] [--skip-originals]
                                        [--defaults]

Seconds of the fit are those of the processor, and "work" is these times the TFlop/s of matrix
products that run for some of them before and after the fit, so that machines can be compared, also
those that are shared with others. Parts are measured by the clock and scaled to add up. With
OPENBLAS_NUM_THREADS=1, no thread waits for another at the processor's cost.
Memory is taken from the system before, because a virtual machine may take longer for that than a
round takes.
Goals: work without refinement at most 14 TFlop (25 with the default parameters), refinement at
most as much again, peak memory at most 2 times the data, Alg. 1 at 40 % of GEMM speed or better,
MaPML_5 at least 1.0 point below Euclid, a query against latent examples at least 15 times cheaper
than against originals, prediction at 60 % of GEMM.

--passes limits the passes of Alg. 1 in a round; `passes.py` measures what more of them gain. The
default parameters have their own limit.

Alg. 1's operations are those of a k-means that compares all rows with all latent examples of
their class in every pass; the line below counts only the operations that were not skipped.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import (
    PeakMemory,
    counted_alg1,
    machine_facts,
    sustained_gflops,
    table,
    take_memory,
    write_json,
)
from image_like import IMAGENET, make_image_like

from latentmetric import Euclidean, MaPML

TEST_ROWS = 50_000
TAKEN_OVER_DATA = 2.5
ORIGINAL_QUERIES = 5_000
"""Queries against all originals: each costs 20 times one against latent examples."""


def percent_wrong(model, X, y) -> tuple[float, float]:
    """Error in percent, and microseconds per query."""
    start = time.perf_counter()
    wrong = 100 * float(np.mean(model.predict(X) != y))
    return wrong, 1e6 * (time.perf_counter() - start) / len(X)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=IMAGENET["n_samples"] - TEST_ROWS)
    parser.add_argument("--classes", type=int, default=IMAGENET["n_classes"])
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--skip-originals", action="store_true")
    parser.add_argument(
        "--defaults", action="store_true", help="with refinement, not only as published"
    )
    options = parser.parse_args()
    take_memory(TAKEN_OVER_DATA * 4 * options.rows * IMAGENET["n_features"])
    sizes = {"n_samples": options.rows + TEST_ROWS, "n_classes": options.classes}
    made = make_image_like(**IMAGENET | sizes)
    X, y = made.X[: options.rows], made.y[: options.rows]
    X_test, y_test = made.X[options.rows :], made.y[options.rows :]
    gflops = sustained_gflops()

    parameters = {"n_latents": 0.05, "n_steps": 100_000, "random_state": 0, "verbose": 1}
    if options.defaults:
        model = MaPML(**parameters)
    else:
        model = MaPML.as_published(**parameters, max_passes=options.passes)
    clock, start = time.perf_counter(), time.process_time()
    with PeakMemory() as memory, counted_alg1() as counts:
        model.fit(X, y)
    seconds, clock = time.process_time() - start, time.perf_counter() - clock
    gflops = (gflops + sustained_gflops()) / 2

    parts = {
        part: sum(record["seconds"].get(part, 0) for record in model.history_) * seconds / clock
        for part in ("start", "latents", "mining", "metric", "judging", "refinement")
    }
    parts["the rest"] = seconds - sum(parts.values())
    latent_error, latent_query = percent_wrong(model, X_test, y_test)
    m = len(model.latent_examples_)
    query_gflop = 2.0 * X.shape[1] * (m + X.shape[1]) / 1e9
    results = {
        "machine": machine_facts(gflops),
        "rows": options.rows,
        "latents": m,
        "fit_seconds": seconds,
        "work_tflop": (seconds - parts["refinement"]) * gflops / 1e3,
        "refinement_tflop": parts["refinement"] * gflops / 1e3,
        "parts_seconds": parts,
        "alg1_tflop": counts.done / 1e12,
        "alg1_percent_of_gemm": counts.done / 1e9 / parts["latents"] / gflops * 100,
        "alg1_plain_tflop": counts.plain / 1e12,
        "alg1_plain_percent_of_gemm": counts.plain / 1e9 / parts["latents"] / gflops * 100,
        "data_bytes": X.nbytes,
        "peak_over_data": (memory.peak - memory.before + X.nbytes) / X.nbytes,
        "passes": [record["passes"] for record in model.history_ if "passes" in record],
        "error": {"MaPML_5": latent_error},
        "query_microseconds": {"latents": latent_query},
        "predict_percent_of_gemm": query_gflop / (latent_query / 1e6) / gflops * 100,
    }
    if not options.skip_originals:
        few, few_y = X_test[:ORIGINAL_QUERIES], y_test[:ORIGINAL_QUERIES]
        error, micro = percent_wrong(model.set_references(X, y), few, few_y)
        results["error"]["MaPML_5-O"], results["query_microseconds"]["originals"] = error, micro
        error, _ = percent_wrong(Euclidean().fit(X, y), few, few_y)
        results["error"]["Euclid"] = error
    show(results, "imagenet_scale_defaults" if options.defaults else "imagenet_scale")


def show(results, name: str) -> None:
    errors, queries = results["error"], results["query_microseconds"]
    rows = [
        ["GEMM, GFlop/s", f"{results['machine']['gemm_float32_gflops']:.0f}", ""],
        ["fit, s of the processor", f"{results['fit_seconds']:.0f}", ""],
        *[[f"  of which {p}, s", f"{s:.1f}", ""] for p, s in results["parts_seconds"].items()],
        [
            "work without refinement, TFlop",
            f"{results['work_tflop']:.1f}",
            "≤ 25" if name.endswith("defaults") else "≤ 14",
        ],
        ["refinement, TFlop", f"{results['refinement_tflop']:.1f}", "at most the same"],
        ["Alg. 1, % of GEMM", f"{results['alg1_plain_percent_of_gemm']:.0f}", "≥ 40"],
        ["  without skipped operations, %", f"{results['alg1_percent_of_gemm']:.0f}", ""],
        ["peak memory / data", f"{results['peak_over_data']:.2f}", "≤ 2"],
        *[[f"error of {name}, %", f"{error:.2f}", ""] for name, error in errors.items()],
        ["query against latents, µs", f"{queries['latents']:.0f}", ""],
        ["predict, % of GEMM", f"{results['predict_percent_of_gemm']:.0f}", "≥ 60"],
    ]
    if "originals" in queries:
        ratio = queries["originals"] / queries["latents"]
        results["query_ratio"] = ratio
        rows += [
            ["query against originals, µs", f"{queries['originals']:.0f}", ""],
            ["originals / latents", f"{ratio:.1f}", "≥ 15"],
            ["Euclid − MaPML_5, points", f"{errors['Euclid'] - errors['MaPML_5']:.2f}", "≥ 1.0"],
        ]
    print(table(["what", "measured", "goal"], rows))
    print(write_json(name, results))


if __name__ == "__main__":
    main()
