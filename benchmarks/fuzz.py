"""Fits on hostile data and parameters: each must be sound or refused.

    OPENBLAS_NUM_THREADS=1 python benchmarks/fuzz.py [--cases 10000]

The cases and the checks are those of ``tests/hostile.py``: every estimator, dtypes, layouts,
magnitudes from 1e-300 to 1e300, spoiled columns and rows, classes of one row to 1,000 classes,
labels of all kinds, parameters in and out of range.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from common import gemm_gflops, machine_facts, table, write_json
from hypothesis import HealthCheck, Phase, given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from hostile import SMALL, cases, outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    n_cases = parser.parse_args().cases
    counts: Counter[tuple[str, str]] = Counter()

    @settings(
        max_examples=n_cases, deadline=None, derandomize=True, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases())
    def check(case) -> None:
        try:
            ended = outcome(case)
        except Exception as error:
            ended = "neither"
            print(f"{type(error).__name__}: {error}\n  {case!r}", flush=True)
        counts[type(case.model).__name__, ended] += 1
        if counts.total() % 500 == 0:
            print(f"{counts.total()} of {n_cases}", flush=True)

    check()
    kinds = ("fitted", "refused", "neither")
    by_estimator = {
        estimator.__name__: {kind: counts[estimator.__name__, kind] for kind in kinds}
        for estimator in SMALL
    }
    rows = [[name, *found.values()] for name, found in by_estimator.items()]
    print(table(["estimator", *kinds], rows))
    results = {"machine": machine_facts(gemm_gflops()), "cases": n_cases, "counts": by_estimator}
    print(write_json("fuzz", results))
    sys.exit(any(found["neither"] for found in by_estimator.values()))


if __name__ == "__main__":
    main()
