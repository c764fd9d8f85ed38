"""The report of tables.py: means, ranks, Friedman's test with Nemenyi's critical difference.

Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import table
from scipy.stats import friedmanchisquare, rankdata, studentized_range

OURS, OURS_COLOR = "MaPML", "#D55E00"
EXTRA = "CatBoost"
"""Left out of the first of the two ranks: not everyone has it installed."""
SIGNIFICANCE = 0.05
DECIMALS = 9
"""Of errors that are compared: means of the same numbers may differ in the last digits."""

FIGURES = (
    "error", "log_loss", "log_loss_unclipped", "zero_share", "fit_seconds", "fit_cpu_seconds",
    "predict_seconds", "predict_cpu_seconds",
)  # fmt: skip

Array = np.ndarray[Any, Any]
Record = dict[str, Any]


class Means:
    """Means over the folds that were measured with every method, a row for each table."""

    def __init__(self, records: list[Record]) -> None:
        self.methods = list(dict.fromkeys(record["method"] for record in records))
        folds = [
            {_fold(record) for record in records if record["method"] == method}
            for method in self.methods
        ]
        common = set.intersection(*folds) if folds else set()
        self.records = [record for record in records if _fold(record) in common]
        self.tables = sorted({record["table"] for record in self.records})
        self.n_folds = len(common)

    def of(self, figure: str, method: str) -> Array:
        """A figure by table; nan where a fold has none."""
        found: dict[str, list[float]] = {name: [] for name in self.tables}
        for record in self.records:
            if record["method"] == method:
                value = record.get(figure)
                found[record["table"]].append(np.nan if value is None else value)
        return np.array([np.mean(values) for values in found.values()])

    def errors(self, methods: list[str]) -> Array:
        """Tables × methods."""
        return np.column_stack([self.of("error", method) for method in methods])


def _fold(record: Record) -> tuple[str, int, int]:
    return record["table"], record["seed"], record["fold"]


def ranks(errors: Array) -> Array:
    """1 is the lowest error of a row; equal errors share the mean of their ranks."""
    return rankdata(errors.round(DECIMALS), axis=1)


def critical_difference(n_methods: int, n_tables: int) -> float:
    """Nemenyi's: mean ranks closer than this may be equal."""
    quantile = studentized_range.ppf(1 - SIGNIFICANCE, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_tables)))


def indistinct(mean_ranks: Array, difference: float) -> list[tuple[int, int]]:
    """First and last index of each longest run of sorted ranks no further apart than this."""
    groups: list[tuple[int, int]] = []
    for first in range(len(mean_ranks)):
        last = int(np.searchsorted(mean_ranks, mean_ranks[first] + difference, side="right")) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


def summarize(records: list[Record]) -> dict[str, Record]:
    """The mean figures of each method over all tables, the best mean rank first."""
    means = Means(records)
    if not means.tables:
        return {}
    methods, few = means.methods, [method for method in means.methods if method != EXTRA]
    errors = means.errors(methods).round(DECIMALS)
    wins = (errors == errors.min(axis=1, keepdims=True)).sum(axis=0)
    rank, rank_of_few = (
        dict(zip(own, ranks(means.errors(own)).mean(axis=0).tolist(), strict=True))
        for own in (methods, few)
    )
    cells = {}
    for method, won in zip(methods, wins.tolist(), strict=True):
        figures = {figure: float(means.of(figure, method).mean()) for figure in FIGURES}
        cells[method] = {
            **{figure: None if np.isnan(mean) else mean for figure, mean in figures.items()},
            "rank": rank[method],
            f"rank_without_{EXTRA}": rank_of_few.get(method),
            "wins": won,
        }
    return dict(sorted(cells.items(), key=lambda item: item[1]["rank"]))


def report(records: list[Record]) -> str:
    """The summary and the errors on each table, in Markdown."""
    means, cells = Means(records), summarize(records)
    if not cells:
        return "No fold has been measured with every method yet."
    said = (
        f"Means over {len(means.tables)} tables, {means.n_folds} folds in all. The log-loss counts "
        "probabilities below 0.001 as 0.001, except where it says no floor; zeros are true labels "
        "with the probability 0. Equal errors share a rank, and a table that they win. Seconds are "
        "the processor's on one thread, of the choice of parameters and the fit, and of `predict` "
        "for a fold."
    )
    parts = [said, summary(cells), significance(means), errors_by_table(means, list(cells))]
    return "\n\n".join(part for part in parts if part)


def summary(cells: dict[str, Record]) -> str:
    """A line for each method."""
    header = ["method", "mean error, %", f"mean rank of {len(cells)}", f"without {EXTRA}"]
    header += ["tables won", "log-loss", "no floor", "zeros, %", "fit, s", "predict, ms"]
    lines = []
    for method, cell in cells.items():
        zeros = cell["zero_share"]
        lines.append([
            method,
            _text(cell["error"], 2),
            _text(cell["rank"], 2),
            _text(cell[f"rank_without_{EXTRA}"], 2),
            cell["wins"],
            _text(cell["log_loss"], 3),
            "∞" if zeros else _text(cell["log_loss_unclipped"], 3),
            _text(zeros and 100 * zeros, 2),
            _text(cell["fit_cpu_seconds"], 2),
            _text(1000 * cell["predict_cpu_seconds"], 1),
        ])  # fmt: skip
    return table(header, lines)


