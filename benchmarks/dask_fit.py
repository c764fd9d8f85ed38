"""Fit on a cluster of four worker processes: same model as on one machine, memory by process.

    python benchmarks/dask_fit.py [--rows 400000]

Rows are in a .zarr, which the workers read in chunks. Reported: the growth of the largest resident
size of every worker and of the client, a worker's share of the rows, and how much the model differs
from that of one machine. Goals: the client holds only samples of the rows; predictions agree on
99.9 % of rows and latent examples to 1e-3.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
import zarr
from common import gemm_gflops, machine_facts, table, write_json
from distributed import Client, LocalCluster
from image_like import make_image_like

from latentmetric import MaPML

N_FEATURES, N_CLASSES, CHUNK_ROWS = 256, 200, 20_000
PARAMETERS = {"n_latents": 32, "max_iter": 3, "n_steps": 20_000, "random_state": 0}


def megabytes(name: str) -> float:
    """Resident size of this process: "VmRSS" is the current one, "VmHWM" the peak since a reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return float(line.split()[1]) / 1e3
    raise RuntimeError(f"this system does not report {name}")


def reset_peak() -> float:
    """Reset the peak of this process; return its current resident size."""
    Path("/proc/self/clear_refs").write_text("5")
    return megabytes("VmRSS")


def peak_megabytes() -> float:
    return megabytes("VmHWM")


def save(folder: Path, n_rows: int) -> None:
    """Write the rows in a separate process, so that the client's peak does not include it."""
    import multiprocessing

    writer = multiprocessing.get_context("spawn").Process(target=_write, args=(folder, n_rows))
    writer.start()
    writer.join()


def _write(folder: Path, n_rows: int) -> None:
    made = make_image_like(n_rows, N_FEATURES, N_CLASSES, 8)
    zarr.create_array(folder / "X.zarr", data=made.X, chunks=(CHUNK_ROWS, N_FEATURES))
    zarr.create_array(folder / "y.zarr", data=made.y, chunks=(CHUNK_ROWS,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    n_rows = parser.parse_args().rows
    gflops = gemm_gflops()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(folder, n_rows)
        cluster = LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            empty = client.run(reset_peak)
            client_before = reset_peak()
            X, y = (da.from_zarr(str(folder / f"{part}.zarr")) for part in "Xy")
            start = time.perf_counter()
            model = MaPML.as_published(**PARAMETERS).fit(X, y)
            seconds = time.perf_counter() - start
            client_peak = peak_megabytes()
            workers = client.run(peak_megabytes)
        rows, labels = (np.asarray(zarr.open(folder / f"{part}.zarr")) for part in "Xy")
    start = time.perf_counter()
    local = MaPML.as_published(**PARAMETERS).fit(rows, labels)
    local_seconds = time.perf_counter() - start
    scale = float(np.abs(local.latent_examples_).max())
    difference = float(np.abs(model.latent_examples_ - local.latent_examples_).max()) / scale
    agree = float(np.mean(model.predict(rows[:50_000]) == local.predict(rows[:50_000])))
    grown = [workers[address] - empty[address] for address in workers]
    share = rows.nbytes / 1e6 / len(workers)
    results = {
        "machine": machine_facts(gflops),
        "rows": n_rows,
        "share_megabytes": share,
        "workers_grown_megabytes": grown,
        "client_grown_megabytes": client_peak - client_before,
        "data_megabytes": rows.nbytes / 1e6,
        "fit_seconds": seconds,
        "local_fit_seconds": local_seconds,
        "latents_relative_difference": difference,
        "predictions_agree": agree,
    }
    print(
        table(
            ["what", "measured", "goal"],
            [
                ["rows, MB", f"{rows.nbytes / 1e6:.0f}", ""],
                ["a worker's share, MB", f"{share:.0f}", ""],
                ["workers grew by, MB", ", ".join(f"{g:.0f}" for g in grown), ""],
                ["client grew by, MB", f"{results['client_grown_megabytes']:.0f}", "« rows"],
                ["fit on the cluster, s", f"{seconds:.1f}", ""],
                ["fit on one machine, s", f"{local_seconds:.1f}", ""],
                ["latent examples differ by", f"{difference:.1e}", "≤ 1e-3"],
                ["predictions agree", f"{100 * agree:.2f} %", "≥ 99.9 %"],
            ],
        )
    )
    print(write_json("dask_fit", results))


if __name__ == "__main__":
    main()
