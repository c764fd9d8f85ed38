"""What else a user could pick: MaPML and other libraries side by side, in time, memory and error.

    python benchmarks/peers.py --make-environments FOLDER
    LATENTMETRIC_DATA=folder python benchmarks/peers.py --environments FOLDER
    python benchmarks/peers.py --methods MaPML --fresh --environments FOLDER
    python benchmarks/peers.py --report

Every cell, a method on a number of training rows of a set, is a process with one thread. It is
stopped when it passes the limits, and larger sizes of that method and set are not run; nor is a
size whose cost the last two finished sizes predict to pass a limit. Errors and queries are of all
test rows. Finished cells are kept in benchmarks/results/peers.json and reused; --fresh measures
the chosen ones again. --report prints the tables and draws the pictures.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from common import RESULTS, chosen, gemm_gflops, machine_facts, positive, write_json
from side_by_side import cells as cells_of
from side_by_side import environments, pictures, rows, tables
from side_by_side.cells import Cell, Limits
from side_by_side.findings import Findings
from side_by_side.plan import (
    ENVIRONMENTS,
    LIMIT_GIGABYTES,
    PEERS,
    SETS,
    SIZES,
    sizes_of,
)
from side_by_side.running import exit_on_signals, measure, parser_of, pending, stored

NAME = "peers"
FEWEST_ROWS = 200
"""Fewer rows than features or classes say nothing about a method."""


class Store:
    """The cells on disk. The file is read again for every change: runs may share it."""

    def results(self) -> dict[str, Any]:
        return stored(NAME)

    def by_size(self, name: str, method: str) -> dict[int, Cell]:
        found = self.results()["cells"].get(name, {}).get(method, {})
        return {int(size): cell for size, cell in found.items()}

    def keep(self, name: str, method: str, size: int, cell: Cell) -> None:
        """A cell that failed does not take the place of another."""
        results = self.results()
        sizes = results["cells"].setdefault(name, {}).setdefault(method, {})
        if cell["state"] != "failed" or sizes.get(str(size), cell)["state"] == "failed":
            sizes[str(size)] = cell
            write_json(NAME, results)

    def begin(self, home: Path | None) -> None:
        results = self.results()
        results["machine"] = machine_facts(gemm_gflops())
        command = results["machine"]["command"]
        results["machine"]["command"] = command.replace(f" {home}", " FOLDER")
        results["threads"] = 1
        write_json(NAME, results)


def plan(sets: list[str], sizes: tuple[int, ...]) -> list[tuple[str, int]]:
    """All sets and sizes; the rows of every set are looked for before anything is measured."""
    return [(name, size) for name in sets for size in sizes_of(rows.n_rows(name), sizes)]


def run(
    store: Store,
    planned: list[tuple[str, int]],
    methods: list[str],
    limits: Limits,
    home: Path | None,
    fresh: bool,
) -> None:
    """All methods on one size before the next."""
    for name, size in planned:
        wanted = []
        for method in methods:
            known = store.by_size(name, method)
            if not cells_of.given_up(known, size, limits) and pending(
                known.get(size), limits, fresh
            ):
                wanted.append(method)
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            for method in wanted:
                cell = cells_of.predicted(store.by_size(name, method), size, limits)
                if cell is None:
                    if not any(folder.iterdir()):
                        rows.save(name, size, folder)
                    cell = measure(
                        "learners", method, PEERS[method].environment, folder, home, limits
                    )
                store.keep(name, method, size, cell)
                print(name, size, method, summary(cell), flush=True)


def summary(cell: Cell) -> str:
    if not cells_of.finished(cell):
        return f"{cell['state']}: {cell['reason']}"
    return (
        f"fit {cell['fit_seconds']:.2f} s ({cell['fit_cpu_seconds']:.2f} s CPU), "
        f"query {cell['query_microseconds']:.1f} µs, {cell['peak_megabytes']:.0f} MB, "
        f"error {cell['error']:.2f} %"
    )


def whole_numbers(text: str) -> tuple[int, ...]:
    """Sizes, separated by commas."""
    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of whole numbers, as in 2000,4000"
        )
    sizes = tuple(int(part) for part in text.split(","))
    if min(sizes) < FEWEST_ROWS:
        raise argparse.ArgumentTypeError(f"{min(sizes)} rows are fewer than {FEWEST_ROWS}")
    return sizes


def options() -> argparse.Namespace:
    parser = parser_of(__doc__, SETS, PEERS)
    parser.add_argument("--sizes", type=whole_numbers, default=SIZES, help="training rows")
    parser.add_argument("--limit-gigabytes", type=positive, default=LIMIT_GIGABYTES)
    return parser.parse_args()


def main() -> None:
    given = options()
    if given.make_environments:
        environments.make(given.make_environments, ENVIRONMENTS)
        return
    exit_on_signals()
    store = Store()
    if not given.report:
        sets = chosen(given.sets, SETS, "--sets")
        methods = chosen(given.methods, PEERS, "--methods")
        planned = plan(sets, given.sizes)
        limits = Limits(given.limit_seconds, given.limit_gigabytes)
        for method in methods:
            environments.python_of(PEERS[method].environment, given.environments)
        store.begin(given.environments)
        run(store, planned, methods, limits, given.environments, given.fresh)
    show(store.results())


def show(results: dict[str, Any]) -> None:
    """Print the tables, keep them beside the cells, and draw the pictures."""
    if not results["cells"]:
        raise SystemExit(f"{RESULTS / NAME}.json has no cells yet")
    findings = Findings(results["cells"])
    said = tables.report(findings)
    print(said)
    (RESULTS / f"{NAME}.md").write_text(f"# Other libraries in tables\n\n{said}\n")
    pictures.draw(findings, RESULTS / NAME)


if __name__ == "__main__":
    main()
