"""The map: latent examples and a sample of rows on the plane that separates the classes most.

It is a linear projection of the space under the metric, so distances on the map are never longer
than real ones. The page's script gets points and neighbours as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.distances import References, k_nearest
from latentmetric.core.types import Floats, Ints
from latentmetric.viz.clusters import latent_codes
from latentmetric.viz.report.context import Context, Row, paragraph, row_text, section, table
from latentmetric.viz.report.evidence import Evidence, sample
from latentmetric.viz.report.markup import Html, join, number, percent, tag
from latentmetric.viz.summaries import class_means, widest_plane

MAX_LATENTS = 2000
MAX_ROWS = 1000
"""Points on the map at most; if there are more, a stratified sample."""

NEAREST = 3
"""Nearest latent examples that a point's card lists."""

GRID = 10_000
"""Coordinates are integers up to this: finer than any screen, shorter in JSON than floats."""

LISTED_PAIRS = 8
"""Pairs of neighbouring classes in the table below the map."""


@dataclass(frozen=True)
class _Points:
    """Points of one kind on the map."""

    numbers: Ints
    """In drawing order: the classes in turn, so that none covers the others."""
    codes: Ints
    places: Floats
    """Their coordinates under the metric."""


def map_section(evidence: Evidence, context: Context) -> Html:
    """The canvas, its controls, and a table of the closest classes."""
    if not evidence.is_metric:
        said = f"This {type(evidence.model).__name__} learned a similarity, so there is no map."
        return section("map", "Map", paragraph(said))
    rows = _rows(evidence, context)
    latents = _latents(evidence, context)
    spanning = rows if latents is None else latents
    plane = widest_plane(spanning.places, spanning.codes)
    context.script_data["map"] = _script_data(evidence, context, plane.project, latents, rows)
    share = _share(spanning.places, plane.project(spanning.places))
    return section(
        "map",
        "Map",
        paragraph(_map_words(evidence, latents, rows)),
        _canvas(evidence, context, latents, rows),
        paragraph(
            "The map is a linear projection of the learned space that keeps "
            f"{percent(share)} of the variance. Points far apart on the map are far apart in the "
            "learned space; points close together on the map may not be. Scroll, pinch or use the "
            "buttons to zoom, drag to move, point at or tap a point to see its details. With the "
            "keyboard, arrows move, + and − zoom, 0 shows everything, N and P go to the next and "
            "previous point, and Escape closes the details.",
            class_="caption",
        ),
        _in_words(spanning, evidence, context),
    )


def _under(evidence: Evidence, rows: Floats, which: Ints) -> Floats:
    points: Floats = evidence.model.model_.points(rows[which])
    return points


def _rows(evidence: Evidence, context: Context) -> _Points:
    codes = evidence.originals.codes
    numbers = sample(codes, MAX_ROWS, context.generator)
    return _Points(numbers, codes[numbers], _under(evidence, evidence.originals.rows, numbers))


def _latents(evidence: Evidence, context: Context) -> _Points | None:
    model, codes = evidence.latent_model, evidence.latent_codes
    if model is None or codes is None:
        return None
    numbers = sample(codes, MAX_LATENTS, context.generator)
    return _Points(numbers, codes[numbers], _under(evidence, model.latent_examples_, numbers))


def _share(points: Floats, flat: Floats) -> float:
    whole = float(np.var(points, axis=0, dtype=np.float64).sum())
    return float(np.var(flat, axis=0).sum()) / whole if whole else 1.0


def _script_data(
    evidence: Evidence, context: Context, project: Any, latents: _Points | None, rows: _Points
) -> dict[str, Any]:
    kinds = [rows] if latents is None else [rows, latents]
    flat = np.concatenate([project(points.places) for points in kinds])
    low, span = flat.min(axis=0), float(np.ptp(flat, axis=0).max()) or 1.0
    across, down = np.rint((flat - low) / span * GRID).astype(int).T
    shown = [context.thumbnail(*_row_key(evidence, row)) for row in rows.numbers.tolist()]
    data: dict[str, Any] = {
        "labels": context.labels,
        "x": across.tolist(),
        "y": (int(down.max()) - down).tolist(),
        "code": np.concatenate([points.codes for points in kinds]).tolist(),
        "rows": len(rows.numbers),
        "names": [row_text(evidence.originals, row) for row in rows.numbers.tolist()],
        "training": evidence.has_training_rows,
    }
    model = evidence.latent_model
    if model is not None and latents is not None:
        shown += [
            context.thumbnail(*_latent_key(evidence, one)) for one in latents.numbers.tolist()
        ]
        data["latents"] = latents.numbers.tolist()
        data.update(_nearest(evidence, context, np.concatenate([p.places for p in kinds]), latents))
    data["picture"] = [-1 if place is None else place for place in shown]
    return data


