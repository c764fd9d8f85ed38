"""What every benchmark needs: the machine's measured speed, timing, tables, results on disk."""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import latentmetric
from latentmetric.core import latents, population
from latentmetric.core.classes import OneClass
from latentmetric.core.distances import References

RESULTS = Path(__file__).parent / "results"

PUBLISHED_LMNN: dict[str, Any] = {"push": 0.5, "target_neighbors": 3}
"""The parameters of LMNN's authors, which the stored results are for, whatever the defaults are."""


def no_options(doc: str | None) -> None:
    """Answer --help and refuse arguments before anything is measured."""
    form = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(description=doc, formatter_class=form).parse_args()


def chosen(text: str | None, known: Iterable[str], what: str) -> list[str]:
    """Names separated by commas, in the order of the known ones; all of them if there is none."""
    names = list(known)
    if text is None:
        return names
    wanted = [name.strip() for name in text.split(",")]
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        raise SystemExit(f"{what} must be among {', '.join(names)}; got {', '.join(unknown)}")
    return [name for name in names if name in wanted]


def positive(text: str) -> float:
    """A number that an option may be."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number above 0")
    return number


def gemm_gflops(dtype: type = np.float32, size: int = 4096, repeats: int = 3) -> float:
    """GFlop/s of a large matrix product, the best of a few repeats."""
    generator = np.random.default_rng(0)
    left, right = generator.standard_normal((2, size, size)).astype(dtype)
    return 2 * size**3 / best_seconds(lambda: left @ right, repeats) / 1e9


def sustained_gflops(seconds: float = 5.0, size: int = 4096) -> float:
    """GFlop/s of large matrix products over some seconds of the processor, for each core."""
    left, right = np.random.default_rng(0).standard_normal((2, size, size)).astype(np.float32)
    start, n_products = time.process_time(), 0
    while time.process_time() - start < seconds:
        left @ right
        n_products += 1
    return 2 * size**3 * n_products / (time.process_time() - start) / 1e9


def best_seconds(function: Callable[[], Any], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**60)}
"""With these settings, glibc gives no memory back to the system."""


def take_memory(n_bytes: float) -> None:
    """Take memory from the system before anything is timed, and keep it.

    The first touch of memory costs up to 10 s per GB on a virtual machine that gives free memory
    back to its host. The script starts again with an allocator that keeps what it has.
    """
    if any(os.environ.get(name) != value for name, value in KEEPING.items()):
        environment = os.environ | KEEPING
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)  # nosec B606
    np.ones(int(n_bytes), dtype=np.uint8)


class _Allocated(ctypes.Structure):
    """What glibc's ``mallinfo2`` tells."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


class PeakMemory:
    """The largest memory of this process inside a with-block, sampled in a thread.

    It is the resident size; after ``take_memory``, which has all of it resident, it is what is
    allocated.
    """

    def __enter__(self) -> PeakMemory:
        self.before = self.peak = _held_bytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, _held_bytes())

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.peak = max(self.peak, _held_bytes())


def _held_bytes() -> int:
    if KEEPING.items() <= os.environ.items():
        tell = ctypes.CDLL(None).mallinfo2
        tell.restype = _Allocated
        return int(tell().uordblks)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def machine_facts(gflops: float) -> dict[str, Any]:
    return {
        "command": "python " + " ".join(["benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]]),
        "cores": os.cpu_count(),
        "gemm_float32_gflops": round(gflops, 1),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit_learn": sklearn.__version__,
        "latentmetric": latentmetric.__version__,
    }


def write_json(name: str, results: Any) -> Path:
    """Write the whole file or nothing."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    partial = path.with_suffix(".json.partial")
    partial.write_text(json.dumps(results, indent=1) + "\n")
    partial.replace(path)
    return path


def table(header: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table with aligned columns."""
    cells = [header, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    lines = [
        " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in cells
    ]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


@dataclass
class Operations:
    """Floating-point operations of matrix products."""

    done: int = 0
    plain: int = 0
    """Operations of a k-means that compares all rows with all latent examples of their class."""


@contextmanager
def counted_alg1() -> Iterator[Operations]:
    """Count the operations of Alg. 1: distances, products with the metric, scatter matrices.

    Alg. 1 skips comparisons that cannot change anything. ``plain`` counts the same passes without
    skipping: every row with every latent example of its class in each pass, and all rows under
    the metric once a round.
    """
    counts = Operations()
    search, settle, under = latents.search, population.settle, References.under.__func__
    scatter = OneClass.scatter_under

    def counting_search(queries, references, k, *rest):
        counts.done += 2 * len(queries) * len(references) * queries.shape[1]
        return search(queries, references, k, *rest)

    def counting_under(cls, rows, metric):
        counts.done += 2 * rows.size * len(metric)
        return under(cls, rows, metric)

    def counting_scatter(self, metric):
        if self._kept_scatter is None:
            counts.done += len(self) * self._rows.n_features**2
        return scatter(self, metric)

    def counting_settle(rows, start, *rest):
        settled = settle(rows, start, *rest)
        n_features = start.shape[1]
        counts.plain += 2 * len(rows) * n_features * (settled.passes * len(start) + n_features)
        return settled

    latents.search, population.settle = counting_search, counting_settle
    References.under, OneClass.scatter_under = classmethod(counting_under), counting_scatter
    try:
        yield counts
    finally:
        latents.search, population.settle = search, settle
        References.under, OneClass.scatter_under = classmethod(under), scatter
