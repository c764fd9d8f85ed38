"""Parts of a round, and a pass of the refinement, compared with one large GEMM of the same work.

    [LATENTMETRIC_DATA=folder] python benchmarks/kernels.py

Size of MNIST: 60,000 × 784 rows, 10 classes, 6,000 latent examples, 10,000 steps. Without the
data folder the rows are random with the same sizes. Work counts the operations that the part's
matrix products really did; time for argmin, sorting and Python counts as loss.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

import numpy as np
from common import counted_alg1, gemm_gflops, machine_facts, no_options, table, write_json
from data import load_benchmark

from latentmetric.core import metric
from latentmetric.core.alternation import Settings, first_state
from latentmetric.core.distances import References
from latentmetric.core.metric import Metric, learn_metric
from latentmetric.core.nearby import LISTED, LISTING_AXES
from latentmetric.core.parallel import thread_count
from latentmetric.core.population import LocalPopulation
from latentmetric.core.psd import project_psd
from latentmetric.core.refinement import Moments, Plan, refine
from latentmetric.core.starts import Start
from latentmetric.core.triplets import mine
from latentmetric.core.tuning import REFINEMENT_SHARE
from latentmetric.core.votes import temperature_from_references

SETTINGS = Settings(
    n_steps=10_000,
    metric_reg=1.7,
    latent_reg=0.0,
    max_norm=np.inf,
    target_neighbors=3,
    impostors=5,
    n_components=None,
    max_passes=100,
    n_threads=thread_count(None),
)
GOALS = {"latents": "≥ 60", "mining": "≥ 30", "metric": "≥ 25", "refinement": ""}


def rows_and_labels() -> tuple[str, np.ndarray, np.ndarray]:
    if os.environ.get("LATENTMETRIC_DATA"):
        split = load_benchmark("mnist")
        return "MNIST", split.X_train, split.y_train.astype(np.intp)
    generator = np.random.default_rng(0)
    y = np.arange(60_000) % 10
    centres = generator.standard_normal((2_000, 784), dtype=np.float32)
    X = centres[y + 10 * generator.integers(0, 200, len(y))]
    return "random", X + generator.standard_normal(X.shape, dtype=np.float32), y


@contextmanager
def counted_updates():
    """Count the triplets in the rank updates of Alg. 2, which skips those without weight."""
    counts, original = [], metric._add

    def counting(triangle, share, weights, vectors):
        counts.append(int(np.count_nonzero(weights > 0)))
        original(triangle, share, weights, vectors)

    metric._add = counting
    try:
        yield counts
    finally:
        metric._add = original


def sgd_operations(n_steps: int, n_features: int, block: int, n_updates: int) -> int:
    """Two products with the metric per step, two rank updates per triplet, and inner products.

    A product of a matrix with its own transpose, or with a triangle, takes half the operations of
    a general one.
    """
    with_learned = 2 * n_features**2
    inner = (1 + 1 + 2) * block * n_features
    return n_steps * (with_learned + inner) + n_updates * 2 * n_features**2


def refinement_operations(sizes: np.ndarray, class_starts: np.ndarray, factor, active) -> float:
    """To find the latent examples near all rows, and two products of active rows with the factor.

    Rows are mapped, compared with those of their class, and with those listed for the nearest one;
    for the lists, latent examples are compared along some axes.
    """
    rank, n_features = factor.shape
    of_classes = np.diff(class_starts)
    mapped = float(sizes.sum()) * n_features * rank
    compared = (float(sizes @ of_classes) + float(sizes.sum()) * LISTED) * rank
    listed = float(of_classes.sum()) ** 2 * min(LISTING_AXES, rank)
    return 2 * (mapped + compared + listed + 2 * active * n_features * rank)


def measure_refinement(rows, state, components, moved, measure, generator) -> None:
    points = moved.latents @ components.T
    temperature = temperature_from_references(References.of(points), REFINEMENT_SHARE)
    n_rows = int(rows.sizes.sum())
    moments = Moments.zero(components, points, n_rows)
    start = time.perf_counter()
    refined = refine(
        rows, state.start, components, moved.latents, state.class_starts, moved.counts,
        temperature, moments, 0, Plan(3, 0.0, 0.0, SETTINGS.n_threads), generator,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    active = refined.active_share * n_rows
    measure(
        "refinement",
        refinement_operations(rows.sizes, state.class_starts, components, active),
        seconds,
    )


def main() -> None:
    no_options(__doc__)
    name, X, y = rows_and_labels()
    gflops = gemm_gflops()
    results = {"machine": machine_facts(gflops), "data": name, "parts": {}}

    def measure(part: str, operations: float, seconds: float) -> None:
        speed = operations / seconds / 1e9
        results["parts"][part] = {
            "seconds": seconds,
            "gflop": operations / 1e9,
            "gemm_seconds": operations / gflops / 1e9,
            "percent_of_gemm": 100 * speed / gflops,
        }

    rows = LocalPopulation.of(X, y)
    generator = np.random.default_rng(0)
    counts = np.rint(0.1 * rows.sizes).astype(int)
    euclid = Start.euclidean(rows.n_features, rows.dtype)
    state = first_state(rows, counts, "random", SETTINGS, euclid, generator)

    points, sizes = state.latents @ state.components.T, np.diff(state.class_starts)
    margins = np.repeat(1 + state.spreads, sizes).astype(points.dtype)
    anchors = state.candidates.anchors
    start = time.perf_counter()
    candidates = mine(points, state.class_starts, margins, 3, 5, SETTINGS.n_threads, anchors)
    operations = 2 * X.shape[1] * len(anchors) * float(len(points) + sizes.mean())
    measure("mining", operations, time.perf_counter() - start)

    active = np.flatnonzero(candidates.hinges > 0)
    triplets, gaps = candidates.take(active), candidates.gaps(points).flat[active]
    drawn = generator.integers(len(active), size=SETTINGS.n_steps)
    with counted_updates() as counts:
        start = time.perf_counter()
        averaged = learn_metric(
            state.latents, state.components, triplets, gaps, drawn, SETTINGS.metric_reg, np.inf
        )
        seconds = time.perf_counter() - start
    operations = sgd_operations(SETTINGS.n_steps, X.shape[1], metric.STEPS_PER_BLOCK, sum(counts))
    measure("metric", operations, seconds)

    start = time.perf_counter()
    values, directions = project_psd(averaged)
    results["projection_seconds"] = time.perf_counter() - start

    components = np.sqrt(values)[:, None] * directions
    with counted_alg1() as counts:
        start = time.perf_counter()
        moved = rows.move_latents(
            state.latents, state.class_starts, Metric(components), SETTINGS.latent_reg,
            SETTINGS.max_passes, SETTINGS.n_threads,
        )  # fmt: skip
        seconds = time.perf_counter() - start
    measure("latents", float(counts.done), seconds)
    passes = results["passes"] = moved.passes
    measure_refinement(rows, state, components, moved, measure, generator)

    print(f"{name}: {X.shape[0]:,} × {X.shape[1]}, {len(state.latents):,} latent examples")
    print(f"GEMM {gflops:.0f} GFlop/s; {passes} passes of k-means; ", end="")
    print(f"projection {results['projection_seconds']:.2f} s")
    print(
        table(
            ["part", "seconds", "as one GEMM", "% of GEMM", "goal"],
            [
                [
                    part,
                    f"{found['seconds']:.2f}",
                    f"{found['gemm_seconds']:.2f}",
                    f"{found['percent_of_gemm']:.0f}",
                    GOALS[part],
                ]
                for part, found in results["parts"].items()
            ],
        )
    )
    print(write_json("kernels", results))


if __name__ == "__main__":
    main()