def _row_key(evidence: Evidence, row: int) -> tuple[tuple[str, int], Row]:
    pool = "original" if evidence.has_training_rows else "row"
    return (pool, row), evidence.originals.given[row]


def _latent_key(evidence: Evidence, latent: int) -> tuple[tuple[str, int], Row | None]:
    return ("latent", latent), evidence.latent_row(latent)


def _nearest(
    evidence: Evidence, context: Context, points: Floats, latents: _Points
) -> dict[str, Any]:
    """The nearest latent examples of every point, other than the point itself."""
    model = evidence.model
    places = model.model_.points(model.latent_examples_)
    squared, found = k_nearest(points, References.of(places), min(NEAREST + 1, len(places)))
    distances = model.model_.distances(squared)
    itself = np.full(len(points), -1)
    itself[len(points) - len(latents.numbers) :] = latents.numbers
    near: list[list[list[float]]] = []
    met: dict[int, None] = {}
    for own, numbers, lengths in zip(
        itself.tolist(), found.tolist(), distances.tolist(), strict=True
    ):
        others = [(n, d) for n, d in zip(numbers, lengths, strict=True) if n != own][:NEAREST]
        near.append([[n, float(f"{d:.4g}")] for n, d in others])
        met.update({n: None for n, _ in others})
    codes = latent_codes(model)
    known = {}
    for latent in met:
        place = context.thumbnail(*_latent_key(evidence, latent))
        known[str(latent)] = [int(codes[latent]), -1 if place is None else place]
    return {"near": near, "known": known}


def _map_words(evidence: Evidence, latents: _Points | None, rows: _Points) -> str:
    n_rows = len(evidence.originals)
    what = "training rows" if evidence.has_training_rows else "given rows"
    said = f"{_some(len(rows.numbers), n_rows)} {what}"
    if latents is None or evidence.latent_model is None:
        return f"Small points are {said}."
    some = _some(len(latents.numbers), len(evidence.latent_model.latent_examples_))
    return (
        f"Large marks are {some} latent examples, small points are {said}. Each class has its own "
        "colour and shape; if there are many classes, some repeat."
    )


def _some(n_shown: int, n_all: int) -> str:
    return f"all {n_all:,}" if n_shown == n_all else f"{n_shown:,} of {n_all:,}"


def _canvas(evidence: Evidence, context: Context, latents: _Points | None, rows: _Points) -> Html:
    described = (
        f"Map of {0 if latents is None else len(latents.numbers):,} latent examples and "
        f"{len(rows.numbers):,} rows of {len(context.labels):,} classes; the table below lists "
        "the closest classes."
    )
    buttons = [
        tag("button", text, type="button", data_zoom=zoom, aria_label=said)
        for text, zoom, said in (("+", 1.5, "Zoom in"), ("−", 1 / 1.5, "Zoom out"),
                                 ("⟲", 0, "Show all"))
    ]  # fmt: skip
    options = [tag("option", "every class", value=-1)]
    options += [tag("option", text, value=code) for code, text in enumerate(context.labels)]
    return tag(
        "div",
        tag("div", tag("label", "Highlight ", tag("select", *options, class_="highlight")),
            tag("span", *buttons, class_="zoom"), class_="map-bar"),
        tag("div",
            tag("canvas", described, class_="map", tabindex=0, role="application",
                aria_label=described),
            tag("div", class_="card", hidden=True, aria_live="polite"),
            class_="map-frame"),
        tag("ul", class_="legend"),
        class_="needs-script",
    )  # fmt: skip


def _in_words(points: _Points, evidence: Evidence, context: Context) -> Html | None:
    """A table of each class and the nearest other one, closest pairs first."""
    present, means, _ = class_means(points.places, points.codes)
    if len(present) < 2:
        return None
    squared, found = k_nearest(means, References.of(means), 2)
    distances = evidence.model.model_.distances(squared[:, 1])
    lines, listed = [], set()
    for place in np.argsort(distances, kind="stable").tolist():
        other = int(found[place, 1]) if found[place, 1] != place else int(found[place, 0])
        pair = frozenset((place, other))
        if pair in listed:
            continue
        listed.add(pair)
        left, right = context.label(int(present[place])), context.label(int(present[other]))
        lines.append(
            [tag("th", join((left, " and ", right)), scope="row"),
             tag("td", number(float(distances[place])), class_="number")]
        )  # fmt: skip
        if len(lines) == LISTED_PAIRS:
            break
    head = [
        tag("th", "classes", scope="col"),
        tag("th", "distance between their means", scope="col", class_="number"),
    ]
    return tag(
        "details",
        tag("summary", "The map in words: the closest classes"),
        table(head, lines),
    )
