"""The top of the page: key figures, the data, and the errors side by side."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from latentmetric.viz.report.charts import bar
from latentmetric.viz.report.context import Context, paragraph, section, table, value_range
from latentmetric.viz.report.evidence import Evidence, Vote
from latentmetric.viz.report.markup import Content, Html, counted, join, number, percent, shown, tag

SHOWN_FEATURES = 12
"""At most this many names of features are listed."""


def header(heading: str, evidence: Evidence, context: Context) -> Html:
    """The heading, one sentence, and a few large figures."""
    verdict = evidence.verdict
    figures = [_figure(percent(error_of(verdict, evidence)), f"error of {verdict.name}")]
    euclid = next((v for v in evidence.votes if v.name == "Euclid" and v is not verdict), None)
    if euclid is not None:
        figures.append(_figure(percent(error_of(euclid, evidence)), "error of Euclid"))
    model = evidence.latent_model
    if model is not None:
        figures.append(_figure(f"{len(model.latent_examples_):,}", "latent examples"))
    figures.append(_figure(f"{len(context.labels):,}", "classes"))
    return tag(
        "header",
        tag("h1", heading),
        paragraph(_summary(evidence, euclid), class_="lead"),
        tag("div", *figures, class_="figures"),
        id="top",
    )


def _figure(value: str, what: str) -> Html:
    return tag("div", tag("b", value), tag("span", what), class_="figure")


def _summary(evidence: Evidence, euclid: Vote | None) -> str:
    verdict = evidence.verdict
    said = (
        f"{verdict.name} votes with {_voters(verdict)} and misclassifies "
        f"{percent(error_of(verdict, evidence))} of {counted(len(evidence.queries), 'row')}"
    )
    if euclid is None:
        return said + "."
    return (
        f"{said}; the Euclidean distance with {_voters(euclid)} misclassifies "
        f"{percent(error_of(euclid, evidence))}."
    )


def _voters(vote: Vote) -> str:
    kinds = {"latent": "latent example", "original": "original row", "own": "stored row"}
    return counted(vote.n_references, kinds[vote.voters])


def error_of(vote: Vote, evidence: Evidence) -> float:
    """The share of the queries that the vote got wrong."""
    return float((vote.predicted != evidence.true).mean())


def data_section(evidence: Evidence, context: Context) -> Html:
    """The data, and the parameters of the model."""
    facts: list[tuple[str, Content]] = []
    if context.source is not None:
        facts.append(("Source", tag("bdi", context.source)))
    given, originals = evidence.given, evidence.originals
    facts.append(("Rows", f"{len(given):,}" + ("" if evidence.has_training_rows else " given")))
    if evidence.has_training_rows:
        facts.append(("Training rows", f"{len(originals):,}"))
    facts.append(("Features", f"{given.given.shape[1]:,}{_feature_names(context)}"))
    facts.append(("Classes", _class_sizes(evidence, context)))
    facts.append(("Values", _value_range(originals.given)))
    if evidence.piped.steps is not None:
        facts.append(("Steps before the model", _steps(evidence)))
    return section(
        "data",
        "The data",
        tag("dl", *(join((tag("dt", name), tag("dd", value))) for name, value in facts)),
        *_left_out(evidence),
        _parameters(evidence),
    )


def _feature_names(context: Context) -> str:
    if context.feature_names is None:
        return ""
    listed = ", ".join(context.feature_names[:SHOWN_FEATURES])
    more = len(context.feature_names) - SHOWN_FEATURES
    return f": {listed}" + (f" and {more:,} more" if more > 0 else "")


def _class_sizes(evidence: Evidence, context: Context) -> Content:
    sizes = np.bincount(evidence.originals.codes, minlength=len(context.labels))
    small, large = int(np.argmin(sizes)), int(np.argmax(sizes))
    if sizes[small] == sizes[large]:
        return f"{len(sizes):,}, of {counted(int(sizes[0]), 'row')} each"
    return join(
        (
            f"{len(sizes):,}, from {counted(int(sizes[small]), 'row')} (", context.label(small),
            f") to {int(sizes[large]):,} (", context.label(large), ")",
        )
    )  # fmt: skip


def _value_range(rows: np.ndarray[Any, Any]) -> str:
    low, high = value_range(rows)
    what = "numbers and words" if rows.dtype.kind == "O" else str(rows.dtype)
    return f"from {number(low)} to {number(high)}, {what}"


def _steps(evidence: Evidence) -> str:
    """The names and kinds of the steps, and in which space distances are."""
    assert evidence.piped.steps is not None
    listed = ", ".join(
        f"{shown(name, 40)} ({step if isinstance(step, str) else type(step).__name__})"
        for name, step in evidence.piped.steps.steps
    )
    width = evidence.given.rows.shape[1]
    return f"{listed}, to {width:,} features; distances are after the steps, rows as you gave them"


def _left_out(evidence: Evidence) -> list[Html]:
    notices = []
    pools = {"rows": evidence.given}
    if evidence.has_training_rows:
        pools["training rows"] = evidence.originals
    for what, rows in pools.items():
        if rows.left_out:
            notices.append(
                paragraph(
                    f"{rows.left_out:,} more {what} are left out: the model does not know their "
                    "labels, such as ",
                    tag("bdi", rows.unknown_label, class_="label"),
                    ".",
                    class_="notice",
                )
            )
    return notices


def _parameters(evidence: Evidence) -> Html:
    parameters = evidence.model.get_params(deep=False)
    rows = [
        [tag("th", name, scope="row"), tag("td", tag("bdi", shown(repr(value), 80)))]
        for name, value in parameters.items()
    ]
    head = [tag("th", "parameter", scope="col"), tag("th", "value", scope="col")]
    return tag(
        "details",
        tag("summary", f"Parameters of {type(evidence.model).__name__}"),
        tag("div", table(head, rows), class_="scroll"),
    )


def error_section(evidence: Evidence, context: Context) -> Html:
    """The errors of Euclid and of the model as bars, with what they were measured on."""
    errors = {vote.name: error_of(vote, evidence) for vote in evidence.votes}
    most = max([*errors.values(), 1e-12]) * 1.15
    lines = []
    for vote in evidence.votes:
        error = errors[vote.name]
        spread = sqrt(error * (1 - error) / len(evidence.queries))
        lines.append(
            [
                tag("th", vote.name, scope="row", class_="whole"),
                tag("td", percent(error), class_="number"),
                tag("td", bar(error / most, spread / most, _kind(vote)), class_="bar-cell"),
                tag("td", f"{round(error * len(evidence.queries)):,}", class_="number"),
                tag("td", _voters(vote), class_="wide"),
            ]
        )
    head = [
        tag("th", "method", scope="col"),
        tag("th", "error", scope="col", class_="number"),
        tag("th", tag("span", "bar", class_="unseen"), scope="col"),
        tag("th", "wrong", scope="col", class_="number"),
        tag("th", "votes with", scope="col", class_="wide"),
    ]
    return section(
        "errors",
        "Error",
        *_basis(evidence),
        table(head, lines, class_="bars", aria_label="Error of each method"),
        paragraph(_disagreement(evidence), " ", _legend(evidence), class_="caption"),
    )


def _kind(vote: Vote) -> str:
    return "base" if vote.name == "Euclid" else "alternative" if vote.name.endswith("-O") else ""


def _basis(evidence: Evidence) -> list[Html]:
    """What the errors were measured on, and a warning where they may be training errors."""
    n_queries, n_given = len(evidence.queries), len(evidence.given)
    of_all = "" if n_queries == n_given else f" of the {n_given:,} (a stratified sample)"
    if evidence.has_training_rows:
        said = (
            f"Measured on {counted(n_queries, 'row')}{of_all}, given separately from the "
            f"{counted(len(evidence.originals), 'training row')}."
        )
        seen = max(
            (vote.at_zero for vote in evidence.votes if vote.voters == "original"), default=0
        )
        if not seen:
            return [paragraph(said)]
        warning = (
            f"{seen:,} of these {n_queries:,} rows are also among the training rows. For these "
            "the error is a training error: expect more errors on new rows."
        )
        return [paragraph(said), paragraph(warning, class_="notice")]
    if len(evidence.references):
        held_out = (
            f"No training rows were given, so {counted(n_queries, 'row')}{of_all} are classified, "
            f"and the other {len(evidence.references):,} serve as original rows that vote. "
        )
    else:
        held_out = "No training rows were given, and there are too few rows to hold some out. "
    warning = (
        f"If {type(evidence.model).__name__} was fitted on these same rows, its errors here are "
        "training errors: expect more errors on new rows."
    )
    return [paragraph(held_out, warning, class_="notice")]


def _disagreement(evidence: Evidence) -> str:
    """How often only the model is right, and how often only Euclid is."""
    verdict = evidence.verdict
    euclid = next((v for v in evidence.votes if v.name == "Euclid" and v is not verdict), None)
    if euclid is None:
        return ""
    right, base = verdict.predicted == evidence.true, euclid.predicted == evidence.true
    gained, lost = int((right & ~base).sum()), int((base & ~right).sum())
    return (
        f"{verdict.name} gets {counted(gained, 'row')} right that Euclid gets wrong, and "
        f"{lost:,} wrong that Euclid gets right."
    )


def _legend(evidence: Evidence) -> str:
    said = "Whiskers show one standard error."
    if evidence.latent_model is not None:
        said += (
            " MaPML votes with its latent examples, MaPML-O with original rows under the same "
            "metric."
        )
    return said
