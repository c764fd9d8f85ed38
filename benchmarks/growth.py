"""How the time of a fit grows with rows, features and latent examples.

    python benchmarks/growth.py [--quick]

Image-like rows; one size is changed at a time. The exponent is the slope of log(seconds) over
log(size). Goal: at most 1.1 in the number of rows, at fixed classes and latent examples a class.
The series "rows in a file" has so many rows that their part of the cost dominates; they are fitted
from a file, out of core. Rounds make at most as many passes of k-means as by default: how many it
takes until nothing changes is a property of the rows, and it grows with them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from common import gemm_gflops, machine_facts, table, write_json
from image_like import make_image_like

from latentmetric import MaPML
from latentmetric.io import open_rows

BASE = {"rows": 160_000, "features": 256, "latents": 32, "classes": 500}
SERIES = {
    "rows": (80_000, 160_000, 320_000, 640_000, 1_280_000),
    "rows in a file": (500_000, 1_000_000, 2_000_000, 5_000_000),
    "features": (64, 128, 256, 512, 1024),
    "latents": (8, 16, 32, 64, 128),
}


def seconds_of(
    rows: int, features: int, latents: int, classes: int, folder: str | None = None
) -> dict[str, float]:
    """Seconds of a fit and of its parts; with a folder, the rows are in a file in it."""
    path = folder and Path(folder) / "rows.npy"
    made = make_image_like(rows, features, classes, 8, out=path)
    model = MaPML.as_published(
        latents, max_iter=3, max_passes=MaPML().max_passes, n_steps=20_000, random_state=0
    )
    X = open_rows(path) if path else made.X
    start = time.perf_counter()
    model.fit(X, made.y)
    parts = {
        part: sum(record["seconds"].get(part, 0) for record in model.history_)
        for part in ("latents", "mining", "metric")
    }
    return {"fit": time.perf_counter() - start, **parts}


def timed_fit(name: str, size: int) -> dict[str, float]:
    """Seconds of a fit with one of the sizes changed."""
    if name != "rows in a file":
        return seconds_of(**BASE | {name: size})
    with tempfile.TemporaryDirectory() as folder:
        return seconds_of(**BASE | {"rows": size}, folder=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first three sizes only")
    quick = parser.parse_args().quick
    gflops = gemm_gflops()
    results = {"machine": machine_facts(gflops), "base": BASE, "series": {}}
    lines = []
    seconds_of(**BASE | {"rows": 20_000})
    for name, sizes in SERIES.items():
        sizes = sizes[:3] if quick else sizes
        timed = [timed_fit(name, size) for size in sizes]
        slope = np.polyfit(np.log(sizes), np.log([t["fit"] for t in timed]), 1)[0]
        results["series"][name] = {"sizes": sizes, "seconds": timed, "exponent": float(slope)}
        times = ", ".join(
            f"{size:,}: {t['fit']:.1f} s" for size, t in zip(sizes, timed, strict=True)
        )
        lines.append([name, times, f"{slope:.2f}", "≤ 1.1" if name.startswith("rows") else ""])
        print(f"{name}: {times}; exponent {slope:.2f}", flush=True)
    print(table(["size", "fit", "exponent", "goal"], lines))
    print(write_json("growth_quick" if quick else "growth", results))


if __name__ == "__main__":
    main()
