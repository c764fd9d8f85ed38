"""Errors by class in a table that can be sorted."""

from __future__ import annotations

import numpy as np

from latentmetric.core.types import Ints
from latentmetric.viz.report.charts import bar
from latentmetric.viz.report.context import Context, paragraph, section, table
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, counted, number, percent, tag
from latentmetric.viz.summaries import ConfusedPair, class_errors, confused_pairs

MAX_CLASSES = 1000
"""Classes in the table at most; if there are more, those with the highest error rates."""

MOST_CONFUSED = "most often predicted as"
"""The heading of the column that names the most frequent wrong class."""


def class_section(evidence: Evidence, context: Context) -> Html:
    """A table with a line for each class: rows, error, latent examples, margin."""
    errors = class_errors(evidence.true, evidence.verdict.predicted, len(context.labels))
    order = np.lexsort((np.arange(len(errors.rows)), -np.nan_to_num(errors.shares)))[:MAX_CLASSES]
    pairs = confused_pairs(evidence.true, evidence.verdict.predicted)
    confusions: dict[int, ConfusedPair] = {}
    for pair in pairs:
        confusions.setdefault(pair.true, pair)
    most = float(np.nanmax(errors.shares)) or 1.0
    latents = _latent_counts(evidence)
    lines = []
    for code in order.tolist():
        share = float(errors.shares[code])
        line = [
            tag("th", context.label(code), scope="row", data_value=code),
            _cell(int(errors.rows[code])),
            _cell(share, percent(share)),
            tag("td", bar(0 if share != share else share / most), class_="bar-cell"),
            _cell(int(errors.wrong[code])),
        ]
        if latents is not None and evidence.latent_model is not None:
            line += [_cell(int(latents[code])), _cell(float(evidence.latent_model.margins_[code]))]
        line.append(_confusion(confusions.get(code), context))
        lines.append(line)
    heads = ["class", "tested rows", "error", "", "wrong"]
    heads += [] if latents is None else ["latent examples", "margin"]
    head = [_head(text) for text in [*heads, MOST_CONFUSED]]
    return section(
        "classes",
        "Classes",
        paragraph(*_class_words(evidence, errors.shares, order, context)),
        _filter(len(lines)),
        table("classes", head, lines, class_="sortable", aria_label="Errors by class"),
        _margin_words(evidence),
    )


def _latent_counts(evidence: Evidence) -> Ints | None:
    if evidence.latent_codes is None:
        return None
    return np.bincount(evidence.latent_codes, minlength=len(evidence.model.classes_))


def _cell(value: float, text: str | None = None) -> Html:
    written = number(value) if text is None else text
    return tag("td", written, class_="number", data_value="" if value != value else repr(value))


def _confusion(pair: ConfusedPair | None, context: Context) -> Html:
    if pair is None:
        return tag("td", "–", data_value="0")
    times = f" ×\N{NO-BREAK SPACE}{pair.count:,}"
    return tag("td", context.label(pair.predicted), times, data_value=pair.count)


def _head(text: str) -> Html:
    if not text:
        return tag("th", tag("span", "bar", class_="unseen"), scope="col", class_="bar-cell")
    number_column = text not in ("class", MOST_CONFUSED)
    button = tag("button", text, type="button")
    sorting = "descending" if text == "error" else None
    kind = "number" if number_column else "whole" if text == MOST_CONFUSED else None
    return tag("th", button, scope="col", class_=kind, aria_sort=sorting)


def _filter(n_lines: int) -> Html | None:
    if n_lines <= 20:
        return None
    return tag(
        "label",
        "Show classes that contain ",
        tag("input", type="search", class_="filter", autocomplete="off", spellcheck="false"),
        class_="filter-label needs-script",
    )


def _class_words(
    evidence: Evidence, shares: np.ndarray[tuple[int], np.dtype[np.floating]], order: Ints,
    context: Context,
) -> list[Html | str]:  # fmt: skip
    worst = int(order[0])
    words: list[Html | str]
    if not shares[worst] > 0:
        words = ["No class has errors."]
    else:
        words = [
            "The hardest class is ",
            context.label(worst),
            f" with an error of {percent(float(shares[worst]))}",
        ]
        clean = int((shares == 0).sum())
        words.append(f"; {counted(clean, 'class has', 'classes have')} none." if clean else ".")
    absent = int(np.isnan(shares).sum())
    if absent:
        words.append(f" {counted(absent, 'class', 'classes')} had no tested rows.")
    if len(shares) > MAX_CLASSES:
        words.append(f" The table lists the {MAX_CLASSES:,} hardest of {len(shares):,} classes.")
    words.append(" Click a heading to sort the table.")
    return words


def _margin_words(evidence: Evidence) -> Html:
    if evidence.latent_model is None:
        said = f"{type(evidence.model).__name__} has no latent examples, so there are no margins."
    else:
        said = (
            "The margin is how much nearer, in squared distance, a latent example should be to "
            "latent examples of its own class than to those of other classes. The more the rows of "
            "a class scatter around its latent examples, the larger its margin. It is in the "
            "square of the metric's own unit, which depends on the units of the columns: compare "
            "margins of classes with each other only."
        )
    return paragraph(said, class_="caption")
