"""Peak memory of fit, predict, evaluate and report, across rows and latent examples.

    python benchmarks/memory.py

Each measurement runs in its own process: the growth of its resident size beyond the given rows. The
table also has the design's formula: O(m·d) for the latent examples and their neighbours, one
scatter per class, O(d²) for the metric, O(n) numbers for the rows, and blocks; for the report also
two copies of the rows. The last column is the size of an n×m array, which nothing may come near.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from common import PeakMemory, gemm_gflops, machine_facts, no_options, table, write_json
from image_like import make_image_like

from latentmetric import MaPML
from latentmetric.evaluation import retrieval_scores
from latentmetric.viz import write_report

N_FEATURES, N_CLASSES = 64, 50
SIZES = [(100_000, 100), (200_000, 100), (400_000, 100), (200_000, 200), (200_000, 400)]
"""Rows, and latent examples per class."""
REPORT_COPIES = 2
"""Of the rows: as they are shown, and under the metric."""
BLOCKS = 200e6
"""Bytes of all blocks of two threads, and what Python and its libraries take during the work."""


def formula(n_rows: int, latents: int) -> float:
    """The design's bytes beyond the rows, in float32, with eight 8-byte numbers per row."""
    m = latents * N_CLASSES
    per_latent = 10 * N_FEATURES * 4 + 15 * 40
    return n_rows * 8 * 8 + m * per_latent + (N_CLASSES + 10) * N_FEATURES**2 * 4 + BLOCKS


def report_formula(n_rows: int, latents: int) -> float:
    return formula(n_rows, latents) + REPORT_COPIES * n_rows * N_FEATURES * 4


def fit(made: Any, latents: int) -> MaPML:
    return MaPML.as_published(latents, max_iter=2, n_steps=5_000, random_state=0).fit(
        made.X, made.y
    )


def jobs(made: Any, latents: int, folder: Path) -> dict[str, Callable[[], Any]]:
    """The jobs of a fitted model, which is fitted beforehand on fewer rows."""
    model = fit(make_image_like(20_000, N_FEATURES, N_CLASSES), latents)
    return {
        "predict": lambda: model.predict(made.X),
        "evaluate": lambda: retrieval_scores(made.X[:50_000], made.y[:50_000]),
        "report": lambda: write_report(model, made.X, made.y, folder / "report.html"),
    }


def measured(job: str, n_rows: int, latents: int) -> float:
    made = make_image_like(n_rows, N_FEATURES, N_CLASSES)
    with TemporaryDirectory() as folder:
        here = Path(folder)
        # An earlier fit would leave memory that the measured one could reuse.
        work = partial(fit, made, latents) if job == "fit" else jobs(made, latents, here)[job]
        with PeakMemory() as memory:
            work()
    return float(memory.peak - memory.before)


def main() -> None:
    no_options(__doc__)
    context = get_context("spawn")
    found = []
    for n_rows, latents in SIZES:
        line: dict[str, Any] = {"rows": n_rows, "latents": latents * N_CLASSES}
        for job in ("fit", "predict", "evaluate", "report"):
            # A process that is ended, as by a system without memory, raises here.
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                line[job] = pool.submit(measured, job, n_rows, latents).result()
        line["formula"] = formula(n_rows, latents)
        line["report_formula"] = report_formula(n_rows, latents)
        line["n_times_m"] = 4.0 * n_rows * latents * N_CLASSES
        found.append(line)
        print(line, flush=True)
    columns = ["fit", "predict", "evaluate", "formula", "report", "report_formula", "n_times_m"]
    print(
        table(
            ["rows", "latents", *[f"{name.replace('_', ' ')}, MB" for name in columns]],
            [
                [f"{line['rows']:,}", f"{line['latents']:,}"]
                + [f"{line[name] / 1e6:,.0f}" for name in columns]
                for line in found
            ],
        )
    )
    within = all(
        max(line["fit"], line["predict"], line["evaluate"]) <= line["formula"]
        and line["report"] <= line["report_formula"]
        for line in found
    )
    print(f"all within the formula: {within}")
    results = {"machine": machine_facts(gemm_gflops()), "features": N_FEATURES, "lines": found}
    print(write_json("memory", results | {"within": within, "numpy": np.__version__}))


if __name__ == "__main__":
    main()
