"""The design's cost model with constants fitted to measurements, and what it predicts.

    python benchmarks/cost_model.py

Reads the results of ``imagenet_scale.py`` and prints a table for 10⁸ and 10⁹ rows on 10 and 100
machines like the one that was measured. This is a prediction, not a measurement: no cluster of that
size was available. Assumed: 512 features in float32, 10,000 classes, 64 latent examples each,
S = 100,000 steps a round, 10 rounds, a network of 1 GB/s at each machine.
"""

from __future__ import annotations

import json
from typing import Any

from common import RESULTS, machine_facts, no_options, table, write_json

from latentmetric.core.alternation import FEWEST_ANCHORS, STEPS_PER_ANCHOR

D, CLASSES, LATENTS, STEPS, ROUNDS = 512, 10_000, 64, 100_000, 10
NETWORK = 1e9
"""Bytes a second in and out of a machine."""
WORKER_OVERHEAD = 1.6
"""Assumed peak memory of a worker divided by that of its rows, including the sort by class."""


def constants() -> dict[str, float]:
    """Seconds per unit of work of each part, as measured on one machine."""
    found = json.loads((RESULTS / "imagenet_scale.json").read_text())
    n, m, rounds = found["rows"], found["latents"], len(found["passes"])
    parts, classes = found["parts_seconds"], 1_000
    anchors = max(FEWEST_ANCHORS, STEPS // STEPS_PER_ANCHOR)
    return {
        "latents": parts["latents"] / (rounds * n * m / classes * D),
        "mining": parts["mining"] / (rounds * anchors * m * D),
        "metric": parts["metric"] / ((rounds - 1) * STEPS * D**2),
        "preparing": parts["the rest"] / (n * D),
        "gflops": found["machine"]["gemm_float32_gflops"],
    }


def predicted(n: float, machines: int, unit: dict[str, float]) -> dict[str, Any]:
    m, data = CLASSES * LATENTS, n * D * 4
    anchors = max(FEWEST_ANCHORS, STEPS // STEPS_PER_ANCHOR)
    shuffled = data * (1 - 1 / machines)
    by_round = 2 * m * D * 4 + machines * D**2 * 4  # latent examples go there and back
    seconds = {
        "shuffle": shuffled / machines / NETWORK,
        "preparing": unit["preparing"] * n * D / machines,
        "latents": (ROUNDS + 1) * unit["latents"] * n * LATENTS * D / machines,
        "mining": (ROUNDS + 1) * unit["mining"] * anchors * m * D,
        "metric": ROUNDS * unit["metric"] * STEPS * D**2,
        "network": (ROUNDS + 1) * by_round / NETWORK,
    }
    return {
        "rows": n,
        "machines": machines,
        "worker_gigabytes": WORKER_OVERHEAD * data / machines / 1e9,
        "client_gigabytes": 6 * m * D * 4 / 1e9,
        "shuffled_gigabytes": shuffled / 1e9,
        "gigabytes_a_round": by_round / 1e9,
        "seconds": seconds,
        "minutes": sum(seconds.values()) / 60,
    }


def main() -> None:
    no_options(__doc__)
    unit = constants()
    cases = [predicted(n, machines, unit) for n in (1e8, 1e9) for machines in (10, 100)]
    rows = [
        [
            f"{case['rows']:.0e}", case["machines"], f"{case['worker_gigabytes']:.1f}",
            f"{case['client_gigabytes']:.1f}", f"{case['shuffled_gigabytes']:.0f}",
            f"{case['gigabytes_a_round']:.1f}", f"{case['minutes']:.0f}",
        ]
        for case in cases
    ]  # fmt: skip
    header = [
        "rows", "machines", "GB a worker", "GB at the client", "GB shuffled once", "GB a round",
        "minutes",
    ]  # fmt: skip
    print({name: f"{value:.2e}" for name, value in unit.items()})
    print(table(header, rows))
    results = {"machine": machine_facts(unit["gflops"]), "constants": unit, "predicted": cases}
    print(write_json("cost_model", results))


if __name__ == "__main__":
    main()
