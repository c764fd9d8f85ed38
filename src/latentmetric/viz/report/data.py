"""The data that the page is about, and the parameters of the model."""

from __future__ import annotations

import numpy as np

from latentmetric.viz.report.context import (
    Context,
    Row,
    head_cell,
    paragraph,
    section,
    table,
    value_range,
)
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import (
    Content,
    Html,
    breakable,
    counted,
    join,
    number,
    shown,
    tag,
)

SHOWN_FEATURES = 12
"""At most this many names of features are listed."""


def data_section(evidence: Evidence, context: Context) -> Html:
    """The data, and the parameters of the model."""
    facts: list[tuple[str, Content]] = []
    if context.source is not None:
        facts.append(("Source", tag("bdi", context.source)))
    given, originals = evidence.given, evidence.originals
    n_tested = len(evidence.queries)
    some = "" if n_tested == len(given) else f" of {len(given):,} given"
    facts.append(("Tested rows", f"{n_tested:,}{some}"))
    if evidence.has_training_rows:
        facts.append(("Training rows", f"{len(originals):,}"))
    facts.append(("Features", join((f"{given.given.shape[1]:,}", _feature_names(context)))))
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


def _feature_names(context: Context) -> Html | None:
    if context.feature_names is None:
        return None
    listed = breakable(", ".join(context.feature_names[:SHOWN_FEATURES]))
    more = len(context.feature_names) - SHOWN_FEATURES
    return join((": ", listed, f" and {more:,} more" if more > 0 else None))


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


def _value_range(rows: Row) -> str:
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
    head = [head_cell("parameter"), head_cell("value")]
    return tag(
        "details",
        tag("summary", f"Parameters of {type(evidence.model).__name__}"),
        table("parameters", head, rows),
    )
