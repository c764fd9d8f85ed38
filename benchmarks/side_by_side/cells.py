"""One cell, a method on a size of a set: run in a process with limits, predicted, or skipped."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.05
CLOCK_ALLOWANCE = 4
"""How much longer than the limit a process may take by the clock, if others use the machine."""

FARTHER = 1.5
"""Sizes that are nearer to each other than this factor say nothing about larger ones."""

Cell = dict[str, Any]
"""``state`` is "finished", "stopped" (it passed a limit), "predicted" (it would have) or
"failed"; ``reason`` says why it is not finished, ``limit`` which limit it is about, and ``phase``
where it was stopped; ``limits`` are those that it was run with, and ``used_seconds`` is the time
of the processor that a process took until it was stopped. The rest is what child.py wrote."""


@dataclass(frozen=True)
class Limits:
    """Of the process of a cell: time of the processor, which is the clock's on an idle machine as
    there is one thread, and resident size."""

    seconds: float
    gigabytes: float

    @property
    def megabytes(self) -> float:
        return 1000 * self.gigabytes

    def text(self, limit: str) -> str:
        return f"{self.seconds:g} s" if limit == "seconds" else f"{self.gigabytes:g} GB"

    def stops_again(self, cell: Cell) -> bool:
        """Whether a cell that passed a limit, or would have, would do so with these."""
        return bool(cell["limits"][cell["limit"]] >= getattr(self, cell["limit"]))


def run(command: list[str], variables: Mapping[str, str], limits: Limits) -> Cell:
    """Run a command that writes its facts to the path given as its last argument."""
    with tempfile.TemporaryDirectory() as folder:
        out, errors = Path(folder) / "facts.json", Path(folder) / "errors.txt"
        with errors.open("wb") as stream:
            process = subprocess.Popen(  # nosec B603
                [*command, str(out)],
                env=dict(variables),
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
            try:
                passed, used = _watch(process, limits)
            finally:
                _end(process)
        facts = json.loads(out.read_text()) if out.exists() else {}
        if passed == "clock":
            reason = (
                f"had {used:.0f} s of the processor in {CLOCK_ALLOWANCE * limits.seconds:.0f} s"
            )
            return {"state": "failed", "reason": f"{reason}: the machine is too busy"}
        if passed:
            return {**_stopped(passed, limits, facts), "used_seconds": used, **facts}
        return {**_ended(process.returncode, facts, errors, limits), **facts}


def _watch(process: subprocess.Popen[bytes], limits: Limits) -> tuple[str | None, float]:
    """Wait for the end, or for a limit to be passed; the limit that was, and the time taken."""
    deadline = time.monotonic() + CLOCK_ALLOWANCE * limits.seconds
    used = 0.0
    while process.poll() is None:
        used = max(used, _processor_seconds(process.pid))
        if used > limits.seconds:
            return "seconds", used
        if time.monotonic() > deadline:
            return "clock", used
        if _resident_megabytes(process.pid) > limits.megabytes:
            return "gigabytes", used
        time.sleep(POLL_SECONDS)
    return None, used


def _resident_megabytes(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _processor_seconds(pid: int) -> float:
    try:
        # The name of the program, in parentheses, may contain spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    user_ticks, system_ticks = fields[11:13]
    return (int(user_ticks) + int(system_ticks)) / os.sysconf("SC_CLK_TCK")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _stopped(passed: str, limits: Limits, facts: Cell, asked: str = "") -> Cell:
    phase = "queries" if "fit_seconds" in facts else "fit"
    reason = f"passed {limits.text(passed)} in the {phase}{asked}"
    kept = {"limit": passed, "limits": asdict(limits)}
    return {"state": "stopped", "reason": reason, "phase": phase, **kept}


def _ended(code: int, facts: Cell, errors: Path, limits: Limits) -> Cell:
    if code == 0 and "error" in facts:
        return {"state": "finished"}
    lines = errors.read_text(errors="replace").strip().splitlines()
    last = lines[-1] if lines else f"ended with code {code}"
    asked = re.search(r"MemoryError: Unable to allocate ([\d.]+ [PTG]iB)", last)
    if asked:
        return _stopped("gigabytes", limits, facts, f": asked for {asked[1]} at once")
    return {"state": "failed", "reason": last}


def predicted(by_size: Mapping[int, Cell], size: int, limits: Limits) -> Cell | None:
    """A cell that says which limit would be passed, by a power law through the last two sizes."""
    last = sorted(known for known, cell in by_size.items() if finished(cell) and known < size)[-2:]
    if len(last) < 2 or last[1] < FARTHER * last[0]:
        return None
    seconds = _extrapolate(last, [_seconds(by_size[known]) for known in last], size)
    if seconds > limits.seconds:
        return _prediction("seconds", limits, f"about {seconds:.0f} s")
    loaded = [by_size[known]["loaded_megabytes"] for known in last]
    grown = [by_size[known]["peak_megabytes"] for known in last]
    own = [max(1.0, peak - start) for peak, start in zip(grown, loaded, strict=True)]
    megabytes = loaded[-1] + _extrapolate(last, own, size)
    if megabytes > limits.megabytes:
        return _prediction("gigabytes", limits, f"about {megabytes / 1000:.0f} GB")
    return None


def _prediction(limit: str, limits: Limits, amount: str) -> Cell:
    reason = f"predicted to pass {limits.text(limit)} ({amount})"
    return {"state": "predicted", "reason": reason, "limit": limit, "limits": asdict(limits)}


def search_after(default: Cell | None, limits: Limits) -> Cell | None:
    """The cell of a search for parameters whose method passes a limit with its defaults alone."""
    if default is None or not over_limit(default, limits):
        return None
    kept = {key: default[key] for key in ("limit", "limits")}
    return {"state": "predicted", "reason": f"its defaults {default['reason']}", **kept}


def _extrapolate(sizes: list[int], values: list[float], size: int) -> float:
    exponent = math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0])
    return values[1] * (size / sizes[1]) ** exponent


def _seconds(cell: Cell) -> float:
    """Of the fit and of all queries."""
    return cell["fit_cpu_seconds"] + cell["query_cpu_seconds"]


def finished(cell: Cell | None) -> bool:
    return cell is not None and cell["state"] == "finished"


def over_limit(cell: Cell, limits: Limits) -> bool:
    """Whether a cell passed a limit, or would have, and would do so again."""
    return cell["state"] in ("stopped", "predicted") and limits.stops_again(cell)


def given_up(by_size: Mapping[int, Cell], size: int, limits: Limits) -> bool:
    """Whether a smaller size has already passed a limit, or would have."""
    return any(known < size and over_limit(cell, limits) for known, cell in by_size.items())
