"""Misclassified rows beside their nearest neighbours, with their values where rows are a table."""

from __future__ import annotations

import numpy as np

from latentmetric.viz.report.context import Context, paragraph, picture_key, row_text, section
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Content, Html, counted, join, number, percent, tag
from latentmetric.viz.report.values import has_values, values_table
from latentmetric.viz.summaries import confused_pairs

MISTAKES = 24
"""Misclassified rows on the page."""

TABLES = 6
"""Of rows with tables of values, those that are seen at once."""


def mistake_section(evidence: Evidence, context: Context) -> Html:
    """Misclassified rows beside their nearest neighbours among the voters."""
    wrong = np.flatnonzero(evidence.verdict.predicted != evidence.true)
    if not len(wrong):
        said = "No tested row was misclassified."
        return section("mistakes", "Misclassified rows", paragraph(said))
    chosen = _by_turns(evidence)
    valued = has_values(evidence, context)
    distances = " and their distances" if evidence.is_metric else ""
    said = (
        f"{len(chosen):,} of {counted(len(wrong), 'misclassified row')}, taken in turn from the "
        "most confused pairs, each with the shares of the vote that its own class and the "
        f"predicted one have, and with its nearest neighbours{distances}."
    )
    if valued:
        said += (
            " The tables compare its values with those of the nearest reference of the predicted "
            "class and of its own; the features at the top pull it most towards the predicted one."
        )
        if evidence.piped.text_columns and evidence.verdict.voters == "latent":
            said += " Of a column of words, a latent example shows the word that it has most of."
    return section(
        "mistakes",
        "Misclassified rows",
        paragraph(said),
        *_cards([_mistake(place, evidence, context, valued) for place in chosen], valued),
    )


def _cards(cards: list[Html], valued: bool) -> list[Html]:
    """The cards; of many tables, the first ones, and the others behind a line to click."""
    kind = "mistakes valued" if valued else "mistakes"
    n_seen = TABLES if valued else len(cards)
    seen, more = cards[:n_seen], cards[n_seen:]
    parts = [tag("div", *seen, class_=kind)]
    if more:
        summary = tag("summary", f"Show {len(more):,} more")
        parts.append(tag("details", summary, tag("div", *more, class_=kind), class_="printed"))
    return parts


def _by_turns(evidence: Evidence) -> list[int]:
    """Mistakes to show: the first of each of the most confused pairs, then the second of each, …"""
    true, predicted = evidence.true, evidence.verdict.predicted
    waiting = [
        np.flatnonzero((true == pair.true) & (predicted == pair.predicted)).tolist()
        for pair in confused_pairs(true, predicted)[:MISTAKES]
    ]
    chosen: list[int] = []
    while any(waiting) and len(chosen) < MISTAKES:
        for places in waiting:
            if places and len(chosen) < MISTAKES:
                chosen.append(places.pop(0))
    return chosen


def _mistake(place: int, evidence: Evidence, context: Context, valued: bool) -> Html:
    row = int(evidence.queries[place])
    name = row_text(evidence.given, row)
    image = context.picture(picture_key(evidence, "given", row), evidence.given.given[row], name)
    predicted = int(evidence.verdict.predicted[place])
    about = tag(
        "div",
        tag(
            "b",
            context.label(int(evidence.true[place])),
            " predicted as ",
            context.label(predicted),
        ),
        _shares(place, evidence, context),
        tag("bdi", name, class_="name"),
        class_="about",
    )
    neighbors = join(
        _neighbor(int(number_), float(distance), evidence, context)
        for number_, distance in zip(
            evidence.verdict.neighbors[place], evidence.verdict.distances[place], strict=True
        )
    )
    return tag(
        "article",
        tag("div", image, about, class_="framed"),
        tag("ol", neighbors, class_="neighbors"),
        values_table(place, evidence, context) if valued else None,
        class_="mistake",
    )


def _shares(place: int, evidence: Evidence, context: Context) -> Html:
    """How the vote went for the predicted class and for the row's own."""
    verdict = evidence.verdict
    return tag(
        "span",
        f"Vote: {percent(float(verdict.confidence[place]))} for ",
        context.label(int(verdict.predicted[place])),
        f", {percent(float(verdict.own_share[place]))} for ",
        context.label(int(evidence.true[place])),
        class_="shares",
    )


def _neighbor(reference: int, distance: float, evidence: Evidence, context: Context) -> Html:
    voters, model = evidence.verdict.voters, evidence.latent_model
    how_far = tag("span", number(distance), class_="distance") if evidence.is_metric else None
    if voters == "own":
        code = int(evidence.model.model_.codes[reference])
        return tag("li", context.label(code), how_far)
    image: Content
    if voters == "latent" and model is not None and evidence.latent_codes is not None:
        code = int(evidence.latent_codes[reference])
        name = f"latent example {reference:,}"
        image = context.picture(("latent", reference), evidence.latent_row(reference), name)
        named = False
    else:
        originals = evidence.originals
        code, name = int(originals.codes[reference]), row_text(originals, reference)
        key = picture_key(evidence, "original", reference)
        image = context.picture(key, originals.given[reference], name)
        named = originals.names is not None
    words = tag("bdi", name, class_="name") if named else None
    return tag("li", image, context.label(code), words, how_far, title=None if named else name)
