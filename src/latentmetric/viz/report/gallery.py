"""The gallery: latent examples beside rows that they represent."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.types import Ints
from latentmetric.viz.clusters import Cluster, busiest_clusters
from latentmetric.viz.report.context import (
    LONGEST_OPTION,
    Context,
    paragraph,
    picture_key,
    row_text,
    section,
)
from latentmetric.viz.report.distinctive import Distinctive
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Html, counted, join, number, tag
from latentmetric.viz.summaries import class_errors, last_before_refinement

GALLERY_LATENTS = 240
"""Latent examples in the gallery, divided among the classes."""

MOST_OF_A_CLASS = 12

ORIGINALS = 6
"""Rows beside a latent example."""


def gallery_section(evidence: Evidence, context: Context) -> Html:
    """The latent examples with the most rows, each beside its nearest rows, class by class."""
    model, codes_of_latents = evidence.latent_model, evidence.latent_codes
    if model is None or codes_of_latents is None:
        said = (
            f"{type(evidence.model).__name__} votes with rows and has no latent examples to show."
        )
        return section("gallery", "Latent examples", paragraph(said))
    n_classes = len(context.labels)
    each = min(MOST_OF_A_CLASS, max(1, GALLERY_LATENTS // n_classes))
    codes = _gallery_classes(evidence, n_classes)
    distinctive = None if context.pictures is not None else Distinctive.of(evidence, context)
    members = _by_class(evidence.originals.codes, n_classes)
    latents = _by_class(codes_of_latents, n_classes)
    parts, n_shown = [], 0
    for code in codes:
        clusters = busiest_clusters(
            model, latents[code], evidence.originals.rows, members[code], each
        )
        strips = [_strip(cluster, evidence, context, distinctive) for cluster in clusters]
        n_shown += len(strips)
        long = "long" if len(context.labels[code]) > LONGEST_OPTION else None
        head = tag("h3", context.label(code), class_=long)
        parts.append(tag("div", head, *strips, class_="gallery-class", data_class=code))
    return section(
        "gallery",
        "Latent examples",
        paragraph(
            _kind_words(evidence, context, distinctive is not None),
            _count_words(model, n_shown, len(codes), n_classes, each),
        ),
        _units_words(evidence),
        _chooser(codes, context),
        tag("div", *parts, class_="gallery"),
    )


def _gallery_classes(evidence: Evidence, n_classes: int) -> list[int]:
    """All classes in order, or those with the highest error rates if there are too many."""
    if n_classes <= GALLERY_LATENTS:
        return list(range(n_classes))
    errors = class_errors(evidence.true, evidence.verdict.predicted, n_classes)
    hardest = np.argsort(-np.nan_to_num(errors.shares), kind="stable")[:GALLERY_LATENTS]
    return [int(code) for code in np.sort(hardest)]


def _by_class(codes: Ints, n_classes: int) -> list[Ints]:
    sizes = np.bincount(codes, minlength=n_classes)
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])


def _kind_words(evidence: Evidence, context: Context, listed: bool) -> str:
    """What latent examples are, and what is shown of each; ``listed`` if its values are."""
    known = evidence.shown_latents is not None
    framed = " (framed)" if known and context.pictures is not None else ""
    said = (
        f"Each latent example{framed} represents the rows of its class that are closer to it than "
        "to any other latent example of the class; the nearest of these rows follow it, with their "
        "distances. "
    )
    if not listed or not known:
        return said
    said += (
        "Of its values, those that differ most from the mean of all rows are listed, with the "
        "difference in standard deviations (sd). "
    )
    if _was_refined(evidence.model):
        said += (
            "Latent examples begin as averages of rows and are then moved so that the labels "
            "become likelier, so a value may lie outside the range of the data. "
        )
    return said


def _was_refined(model: Any) -> bool:
    """Whether the latent examples are those of a pass of the refinement."""
    before = last_before_refinement(model.history_)
    return before is not None and model.best_iter_ > before


def _count_words(model: Any, n_shown: int, n_listed: int, n_classes: int, each: int) -> str:
    """How many latent examples are shown, and which."""
    if n_shown == len(model.latent_examples_):
        return f"All {n_shown:,} latent examples are shown."
    share = f"up to {each}" if each > 1 else "1"
    said = (
        f"{n_shown:,} of {len(model.latent_examples_):,} latent examples are shown: {share} per "
        "class, those that represent the most rows"
    )
    return said + (
        "."
        if n_listed == n_classes
        else f", of the {n_listed:,} classes with the highest error rates."
    )


def _units_words(evidence: Evidence) -> Html | None:
    """In which units latent examples are, where a pipeline has changed them."""
    if evidence.piped.steps is None:
        return None
    said = "Values are in the units of the rows as they were given, before the steps."
    if evidence.piped.text_columns:
        said += " Of a column of words, the word is shown that a latent example has most of."
    if evidence.not_shown:
        said = (
            "The values of latent examples are not shown, because the units of the rows as they "
            f"were given are not known: {evidence.not_shown}."
        )
    return paragraph(said, class_="caption")


def _chooser(codes: list[int], context: Context) -> Html | None:
    if len(codes) < 2:
        return None
    return tag(
        "div",
        tag("button", "‹", type="button", class_="step", data_step=-1, aria_label="Previous class"),
        tag("label", tag("span", "Class", class_="unseen"),
            tag("select", *context.options(codes), class_="chooser")),
        tag("button", "›", type="button", class_="step", data_step=1, aria_label="Next class"),
        class_="choose needs-script",
    )  # fmt: skip


def _strip(
    cluster: Cluster, evidence: Evidence, context: Context,
    distinctive: Distinctive | None,
) -> Html:  # fmt: skip
    latent = evidence.latent_row(cluster.latent)
    said = f"latent example {cluster.latent:,}"
    framed = context.picture(("latent", cluster.latent), latent, said)
    caption = [
        tag("b", said),
        tag("span", f"represents {counted(len(cluster.rows), 'row')}"),
        None if distinctive is None or latent is None else distinctive.of_row(latent),
    ]
    rows = join(
        _original(row, distance, evidence, context)
        for row, distance in zip(
            cluster.rows[:ORIGINALS].tolist(), cluster.distances[:ORIGINALS].tolist(), strict=True
        )
    )
    return tag(
        "article",
        tag("div", framed, tag("div", *caption, class_="about"), class_="framed"),
        tag("ol", rows, class_="neighbors"),
        class_="strip",
        data_latent=cluster.latent,
    )


def _original(row: int, distance: float, evidence: Evidence, context: Context) -> Html:
    originals = evidence.originals
    name = row_text(originals, row)
    image = context.picture(picture_key(evidence, "original", row), originals.given[row], name)
    words = tag("span", number(distance), class_="distance")
    if image is None or originals.names is not None:
        return tag("li", image, tag("bdi", name, class_="name"), words)
    return tag("li", image, words, title=name)
