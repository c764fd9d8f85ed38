"""Which classes are taken for which: a matrix that shows blocks, and the most confused pairs.

The page's script draws the matrix from the cells that are not empty, at most ``MAX_CELLS``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.types import Ints
from latentmetric.viz.report.charts import bar
from latentmetric.viz.report.context import (
    Context,
    figure,
    head_cell,
    paragraph,
    section,
    table,
    zoom_buttons,
)
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, counted, percent, tag
from latentmetric.viz.seriation import blocks_first
from latentmetric.viz.summaries import ConfusedPair, confused_pairs

MAX_PAIRS = 12
"""Pairs in the table."""

MAX_CELLS = 20_000
"""Cells of the matrix away from its diagonal; if there are more, those with the most rows."""

MAX_CLASSES = 1_000
"""Classes in the matrix; if there are more, those that are confused most often."""


def confusion_section(evidence: Evidence, context: Context) -> Html:
    """The matrix with its controls, and a table of the pairs with the most errors."""
    pairs = confused_pairs(evidence.true, evidence.verdict.predicted)
    sizes = np.bincount(evidence.true, minlength=len(context.labels))
    order = _order(pairs, len(context.labels))
    context.script_data["matrix"] = _script_data(evidence, context, pairs, order, sizes)
    return section(
        "confusion",
        "Confusion",
        paragraph(*_words(pairs, evidence, len(order), len(context.labels))),
        _canvas(len(order)),
        *_pairs(pairs, sizes, context),
    )


def _order(pairs: list[ConfusedPair], n_classes: int) -> list[int]:
    """The classes of the matrix, side by side if they are confused."""
    order = blocks_first(pairs, n_classes)
    if n_classes <= MAX_CLASSES:
        return order
    confused = np.zeros(n_classes, dtype=np.intp)
    for pair in pairs:
        confused[[pair.true, pair.predicted]] += pair.count
    kept = set(np.argsort(-confused, kind="stable")[:MAX_CLASSES].tolist())
    return [code for code in order if code in kept]


def _script_data(
    evidence: Evidence, context: Context, pairs: list[ConfusedPair], order: list[int], sizes: Ints
) -> dict[str, Any]:
    """The classes in their order, their rows, and the cells as place, place and count."""
    place = {code: number for number, code in enumerate(order)}
    right = np.bincount(evidence.true[evidence.right], minlength=len(context.labels))
    cells = [[number, number, int(right[code])] for number, code in enumerate(order) if right[code]]
    shown = [pair for pair in pairs if pair.true in place and pair.predicted in place][:MAX_CELLS]
    cells += [[place[pair.true], place[pair.predicted], pair.count] for pair in shown]
    return {
        "labels": [context.labels[code] for code in order],
        "sizes": [int(sizes[code]) for code in order],
        "cells": cells,
    }


def _words(
    pairs: list[ConfusedPair], evidence: Evidence, n_shown: int, n_classes: int
) -> list[str]:
    if not pairs:
        return ["No classes were confused: every tested row was classified correctly."]
    wrong = sum(pair.count for pair in pairs)
    words = [
        f"{counted(len(pairs), 'pair of classes was', 'pairs of classes were')} confused, "
        f"{counted(wrong, 'row')} in all. A row of the matrix is a true class, a column what it "
        "was predicted as; classes that are confused stand side by side, so that blocks are groups "
        "of similar classes. The colour is the share of the true class's rows."
    ]
    if n_shown < n_classes:
        words.append(
            f" It shows the {n_shown:,} of {n_classes:,} classes that are confused most often."
        )
    return words


def _canvas(n_classes: int) -> Html:
    described = (
        f"Confusion matrix of {counted(n_classes, 'class', 'classes')}; the table below lists the "
        "most confused pairs."
    )
    words = tag("span", "Point at a cell to read it.", class_="matrix-words", aria_live="polite")
    return tag(
        "div",
        tag("div", words, zoom_buttons("matrix"), class_="map-bar"),
        figure(
            "confusion",
            tag("canvas", described, class_="matrix", tabindex=0, role="application",
                aria_label=described),
        ),
        paragraph(
            "Arrow keys move from cell to cell.",
            tag("span", " Where names or numbers have no room, scroll, pinch or use the buttons "
                "(+, − and 0 on the keyboard) to zoom, and drag to move.", data_of="matrix"),
            class_="caption",
        ),
        class_="needs-script",
    )  # fmt: skip


def _pairs(pairs: list[ConfusedPair], sizes: Ints, context: Context) -> list[Html]:
    if not pairs:
        return []
    most = pairs[0].count
    lines = [
        [
            tag("th", context.label(pair.true), scope="row"),
            tag("td", context.label(pair.predicted)),
            tag("td", f"{pair.count:,}", class_="number", data_value=pair.count),
            tag("td", bar(pair.count / most), class_="bar-cell"),
            tag("td", percent(pair.count / sizes[pair.true]), class_="number",
                data_value=repr(float(pair.count / sizes[pair.true]))),
        ]
        for pair in pairs[:MAX_PAIRS]
    ]  # fmt: skip
    head = [
        head_cell("true class"),
        head_cell("predicted as"),
        head_cell("rows", "number"),
        tag("th", tag("span", "bar", class_="unseen"), scope="col", class_="bar-cell"),
        head_cell("share of the true class", "number"),
    ]
    parts = [tag("h3", "Most confused pairs")]
    if len(pairs) > MAX_PAIRS:
        wrong = sum(pair.count for pair in pairs)
        top = sum(pair.count for pair in pairs[:MAX_PAIRS])
        parts.append(paragraph(f"These {MAX_PAIRS} make up {percent(top / wrong)} of the errors."))
    return [*parts, table("pairs", head, lines, aria_label="Most confused pairs")]
