"""Time and size of the report on MNIST, for a model with 6,000 latent examples.

    LATENTMETRIC_DATA=folder python benchmarks/report.py [--keep FOLDER]

Two pages: one on the 60,000 training rows alone, one on the 10,000 test rows with the training rows
as references. Goals: at most 60 s of the processor and at most 8 MB each.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from common import PeakMemory, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark

from latentmetric import MaPML
from latentmetric.viz import write_report


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", type=Path, help="folder to leave the pages in")
    keep = parser.parse_args().keep
    gflops = gemm_gflops()
    split = load_benchmark("mnist")
    model = MaPML.as_published(max_iter=2, random_state=0).fit(split.X_train, split.y_train)
    training = {"X_train": split.X_train, "y_train": split.y_train}
    cases = {
        "training rows alone": (split.X_train, split.y_train, {}),
        "test rows beside them": (split.X_test, split.y_test, training),
    }
    measured = {}
    with TemporaryDirectory() as folder:
        for name, (X, y, rest) in cases.items():
            path = (keep or Path(folder)) / f"mnist {name}.html"
            start, busy = time.perf_counter(), time.process_time()
            with PeakMemory() as memory:
                write_report(model, X, y, path, image_shape=(28, 28), title="MNIST", **rest)
            measured[name] = {
                "seconds": time.perf_counter() - start,
                "processor_seconds": time.process_time() - busy,
                "megabytes": path.stat().st_size / 1e6,
                "peak_over_training_rows": (memory.peak - memory.before) / split.X_train.nbytes,
            }
    print(
        table(
            [
                "page on MNIST's",
                "seconds",
                "processor seconds (goal: 60)",
                "MB (goal: 8)",
                "memory / training rows",
            ],
            [
                [name, *(f"{value:.2f}" for value in figures.values())]
                for name, figures in measured.items()
            ],
        )
    )
    print(write_json("report", {"machine": machine_facts(gflops), "pages": measured}))


if __name__ == "__main__":
    main()
