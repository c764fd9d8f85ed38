"""The section of doubtful labels."""

from __future__ import annotations

from latentmetric.viz.report.context import (
    Context,
    head_cell,
    paragraph,
    picture_key,
    row_number,
    row_text,
    section,
    table,
)
from latentmetric.viz.report.doubtful import CUT_OFF, Doubt, Doubts
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, counted, percent, tag
from latentmetric.viz.report.rows import LabelledRows


def doubt_section(evidence: Evidence, context: Context) -> Html:
    """A table of the rows whose labels are least likely, the worst first."""
    doubts = evidence.doubts
    if doubts is None:
        said = (
            f"This {type(evidence.model).__name__} has no latent examples to judge labels by, so "
            "no labels are called doubtful."
        )
        return section("doubts", "Doubtful labels", paragraph(said))
    if not doubts.worst:
        said = (
            f"No label of {counted(doubts.n_judged, 'row')} is doubtful: none has a score below "
            f"{CUT_OFF}."
        )
        return section("doubts", "Doubtful labels", paragraph(said))
    return section(
        "doubts",
        "Doubtful labels",
        paragraph(_words(doubts, evidence)),
        _table(doubts, evidence, context),
        paragraph(
            "The score is how likely the given label is, judged with a training row left out of "
            "its latent example. A doubtful label is wrong, or the row is unusual for its class. "
            "The command doubts lists more rows.",
            class_="caption",
        ),
    )


def _words(doubts: Doubts, evidence: Evidence) -> str:
    said = (
        f"{counted(doubts.n_unlikely, 'label', 'labels')} of {doubts.n_judged:,} "
        f"{'is' if doubts.n_unlikely == 1 else 'are'} doubtful, with a score below {CUT_OFF}."
    )
    if doubts.n_unlikely > len(doubts.worst):
        said += f" These are the {len(doubts.worst)} lowest."
    if not evidence.has_training_rows:
        said += " The rows are judged as if the model was fitted on them."
    return said


def _table(doubts: Doubts, evidence: Evidence, context: Context) -> Html:
    head = [
        head_cell("row"),
        head_cell("label"),
        head_cell("likelier"),
        head_cell("score", "number"),
        head_cell("share of the likelier", "number"),
        head_cell("from"),
    ]
    lines = [_line(doubt, evidence, context) for doubt in doubts.worst]
    return table("doubts", head, lines, aria_label="Doubtful labels")


def _row(rows: LabelledRows, row: int, image: Html | None) -> Html:
    """The picture and the name of a row; its number stands alone below "row"."""
    if rows.names is None:
        return tag("th", image, row_number(rows, row), scope="row", class_="pictured numbered")
    name = tag("bdi", rows.names[row], class_="name")
    return tag("th", image, name, scope="row", class_="pictured")


def _line(doubt: Doubt, evidence: Evidence, context: Context) -> list[Html]:
    rows = evidence.originals if doubt.training else evidence.given
    pool = "original" if doubt.training else "given"
    name = row_text(rows, doubt.row)
    key = picture_key(evidence, pool, doubt.row)
    image = context.picture(key, rows.given[doubt.row], name)
    known = "given rows" if not evidence.has_training_rows else "training rows"
    return [
        _row(rows, doubt.row, image),
        tag("td", context.label(doubt.code)),
        tag("td", context.label(doubt.likelier)),
        tag("td", percent(doubt.score), class_="number", data_value=repr(doubt.score)),
        tag("td", percent(doubt.share), class_="number", data_value=repr(doubt.share)),
        tag("td", known if doubt.training else "test rows"),
    ]
