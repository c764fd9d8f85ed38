"""What the cells say: figures by set, method and size, growth in n, and why a method ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from side_by_side.cells import Cell, finished
from side_by_side.plan import LIMIT_SECONDS, PEERS, SETS, SIZES, TABLE_SIZE

SHORTEST_SECONDS = 0.05
"""Fits that take less say nothing about growth."""
FEWEST_SIZES = 3
"""Nor do fewer sizes: part of the time does not depend on n."""


class Findings:
    """The cells of peers.json."""

    def __init__(self, cells: Mapping[str, Mapping[str, Mapping[str, Cell]]]) -> None:
        self._cells = cells

    def sets(self) -> list[str]:
        return [name for name in SETS if name in self._cells]

    def methods(self, name: str) -> list[str]:
        """Ours first, then in the order of the run."""
        present = [PEERS[method] for method in PEERS if self.by_size(name, method)]
        return [peer.name for peer in sorted(present, key=lambda peer: not peer.ours)]

    def by_size(self, name: str, method: str) -> dict[int, Cell]:
        """Without sizes below those of the plan, which somebody may have tried."""
        found = self._cells.get(name, {}).get(method, {})
        return {int(size): found[size] for size in sorted(found, key=int) if int(size) >= SIZES[0]}

    def finished(self, name: str, method: str) -> dict[int, Cell]:
        return {size: cell for size, cell in self.by_size(name, method).items() if finished(cell)}

    def figure(self, name: str, method: str, size: int, key: str) -> Any:
        """A figure of a finished cell, or None."""
        return self.finished(name, method).get(size, {}).get(key)

    def fit_seconds(self, name: str, method: str) -> dict[int, float]:
        """Processor time by size."""
        done = self.finished(name, method)
        return {size: cell["fit_cpu_seconds"] for size, cell in done.items()}

    def exponent(self, name: str, method: str) -> float | None:
        """Of n in the time of a fit: the slope of the logarithms over the finished sizes."""
        seconds = self.fit_seconds(name, method)
        return exponent(seconds) if len(seconds) >= FEWEST_SIZES else None

    def end(self, name: str, method: str) -> str:
        """The first size that was not finished, and why, or that was given more time."""
        for size, cell in self.by_size(name, method).items():
            if not finished(cell):
                return f"{size:,} rows: {cell['reason']}"
            if cell["fit_cpu_seconds"] > LIMIT_SECONDS:
                return f"{size:,} rows: passed {LIMIT_SECONDS:g} s, but was let finish"
        return ""

    def passed_limit(self, name: str, method: str, size: int) -> bool:
        """Whether this size, or a smaller one, passed a limit or was predicted to."""
        return any(
            known <= size and cell["state"] in ("stopped", "predicted")
            for known, cell in self.by_size(name, method).items()
        )

    def least_seconds(self, name: str, method: str, size: int) -> float | None:
        """What a fit takes at least: it was measured, or this size or a smaller one took longer
        than its limit, or was predicted to. None if that is not known."""
        measured = self.figure(name, method, size, "fit_cpu_seconds")
        too_long = [
            cell["limits"]["seconds"]
            for known, cell in self.by_size(name, method).items()
            if known <= size and cell.get("limit") == "seconds" and cell.get("phase") != "queries"
        ]
        return max(too_long, default=None) if measured is None else measured

    def picture_size(self, name: str) -> int:
        """The largest size, up to that of the tables, that most of the methods finished."""
        methods = self.methods(name)
        sizes = {size for method in methods for size in self.finished(name, method)}
        common = [
            size
            for size in sizes
            if size <= TABLE_SIZE
            and 2 * sum(size in self.finished(name, method) for method in methods) > len(methods)
        ]
        return max(common, default=min(sizes, default=0))


def exponent(seconds: Mapping[int, float]) -> float | None:
    """Slope of log seconds over log n; None for fewer than two fits, or for too short ones."""
    if len(seconds) < 2 or max(seconds.values()) < SHORTEST_SECONDS:
        return None
    n, times = np.log(list(seconds)), np.log(np.maximum(list(seconds.values()), 1e-6))
    return float(np.polyfit(n, times, 1)[0])
