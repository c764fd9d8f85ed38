"""Tables in Markdown and figures in SVG and PNG from the results, beside the paper's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.reproduction.claims import Results, Verdict
from latentmetric.reproduction.plan import ALTERNATIVES, NOISES, RATIOS, mapml_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_TABLES = {
    "cifar10": {
        "Euclid": 16.81, "OASIS": 15.22, "HR-SGD": 15.16, "LMNN": 13.62,
        "MaPML_10-O": 13.59, "MaPML_10": 12.64,
    },
    "cifar100": {
        "Euclid": 42.57, "OASIS": 42.46, "HR-SGD": 42.53, "LMNN": 40.05,
        "MaPML_10-O": 40.49, "MaPML_10": 34.70,
    },
    "imagenet": {
        "Euclid": 35.65, "OASIS": 36.51, "HR-SGD": 36.15, "MaPML_5-O": 35.59, "MaPML_5": 33.92,
    },
}  # fmt: skip
"""Test errors in percent that the paper prints; its features are ResNet18's, ours are not."""

DATASETS = ("mnist", "cifar10", "cifar100", "imagenet", "banking77", "clinc150")
ROWS = ("Euclid", "OASIS", "HR-SGD", "LMNN", "MaPML_10-O", "MaPML_10")
COLOURS = {
    "Euclid": "tab:gray", "OASIS": "tab:olive", "HR-SGD": "tab:orange", "LMNN": "tab:green",
    "MaPML-O": "tab:blue", "MaPML": "tab:red",
}  # fmt: skip


def write_report(
    results: Results, verdicts: list[Verdict], facts: dict[str, Any], out: Path
) -> Path:
    """Everything into ``out``; the page that shows it."""
    parts = ["# Reproduction of the paper's experiments", _facts(facts), _claims(verdicts)]
    parts += [_table(results, name) for name in DATASETS if results.settings(name)]
    for name, figure in figures(results).items():
        for ending in ("svg", "png"):
            figure.savefig(out / f"{name}.{ending}", dpi=150)
        parts.append(f"![{name}]({name}.svg)")
    path = out / "results.md"
    path.write_text("\n\n".join(parts) + "\n")
    return path


def _facts(facts: dict[str, Any]) -> str:
    return "\n".join(f"- {key}: {value}" for key, value in facts.items())


def _claims(verdicts: list[Verdict]) -> str:
    lines = ["## The paper's claims", "", "| claim | verdict | figures |", "|---|---|---|"]
    lines += [f"| {v.claim} | **{v.word}** | {v.figures} |" for v in verdicts]
    return "\n".join(lines)


def _table(results: Results, dataset: str) -> str:
    """Errors of all methods on the noise-free setting, with what was cut."""
    setting = next(s for s in results.settings(dataset) if "noise" not in s)
    ratios = [mapml_name(ratio) for ratio in RATIOS if ratio != 0.10]
    methods = [*ROWS, *(f"{name}{o}" for name in ratios for o in ("-O", "")), *ALTERNATIVES]
    lines = [f"## {dataset}", "", f"Setting: {setting}. Test error in percent.", ""]
    lines += ["| method | error | of Euclid's | paper | of Euclid's | CPU s | trials | fitted on |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    lines += [
        _line(results, setting, method) for method in methods if results.trials(setting, method)
    ]
    return "\n".join(lines)


def _line(results: Results, setting: str, method: str) -> str:
    errors, paper = results.values(setting, method), PAPER_TABLES.get(setting.split("-")[0], {})
    on = results.trials(setting, method)[0]["fitted_on"]
    said = ["", ""]
    if method in paper:
        said = [f"{paper[method]:.2f}", f"{paper[method] / paper['Euclid']:.2f}"]
    cells = [
        method,
        f"{np.mean(errors):.2f} ± {np.std(errors):.2f}",
        f"{np.mean(errors) / results.mean(setting, 'Euclid'):.2f}",
        *said,
        f"{results.mean(setting, method, 'fit_cpu_seconds'):.1f}",
        str(len(errors)),
        f"{on['rows']:,} × {on['columns']}",
    ]
    return f"| {' | '.join(cells)} |"


def figures(results: Results) -> dict[str, Figure]:
    """Figs. 3 and 4 of the paper, where their cells are there."""
    plain = next((s for s in results.settings("mnist") if "noise" not in s), None)
    if plain is None:
        return {}
    return {
        "fig3a-error": _error_by_ratio(results, plain),
        "fig3b-noise": _error_by_noise(results, plain),
        "fig4a-time": _time(results, plain),
        "fig4b-convergence": _convergence(results, plain),
    }


def _new_figure(title: str, x: str, y: str) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axis = figure.subplots()
    axis.set(title=title, xlabel=x, ylabel=y)
    return figure, axis


def _error_by_ratio(results: Results, setting: str) -> Figure:
    figure, axis = _new_figure("MNIST", "latent examples, % of rows", "test error, %")
    percents = [100 * ratio for ratio in RATIOS]
    for label, suffix in (("MaPML", ""), ("MaPML-O", "-O")):
        values = [results.values(setting, mapml_name(ratio) + suffix) for ratio in RATIOS]
        shown = [(p, np.mean(v), np.std(v)) for p, v in zip(percents, values, strict=True) if v]
        if shown:
            x, y, spread = zip(*shown, strict=True)
            axis.errorbar(x, y, spread, label=label, color=COLOURS[label], marker="o")
    for method in ("Euclid", "OASIS", "HR-SGD", "LMNN"):
        axis.axhline(results.mean(setting, method), label=method, color=COLOURS[method], ls="--")
    axis.legend()
    return figure


def _error_by_noise(results: Results, plain: str) -> Figure:
    figure, axis = _new_figure("MNIST, noise on training images", "σ × 255", "test error, %")
    places = {0: plain} | {
        noise: setting
        for noise in NOISES
        for setting in results.settings("mnist")
        if f"noise{noise}" in setting.split("-")
    }
    for label in ("Euclid", "OASIS", "HR-SGD", "LMNN", "MaPML-O", "MaPML"):
        method = label.replace("MaPML", "MaPML_10")
        errors = [results.mean(setting, method) for setting in places.values()]
        axis.plot(list(places), errors, label=label, color=COLOURS[label], marker="o")
    axis.legend()
    return figure


def _time(results: Results, setting: str) -> Figure:
    figure, axis = _new_figure("MNIST, training", "", "CPU seconds")
    methods = ("OASIS", "HR-SGD", "MaPML_10", "LMNN")
    seconds = [results.mean(setting, method, "fit_cpu_seconds") for method in methods]
    colours = [COLOURS[method.removesuffix("_10")] for method in methods]
    axis.bar(methods, seconds, color=colours)
    axis.set_yscale("log")
    return figure


def _convergence(results: Results, setting: str) -> Figure:
    figure, axis = _new_figure("MNIST, MaPML_10", "round", "objective")
    for trial in results.trials(setting, "MaPML_10"):
        axis.plot(trial["objectives"], color=COLOURS["MaPML"], alpha=0.6)
    axis.set_ylim(bottom=0)
    return figure
