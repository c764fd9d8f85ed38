"""Figs. 3 and 4 of the paper from the results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.claims import Results
from reproduction.plan import NOISES, RATIOS, mapml_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "Euclid": "tab:gray", "OASIS": "tab:olive", "HR-SGD": "tab:orange", "LMNN": "tab:green",
    "MaPML-O": "tab:blue", "MaPML": "tab:red",
}  # fmt: skip


def save_figure(figure: Figure, name: str, out: Path) -> None:
    """Write SVG and PNG; the same figure gives the same bytes."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": name}):
        figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    figure.savefig(out / f"{name}.png", dpi=150)


def figures(results: Results) -> dict[str, Figure]:
    """The figures by name; none without results on MNIST."""
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

    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
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
    figure.legend(loc="outside right upper")
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
    figure.legend(loc="outside right upper")
    return figure


def _time(results: Results, setting: str) -> Figure:
    figure, axis = _new_figure("MNIST, CPU seconds of training, log scale", "", "")
    methods = ("LMNN", "MaPML_10", "HR-SGD, all features", "OASIS")
    seconds = {m: results.mean(setting, m, "fit_cpu_seconds") for m in methods}
    seconds = {method: value for method, value in seconds.items() if value > 0}
    if seconds:
        colours = [COLOURS[method.split(",")[0].removesuffix("_10")] for method in seconds]
        names = [method.replace(", ", ",\n") for method in seconds]
        bars = axis.barh(names, list(seconds.values()), color=colours)
        axis.bar_label(bars, [f" {value:.0f} s" for value in seconds.values()])
        axis.set_xscale("log")
        axis.margins(x=0.15)
    axis.tick_params(axis="x", which="both", bottom=False, labelbottom=False)
    return figure


def _convergence(results: Results, setting: str) -> Figure:
    figure, axis = _new_figure("MNIST, MaPML_10", "round", "objective")
    for trial in results.trials(setting, "MaPML_10"):
        axis.plot(trial["objectives"], color=COLOURS["MaPML"], alpha=0.6)
    axis.set_ylim(bottom=0)
    return figure
