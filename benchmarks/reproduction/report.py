"""Tables in Markdown and figures in SVG and PNG from the results, beside the paper's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction import estimate
from reproduction.claims import Results, Verdict
from reproduction.figures import figures, save_figure
from reproduction.plan import ALTERNATIVES, CUTS, RATIOS, REDUCED_EUCLID, mapml_name

_IMAGENET = {
    "Euclid": 35.65, "OASIS": 36.51, "HR-SGD": 36.15, "MaPML_5-O": 35.59, "MaPML_5": 33.92,
}  # fmt: skip
PAPER_TABLES = {
    "cifar10": {
        "Euclid": 16.81, "OASIS": 15.22, "HR-SGD": 15.16, "LMNN": 13.62,
        "MaPML_10-O": 13.59, "MaPML_10": 12.64,
    },
    "cifar100": {
        "Euclid": 42.57, "OASIS": 42.46, "HR-SGD": 42.53, "LMNN": 40.05,
        "MaPML_10-O": 40.49, "MaPML_10": 34.70,
    },
    "imagenet200": _IMAGENET,
    "imagenet": _IMAGENET,
}  # fmt: skip
"""The paper's test errors in percent, on features of a ResNet18; ours are of another network. For
the 200 classes they are the paper's of all 1,000."""

DATASETS = ("mnist", "cifar10", "cifar100", "imagenet200", "imagenet", "banking77", "clinc150")
ROWS = (
    "Euclid", REDUCED_EUCLID, "OASIS", "HR-SGD", "HR-SGD, unbiased", "HR-SGD, all features", "LMNN",
    "MaPML_10-O", "MaPML_10",
)  # fmt: skip
AT_AN_END = (
    "Searches whose best factor is the least or the largest that was tried, so that a better one "
    "may lie beyond"
)
MORE_ROWS = ("MaPML_5, refined", "k-means prototypes, 5 %")


def write_report(
    results: Results, verdicts: list[Verdict], facts: dict[str, Any], out: Path
) -> Path:
    """Write the page and its figures to ``out``; the path of the page."""
    parts = ["# Reproduction of the paper's experiments", _facts(facts), _claims(verdicts)]
    cuts = [*CUTS, f"{AT_AN_END}: {'; '.join(ends)}."] if (ends := results.at_an_end()) else CUTS
    parts += ["## What was reduced\n\n" + "\n".join(f"- {cut}" for cut in cuts)]
    parts += [_table(results, name) for name in DATASETS if results.settings(name)]
    parts += [sentence] if (sentence := estimate.sentence(out)) else []
    for name, figure in figures(results).items():
        save_figure(figure, name, out)
    parts += [f"![{path.stem}]({path.name})" for path in sorted(out.glob("fig*.svg"))]
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
    """Errors of all methods without noise, and what they were fitted on."""
    setting = next(s for s in results.settings(dataset) if "noise" not in s)
    ratios = [mapml_name(ratio) for ratio in RATIOS if ratio != 0.10]
    methods = [
        *ROWS,
        *(f"{name}{o}" for name in ratios for o in ("-O", "")),
        *(name for name in ALTERNATIVES if name not in ROWS),
        *MORE_ROWS,
    ]
    rows = results.trials(setting, "Euclid")[:1]
    made = "image-like rows, not ImageNet; " if rows and rows[0].get("made") else ""
    about = f"Setting: {made}{setting}. Test error in percent ± standard deviation over trials."
    lines = [f"## {dataset}", "", about, ""]
    lines += ["| method | error | of Euclid's | paper | of Euclid's | CPU s | trials | fitted on |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    lines += [
        _line(results, setting, method) for method in methods if results.trials(setting, method)
    ]
    return "\n".join(lines)


def _line(results: Results, setting: str, method: str) -> str:
    errors, paper = results.values(setting, method), PAPER_TABLES.get(setting.split("-")[0], {})
    on = results.trials(setting, method)[0]["fitted_on"]
    published = ["", ""]
    if method in paper:
        published = [f"{paper[method]:.2f}", f"{paper[method] / paper['Euclid']:.2f}"]
    columns = [
        method,
        f"{np.mean(errors):.2f} ± {np.std(errors):.2f}",
        f"{np.mean(errors) / results.mean(setting, 'Euclid'):.2f}",
        *published,
        f"{results.mean(setting, method, 'fit_cpu_seconds'):.1f}",
        str(len(errors)),
        f"{on['rows']:,} × {on['columns']}",
    ]
    return f"| {' | '.join(columns)} |"
