"""The report of peers.py in Markdown: a table for each set, and the bars."""

from __future__ import annotations

from common import table
from side_by_side.findings import FEWEST_SIZES, Findings
from side_by_side.plan import LIMIT_GIGABYTES, LIMIT_SECONDS, PEERS, TABLE_SIZE

OURS = "MaPML"
NCA = "scikit-learn NCA"
LMNN = "metric-learn LMNN"
BAR_SET = "MNIST PCA-50"
LEAST_SPEEDUP = 30
LMNN_FROM_ROWS = 4_000
MOST_GROWTH = 1.05

HEADER = [
    "method",
    "fit, s",
    "query, µs",
    "peak, MB",
    "error, %",
    "growth in n",
    "most rows",
    "end",
]


def report(findings: Findings) -> str:
    parts = [
        f"One thread for every method. Times are the processor's; a method ends at the size whose "
        f"process passes {LIMIT_SECONDS:g} s or {LIMIT_GIGABYTES:g} GB. Fit, query, peak "
        f"and error are those of {TABLE_SIZE:,} training rows; growth is the exponent of n in the "
        f"time of a fit over all finished sizes (at least {FEWEST_SIZES}). Each cell is one run on "
        "one sample of the rows."
    ]
    for name in findings.sets():
        lines = [line(findings, name, method) for method in findings.methods(name)]
        parts.append(f"## {name}\n\n{table(HEADER, lines)}")
    parts.append(f"## Bars\n\n{bars(findings)}")
    return "\n\n".join(parts)


def line(findings: Findings, name: str, method: str) -> list[str]:
    label = f"**{method}**" if PEERS[method].ours else method
    keys = ("fit_cpu_seconds", "query_cpu_microseconds", "peak_megabytes", "error")
    figures = [findings.figure(name, method, TABLE_SIZE, key) for key in keys]
    if figures[0] is None:
        texts = ["stopped" if findings.passed_limit(name, method, TABLE_SIZE) else "not run"]
        texts += ["", "", ""]
    else:
        seconds, query, peak, error = figures
        texts = [f"{seconds:.2f}", f"{query:.1f}", f"{peak:.0f}", f"{error:.2f}"]
    growth = findings.exponent(name, method)
    most = max(findings.finished(name, method), default=None)
    return [
        label,
        *texts,
        "" if growth is None else f"{growth:.2f}",
        "none" if most is None else f"{most:,}",
        findings.end(name, method),
    ]


def bars(findings: Findings) -> str:
    lines = [speedup_bar(findings), *lmnn_bars(findings), *growth_bars(findings)]
    return table(["bar", "measured", "met"], lines)


def speedup_bar(findings: Findings) -> list[str]:
    """Compared with NCA of scikit-learn; a fit that was stopped took at least its limit."""
    bar = (
        f"{OURS} on {BAR_SET}, {TABLE_SIZE:,} rows: at least {LEAST_SPEEDUP} times faster than "
        f"{NCA} at no more error"
    )
    ours, theirs, least = _pair(findings, BAR_SET, NCA, TABLE_SIZE)
    if ours is None or theirs is None:
        return [bar, "not run", ""]
    error, other = (findings.figure(BAR_SET, method, TABLE_SIZE, "error") for method in (OURS, NCA))
    ratio = f"{least}{theirs / ours:.1f} times"
    if error is None or other is None:
        return [bar, f"{ratio}; an error is unknown", ""]
    met = theirs >= LEAST_SPEEDUP * ours and error <= other
    return [bar, f"{ratio}; {error:.2f} % beside {other:.2f} %", _met(met)]


def lmnn_bars(findings: Findings) -> list[list[str]]:
    """The least ratio of times, over sizes, on each set."""
    lines = []
    for name in findings.sets():
        ratios = {}
        for size in findings.by_size(name, OURS):
            ours, theirs, least = _pair(findings, name, LMNN, size)
            if size >= LMNN_FROM_ROWS and ours and theirs:
                ratios[theirs / ours] = f"{least}{theirs / ours:.1f} times faster at {size:,} rows"
        if ratios:
            bar = f"{OURS} on {name}: from {LMNN_FROM_ROWS:,} rows on never slower than {LMNN}"
            lines.append([bar, ratios[min(ratios)], _met(min(ratios) >= 1)])
    return lines


def growth_bars(findings: Findings) -> list[list[str]]:
    lines = []
    for name in findings.sets():
        ours, theirs = (findings.exponent(name, method) for method in (OURS, NCA))
        if ours is not None:
            beside = "" if theirs is None else f"; {NCA} {theirs:.2f}"
            bar = f"{OURS} on {name}: exponent of n at most {MOST_GROWTH}"
            lines.append([bar, f"{ours:.2f}{beside}", _met(ours <= MOST_GROWTH)])
    return lines


def _pair(
    findings: Findings, name: str, theirs: str, size: int
) -> tuple[float | None, float | None, str]:
    """Seconds of MaPML and of another method, and what to say if one of them was stopped."""
    mine = findings.least_seconds(name, OURS, size)
    other = findings.least_seconds(name, theirs, size)
    stopped = [size not in findings.finished(name, method) for method in (OURS, theirs)]
    if all(stopped):
        return None, None, ""
    return mine, other, ("at most " if stopped[0] else "at least " if stopped[1] else "")


def _met(met: bool) -> str:
    return "yes" if met else "no"
