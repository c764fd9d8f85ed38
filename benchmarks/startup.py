"""Time to show the command line's help, and to import the package.

Each is measured in a fresh interpreter, in turns, the best of several. Ratios are of processor
seconds, which depend less than wall-clock seconds on what else the machine does.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from common import machine_facts, no_options, table, write_json

CODES = {
    "python": "pass",
    "import sklearn.neighbors": "import sklearn.neighbors",
    "import latentmetric": "import latentmetric",
    "from latentmetric import MaPML": "from latentmetric import MaPML",
    "latentmetric --help": (
        "import sys; sys.argv = ['latentmetric', '--help']\n"
        "from latentmetric.cli.main import run; run()"
    ),
}
REPEATS = 15


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    no_options(__doc__)
    clock: dict[str, list[float]] = {name: [] for name in CODES}
    processor: dict[str, list[float]] = {name: [] for name in CODES}
    for _ in range(REPEATS):
        for name, code in CODES.items():
            used, start = processor_seconds(), time.perf_counter()
            run = [sys.executable, "-c", code]
            # The code is one of CODES, nothing is read.
            subprocess.run(run, check=True, stdout=subprocess.DEVNULL)  # nosec B603
            clock[name].append(time.perf_counter() - start)
            processor[name].append(processor_seconds() - used)
    neighbors = "import sklearn.neighbors"
    results = {
        name: {
            "seconds": round(min(clock[name]), 3),
            "processor_seconds": round(min(processor[name]), 3),
            "ratio_to_sklearn_neighbors": round(
                min(processor[name]) / min(processor[neighbors]), 3
            ),
        }
        for name in CODES
    }
    print(table(["what", *results["python"]], [[name, *r.values()] for name, r in results.items()]))
    facts = machine_facts(0.0)
    del facts["gemm_float32_gflops"]
    print(write_json("startup", {"machine": facts, "best_of": REPEATS, "results": results}))


if __name__ == "__main__":
    main()
