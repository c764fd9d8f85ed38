"""What rounds and passes of the refinement cost and gain, and why rows are left out.

    LATENTMETRIC_DATA=folder python benchmarks/refinement.py [--sets letter,banking77]

Test error in percent and seconds of fits with 0 to 10 rounds and 0 to 6 passes; the same with the
default rounds and passes, but without leaving each row out of its own latent example. Draws
docs/images/refinement.png. Finished cells are kept in benchmarks/results/refinement.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
from common import RESULTS, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark

from latentmetric import MaPML

SEEDS = (0,)
ROUNDS = (0, 1, 2, 5, 10)
PASSES = (0, 1, 3, 6)
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "refinement.png"


@contextmanager
def rows_kept_in() -> Iterator[None]:
    """Rows are part of their own latent example, as if they were new."""

    def ones(counts: np.ndarray, weights: object = 1) -> np.ndarray:
        return np.ones(np.shape(counts))

    with (
        patch("latentmetric.core.nearby.leave_one_out_factors", ones),
        patch("latentmetric.core.refinement.leave_one_out_factors", ones),
        patch("latentmetric.core.likelihood.leave_one_out_factors", ones),
    ):
        yield


def measure(name: str, **parameters: int) -> dict[str, float]:
    """Mean error and seconds over the seeds."""
    split = load_benchmark(name)
    errors, seconds = [], []
    for seed in SEEDS:
        model = MaPML(start="euclidean", keep="last", random_state=seed, **parameters)
        start = time.perf_counter()
        model.fit(split.X_train, split.y_train)
        seconds.append(time.perf_counter() - start)
        errors.append(100 * (1 - model.score(split.X_test, split.y_test)))
    return {"error": float(np.mean(errors)), "seconds": float(np.mean(seconds))}


def cells(name: str) -> Iterator[tuple[str, dict[str, int], bool]]:
    """The name of each cell, its parameters, and whether rows are left out."""
    for rounds in ROUNDS:
        for passes in PASSES:
            yield f"{rounds} rounds, {passes} passes", {"max_iter": rounds, "refine": passes}, True
    for passes in PASSES[1:]:
        yield f"5 rounds, {passes} passes, kept in", {"max_iter": 5, "refine": passes}, False


def draw(results: dict) -> None:
    """Error against seconds, one panel per set, one line per number of rounds."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    sets = results["cells"]
    figure, axes = plt.subplots(1, len(sets), figsize=(4 * len(sets), 3.4), squeeze=False)
    for axis, (name, found) in zip(axes[0], sets.items(), strict=True):
        for rounds in ROUNDS:
            line = [found[f"{rounds} rounds, {passes} passes"] for passes in PASSES]
            axis.plot(
                [point["seconds"] for point in line], [point["error"] for point in line], "o-",
                label="1 round" if rounds == 1 else f"{rounds} rounds",
            )  # fmt: skip
        axis.set(title=name, xlabel="seconds of the fit", xscale="log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
    axes[0, 0].set_ylabel("test error, %")
    *others, last = map(str, PASSES)
    passes = f"{', '.join(others)} and {last} passes after the rounds"
    figure.suptitle(f"dots along each line, from its left end: {passes}", fontsize="medium")
    axes[0, -1].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=150)


def report(results: dict) -> str:
    """All errors, one line per number of rounds."""
    lines = []
    for name, found in results["cells"].items():
        for rounds in ROUNDS:
            line = [found[f"{rounds} rounds, {passes} passes"] for passes in PASSES]
            lines.append([name, rounds, *[f"{point['error']:.2f}" for point in line]])
        kept_in = [found[f"5 rounds, {passes} passes, kept in"] for passes in PASSES[1:]]
        lines.append([name, "5, kept in", "", *[f"{point['error']:.2f}" for point in kept_in]])
    return table(["set", "rounds", *[f"{passes} passes" for passes in PASSES]], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="letter,banking77")
    options = parser.parse_args()
    path = RESULTS / "refinement.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results = results or {"machine": machine_facts(gemm_gflops()), "cells": {}}
    for name in options.sets.split(","):
        found = results["cells"].setdefault(name, {})
        for cell, parameters, left_out in cells(name):
            if cell in found:
                continue
            if left_out:
                found[cell] = measure(name, **parameters)
            else:
                with rows_kept_in():
                    found[cell] = measure(name, **parameters)
            print(name, cell, found[cell], flush=True)
            write_json("refinement", results)
    print(report(results))
    draw(results)


if __name__ == "__main__":
    main()
