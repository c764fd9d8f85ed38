"""Fit rows in a file that is larger than the memory the process may use.

    python benchmarks/out_of_core.py [--gigabytes 20] [--folder DIR]

Writes image-like rows of 512 features to a .npy (a chunk at a time), fits MaPML on the file and
predicts a part of it. DIR must have room for twice the file. Goal: peak memory of the fit under
3 GB for a file of 20 GB. Memory is the largest resident size of the process; the kernel's
cache of files does not count.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from common import PeakMemory, gemm_gflops, machine_facts, table, write_json
from image_like import make_image_like

from latentmetric import MaPML
from latentmetric.io import open_rows

N_FEATURES, N_CLASSES, LATENTS, ROUNDS = 512, 1_000, 64, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    tempfile.tempdir = str(options.folder)
    n_rows = int(options.gigabytes * 1e9 / (4 * N_FEATURES))
    path = options.folder / "latentmetric-out-of-core.npy"
    try:
        start = time.perf_counter()
        made = make_image_like(n_rows, N_FEATURES, N_CLASSES, 8, out=path)
        written = time.perf_counter() - start
        labels = made.y
        del made
        gflops = gemm_gflops()
        rows = open_rows(path)
        model = MaPML.as_published(
            LATENTS, max_iter=ROUNDS, n_steps=100_000, random_state=0, verbose=1
        )
        start = time.perf_counter()
        with PeakMemory() as memory:
            model.fit(rows, labels)
        fit = time.perf_counter() - start
        some = slice(0, 20_000)
        error = 100 * float(np.mean(model.predict(rows[some]) != labels[some]))
    finally:
        path.unlink(missing_ok=True)
    results = {
        "machine": machine_facts(gflops),
        "rows": n_rows,
        "file_gigabytes": rows.nbytes / 1e9,
        "write_seconds": written,
        "fit_seconds": fit,
        "rounds": ROUNDS,
        "seconds_by_round": [record["seconds"] for record in model.history_],
        "peak_gigabytes": memory.peak / 1e9,
        "before_gigabytes": memory.before / 1e9,
        "error_on_training_rows": error,
    }
    print(
        table(
            ["what", "measured", "goal"],
            [
                ["file, GB", f"{results['file_gigabytes']:.1f}", ""],
                [f"fit, {ROUNDS} rounds, s", f"{fit:.0f}", ""],
                ["peak memory, GB", f"{results['peak_gigabytes']:.2f}", "< 3"],
                ["  of which before the fit, GB", f"{results['before_gigabytes']:.2f}", ""],
            ],
        )
    )
    print(write_json("out_of_core", results))


if __name__ == "__main__":
    main()
