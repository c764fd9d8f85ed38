"""Kill fits at random moments, also while a checkpoint is written, and resume them until done.

    [LATENTMETRIC_DATA=folder] OPENBLAS_NUM_THREADS=1 python benchmarks/kill_resume.py [--fits 50]

Every fit runs in its own process with a checkpoint after each round. SIGKILL comes after a
random time, or the moment a checkpoint's temporary file appears. After every kill the checkpoint
must be readable, and the model of the fit that finally finishes must be bit for bit that of a fit
that was never interrupted. Data: letter (20,000 rows) where the folder is given, else the digits.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
from common import gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from sklearn.datasets import load_digits

from latentmetric import MaPML, save
from latentmetric.persistence.checkpoints import FILE_NAME
from latentmetric.persistence.model_file import ModelFileError, read_model_file


def rows_and_labels() -> tuple[str, np.ndarray, np.ndarray]:
    if os.environ.get("LATENTMETRIC_DATA"):
        split = load_benchmark("letter")
        return "letter", split.X_train, split.y_train
    X, y = load_digits(return_X_y=True)
    return "digits", X.astype(np.float32), y


def start(X, y, seed: int, folder: Path, out: Path) -> int:
    """Fit in a child process, from the checkpoint if there is one; return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        model = MaPML(0.1, max_iter=6, n_steps=2_000, early_stopping=bool(seed % 2),
                      random_state=seed, n_jobs=1)  # fmt: skip
        save(model.fit(X, y, checkpoint=folder, resume=True), out)
    finally:
        os._exit(0 if out.exists() else 1)


def killed(child: int, folder: Path, generator: np.random.Generator, seconds: float) -> str:
    """Kill the child, or find that it has ended: "done", "any time" or "writing"."""
    in_writing = bool(generator.integers(2))
    skip = int(generator.integers(4))
    """Checkpoints to let pass before the kill."""
    deadline = time.perf_counter() + float(generator.random()) * seconds
    seen: set[str] = set()
    while True:
        if os.waitpid(child, os.WNOHANG)[0]:
            return "done"
        if in_writing:
            seen |= {path.name for path in folder.glob(".*.tmp")} if folder.exists() else set()
            if len(seen) > skip:
                break
        elif time.perf_counter() > deadline:
            break
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "writing" if in_writing else "any time"


def arrays_of(path: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in read_model_file(path)[1].items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=50)
    n_fits = parser.parse_args().fits
    name, X, y = rows_and_labels()
    generator = np.random.default_rng(0)
    kills = {"any time": 0, "writing": 0}
    identical = unreadable = left_over = 0
    with tempfile.TemporaryDirectory() as place:
        for seed in range(n_fits):
            whole, out, folder = (Path(place) / f"{part}{seed}" for part in ("whole", "out", "to"))
            begun = time.perf_counter()
            os.waitpid(start(X, y, seed, Path(place) / f"alone{seed}", whole), 0)
            seconds = time.perf_counter() - begun
            while True:
                ended = killed(start(X, y, seed, folder, out), folder, generator, seconds)
                if ended == "done":
                    break
                kills[ended] += 1
                try:
                    if (folder / FILE_NAME).exists():
                        read_model_file(folder / FILE_NAME)
                except ModelFileError:
                    unreadable += 1
            identical += arrays_of(whole) == arrays_of(out)
            left_over += len(list(folder.glob(".*.tmp")))
            print(f"{seed + 1}/{n_fits}: {identical} identical, kills {kills}", flush=True)
    results = {
        "machine": machine_facts(gemm_gflops()),
        "data": name,
        "fits": n_fits,
        "kills": kills,
        "identical": identical,
        "unreadable_checkpoints": unreadable,
        "temporary_files_left": left_over,
    }
    rows = [
        ["fits", n_fits, ""],
        ["kills at any time", kills["any time"], ""],
        ["kills while a checkpoint is written", kills["writing"], ""],
        ["models identical to the uninterrupted one", identical, n_fits],
        ["unreadable checkpoints", unreadable, 0],
    ]
    print(table(["what", "count", "goal"], rows))
    print(write_json("kill_resume", results))


if __name__ == "__main__":
    main()