def _text(value: float | None, decimals: int) -> str:
    return "" if value is None else f"{value:.{decimals}f}"


def significance(means: Means) -> str:
    """Friedman's test of all methods, and who cannot be told apart; nothing for fewer than 3."""
    if len(means.methods) < 3 or len(means.tables) < 2:
        return ""
    errors = means.errors(means.methods).round(DECIMALS)
    difference = critical_difference(len(means.methods), len(means.tables))
    return (
        f"Friedman's test of equal ranks: p = {friedmanchisquare(*errors.T).pvalue:.1g}. "
        f"By Nemenyi's test, mean ranks that differ by less than {difference:.2f} may be equal "
        f"(level {100 * SIGNIFICANCE:.0f} %)."
    )


def errors_by_table(means: Means, order: list[str]) -> str:
    """Mean errors in percent; the lowest are bold."""
    errors = means.errors(order).round(DECIMALS)
    shapes = {
        record["table"]: (record["rows"] + record["test_rows"], record["columns"])
        for record in means.records
    }
    lines = []
    for name, row in zip(means.tables, errors, strict=True):
        cells = [f"**{error:.1f}**" if error == row.min() else f"{error:.1f}" for error in row]
        lines.append([name, "{:,} × {}".format(*shapes[name]), *cells])
    return table(["error, %", "rows × columns", *order], lines)


# The picture


def draw(records: list[Record], out: Path) -> None:
    """Mean ranks on a line; bars join methods that Nemenyi's test cannot tell apart."""
    from matplotlib import rc_context

    means = Means(records)
    if len(means.methods) < 3 or len(means.tables) < 2:
        return
    out.mkdir(parents=True, exist_ok=True)
    figure = critical_difference_figure(means)
    with rc_context({"svg.hashsalt": "tables"}):
        figure.savefig(out / "tables_ranks.svg", metadata={"Date": None})
    figure.savefig(out / "tables_ranks.png", dpi=150)


def critical_difference_figure(means: Means) -> Any:
    from matplotlib.figure import Figure

    mean_ranks = ranks(means.errors(means.methods)).mean(axis=0)
    order = np.argsort(mean_ranks, kind="stable")
    mean_ranks, names = mean_ranks[order], [means.methods[index] for index in order]
    difference = critical_difference(len(names), len(means.tables))
    groups = indistinct(mean_ranks, difference)
    n_left = (len(names) + 1) // 2
    lowest, highest = int(np.floor(mean_ranks[0])), int(np.ceil(mean_ranks[-1]))
    first_label = 0.5 + 0.35 * len(groups)

    figure = Figure(figsize=(8, 1.3 + 0.3 * (first_label + n_left)), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(lowest - 1.2, highest + 1.2), ylim=(first_label + n_left, -1.6))
    axes.set_axis_off()
    axes.plot([lowest, highest], [0, 0], color="black", lw=1)
    for tick in range(lowest, highest + 1):
        axes.plot([tick, tick], [-0.15, 0], color="black", lw=1)
        axes.text(tick, -0.25, str(tick), ha="center", va="bottom", fontsize=9)
    axes.plot([lowest, lowest + difference], [-1.1, -1.1], color="black", lw=1.5, marker="|")
    axes.text(
        lowest + difference + 0.1, -1.1, f"critical difference {difference:.2f}", va="center",
        fontsize=9,
    )  # fmt: skip
    for level, (first, last) in enumerate(groups):
        height = 0.35 * (level + 1)
        ends = [mean_ranks[first] - 0.04, mean_ranks[last] + 0.04]
        axes.plot(ends, [height, height], color="0.35", lw=4, solid_capstyle="butt")
    for index, (name, rank) in enumerate(zip(names, mean_ranks, strict=True)):
        left = index < n_left
        height = first_label + (index if left else len(names) - 1 - index) + 0.5
        edge = lowest - 0.1 if left else highest + 0.1
        color, weight = (OURS_COLOR, "bold") if name == OURS else ("black", "normal")
        axes.plot([rank, rank, edge], [0, height, height], color=color, lw=1)
        axes.text(
            edge - 0.08 if left else edge + 0.08, height, f"{name}  {rank:.2f}", color=color,
            weight=weight, va="center", ha="right" if left else "left", fontsize=10,
        )  # fmt: skip
    axes.set_title(
        f"mean rank by error on {len(means.tables)} tables (1 is best; bars: Nemenyi, "
        f"{100 * SIGNIFICANCE:.0f} %)",
        loc="left",
        fontsize=10,
    )
    return figure
