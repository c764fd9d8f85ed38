"""The map: latent examples and samples of rows, on the plane that separates the classes most.

It is a linear projection of the space under the metric, so distances on the map are never longer
than real ones. A metric of rank 2 gives a second view of the same points. The page's script gets
points and neighbours as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.distances import References, k_nearest
from latentmetric.core.types import Floats, Ints
from latentmetric.evaluation.sampling import sample
from latentmetric.viz.clusters import latent_codes
from latentmetric.viz.outliers import usual, view_of
from latentmetric.viz.report.context import (
    Context,
    Row,
    figure,
    head_cell,
    paragraph,
    picture_key,
    row_text,
    section,
    table,
    zoom_buttons,
)
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.flat import learned_plane, on_plane
from latentmetric.viz.report.markup import Html, join, number, percent, tag
from latentmetric.viz.report.rows import LabelledRows
from latentmetric.viz.summaries import class_means, widest_plane

MAX_LATENTS = 2000
MAX_ROWS = 1000
MAX_TESTED = 1000
"""Points of each kind on the map at most; if there are more, a stratified sample."""

COLOURS, SHAPES = 10, 5
"""Colours and shapes of the classes, of which no pair occurs twice up to their product."""

NEAREST = 3
"""Nearest latent examples that a point's card lists."""

GRID = 10_000
"""Coordinates are integers up to this: finer than any screen, shorter in JSON than floats."""

LISTED_PAIRS = 8
"""Pairs of neighbouring classes in the table below the map."""


@dataclass(frozen=True)
class _Points:
    """Points of one kind on the map."""

    kind: str
    """``row``, ``tested`` or ``latent``."""
    pool: LabelledRows | None
    """Where the rows are; None for latent examples."""
    numbers: Ints
    """In drawing order: the classes in turn, so that none covers the others."""
    codes: Ints
    rows: Floats
    """As the model takes them."""
    places: Floats
    """Their coordinates under the metric."""

    def __len__(self) -> int:
        return len(self.numbers)


def appearance(code: int) -> tuple[int, int]:
    """The numbers of a class's colour and shape."""
    return code % COLOURS, (code + code // COLOURS) % SHAPES


def map_section(evidence: Evidence, context: Context) -> Html:
    """The canvas, its controls, and a table of the closest classes."""
    if not evidence.is_metric:
        said = f"This {type(evidence.model).__name__} learned a similarity, so there is no map."
        return section("map", "Map", paragraph(said))
    kinds = [_rows(evidence, context), _tested(evidence, context), *_latents(evidence, context)]
    kinds = [points for points in kinds if len(points)]
    spanning = kinds[-1]
    near = usual(spanning.places)
    plane = widest_plane(spanning.places[near], spanning.codes[near])
    views = {"projection": np.concatenate([plane.project(points.places) for points in kinds])}
    fitted = learned_plane(evidence, context)
    if fitted is not None:
        views["learned"] = np.concatenate([on_plane(fitted, points.rows) for points in kinds])
    context.script_data["map"] = _script_data(evidence, context, views, kinds)
    share = _share(spanning.places[near], plane.project(spanning.places[near]))
    return section(
        "map",
        "Map",
        paragraph(_map_words(evidence, kinds)),
        _canvas(context, kinds, fitted is not None),
        paragraph(_caption(share, fitted is not None), class_="caption"),
        _in_words(spanning, evidence, context),
    )


def _caption(share: float, learned: bool) -> str:
    said = (
        f"The map is a linear projection of the learned space that keeps {percent(share)} of the "
        "variance. Points far apart on the map are far apart in the learned space; points close "
        "together on the map may not be. "
    )
    if learned:
        said += (
            "The other view is a metric of rank 2, learned on a sample of the training rows to "
            "keep the classes apart on a plane: better to look at, but not what the model uses. "
        )
    return said + (
        "Scroll, pinch or use the buttons to zoom, drag to move, point at or tap a point to see "
        "its details. With the keyboard, arrows move, + and − zoom, 0 shows everything, N and P "
        "go to the next and previous point, and Escape closes the details."
    )


def _under(evidence: Evidence, rows: Floats) -> Floats:
    points: Floats = evidence.model.model_.points(rows)
    return points


def _rows(evidence: Evidence, context: Context) -> _Points:
    """Training rows, or given rows that are not classified."""
    pool = evidence.originals
    open_ = np.arange(len(pool)) if evidence.has_training_rows else evidence.references
    numbers = open_[sample(pool.codes[open_], MAX_ROWS, context.generator)]
    rows = pool.rows[numbers]
    return _Points("row", pool, numbers, pool.codes[numbers], rows, _under(evidence, rows))


def _tested(evidence: Evidence, context: Context) -> _Points:
    """Classified rows, up to half of them misclassified ones if there are so many."""
    pool, queries = evidence.given, evidence.queries
    right, wrong = np.flatnonzero(evidence.right), np.flatnonzero(~evidence.right)
    wrong = wrong[sample(evidence.true[wrong], MAX_TESTED // 2, context.generator)]
    n_right = MAX_TESTED - len(wrong)
    right = right[sample(evidence.true[right], n_right, context.generator)]
    numbers = queries[np.concatenate((right, wrong))]
    rows = pool.rows[numbers]
    return _Points("tested", pool, numbers, pool.codes[numbers], rows, _under(evidence, rows))


def _latents(evidence: Evidence, context: Context) -> list[_Points]:
    model, codes = evidence.latent_model, evidence.latent_codes
    if model is None or codes is None:
        return []
    numbers = sample(codes, MAX_LATENTS, context.generator)
    rows = model.latent_examples_[numbers]
    return [_Points("latent", None, numbers, codes[numbers], rows, _under(evidence, rows))]


def _share(points: Floats, flat: Floats) -> float:
    whole = float(np.var(points, axis=0, dtype=np.float64).sum())
    return float(np.var(flat, axis=0).sum()) / whole if whole else 1.0


def _script_data(
    evidence: Evidence, context: Context, views: dict[str, Floats], kinds: list[_Points]
) -> dict[str, Any]:
    known = [points for points in kinds if points.pool is not None]
    shown = [
        context.thumbnail(*_key(evidence, points, place))
        for points in kinds
        for place in range(len(points))
    ]
    data: dict[str, Any] = {
        "labels": context.labels,
        "looks": [appearance(code) for code in range(len(context.labels))],
        "views": {name: _view(flat) for name, flat in views.items()},
        "code": np.concatenate([points.codes for points in kinds]).tolist(),
        "kinds": {points.kind: len(points) for points in kinds},
        "names": [row_text(p.pool, n) for p in known if p.pool for n in p.numbers.tolist()],
        "predicted": _predicted(evidence, kinds),
        "training": evidence.has_training_rows,
    }
    if kinds[-1].kind == "latent":
        data["latents"] = kinds[-1].numbers.tolist()
        data.update(_nearest(evidence, context, kinds))
    data["picture"] = [-1 if place is None else place for place in shown]
    return data


def _view(flat: Floats) -> dict[str, Any]:
    """Coordinates from the corner of what is shown first; outliers may lie outside."""
    low, high = view_of(flat)
    span = float((high - low).max()) or 1.0
    across, up = np.clip(np.rint((flat - low) / span * GRID), -(10**7), 10**7).astype(int).T
    wide, tall = np.maximum(np.rint((high - low) / span * GRID), 1).astype(int).tolist()
    return {"x": across.tolist(), "y": (tall - up).tolist(), "wide": wide, "high": tall}


def _predicted(evidence: Evidence, kinds: list[_Points]) -> list[int]:
    """What the tested rows were predicted as, in their order."""
    predicted = np.zeros(len(evidence.given), dtype=np.intp)
    predicted[evidence.queries] = evidence.verdict.predicted
    return [int(predicted[n]) for p in kinds if p.kind == "tested" for n in p.numbers.tolist()]


def _key(evidence: Evidence, points: _Points, place: int) -> tuple[tuple[str, int], Row | None]:
    """A point's key among the pictures, and its row in the units that the caller gave."""
    number_ = int(points.numbers[place])
    if points.pool is None:
        return ("latent", number_), evidence.latent_row(number_)
    pool = "given" if points.kind == "tested" else "original"
    return picture_key(evidence, pool, number_), points.pool.given[number_]


def _nearest(evidence: Evidence, context: Context, kinds: list[_Points]) -> dict[str, Any]:
    """The nearest latent examples of every point, other than the point itself."""
    model = evidence.model
    points, latents = np.concatenate([one.places for one in kinds]), kinds[-1]
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
        place = context.thumbnail(("latent", latent), evidence.latent_row(latent))
        known[str(latent)] = [int(codes[latent]), -1 if place is None else place]
    return {"near": near, "known": known}


def _map_words(evidence: Evidence, kinds: list[_Points]) -> str:
    words = {
        "row": f"{'training' if evidence.has_training_rows else 'other given'} rows (dots)",
        "tested": "tested rows (small marks)",
        "latent": "latent examples (large marks)",
    }
    n_all = {
        "row": len(evidence.originals) if evidence.has_training_rows else len(evidence.references),
        "tested": len(evidence.queries),
        "latent": 0 if evidence.latent_codes is None else len(evidence.latent_codes),
    }
    said = [f"{_some(len(p), n_all[p.kind])} {words[p.kind]}" for p in kinds]
    wrong = int((~evidence.right).sum())
    ringed = (
        f" Rings mark {_some(min(wrong, MAX_TESTED // 2), wrong)} misclassified ones."
        if wrong
        else ""
    )
    return (
        f"{', '.join(said).capitalize()}.{ringed} Each class has its own colour and shape; with "
        f"more than {COLOURS * SHAPES} classes, some repeat."
    )


def _some(n_shown: int, n_all: int) -> str:
    return f"all {n_all:,}" if n_shown == n_all else f"{n_shown:,} of {n_all:,}"


LAYERS = {"row": "rows", "tested": "tested rows", "latent": "latent examples"}
"""What can be shown and hidden on the map."""


def _canvas(context: Context, kinds: list[_Points], learned: bool) -> Html:
    described = (
        f"Map of {sum(map(len, kinds)):,} points of {len(context.labels):,} classes; the table "
        "below lists the closest classes."
    )
    return tag(
        "div",
        tag("div", _highlight(context), _views() if learned else None, zoom_buttons("map"),
            class_="map-bar"),
        tag("div", *(_layer(p.kind, LAYERS[p.kind]) for p in kinds),
            _layer("wrong", "misclassified only", checked=False), class_="layers"),
        figure(
            "map",
            tag("div",
                tag("canvas", described, class_="map", tabindex=0, role="application",
                    aria_label=described),
                tag("div", class_="card", hidden=True, aria_live="polite"),
                class_="map-frame"),
        ),
        paragraph(class_="outside"),
        tag("ul", class_="legend"),
        class_="needs-script",
    )  # fmt: skip


def _highlight(context: Context) -> Html:
    options = [tag("option", "every class", value=-1), *context.options(range(len(context.labels)))]
    return tag("label", "Highlight ", tag("select", *options, class_="highlight"))


def _views() -> Html:
    options = [
        tag("option", "projection", value="projection"),
        tag("option", "learned map, rank 2", value="learned"),
    ]
    return tag("label", "View ", tag("select", *options, class_="view"))


def _layer(kind: str, said: str, checked: bool = True) -> Html:
    box = tag("input", type="checkbox", class_="layer", value=kind, checked=checked)
    return tag("label", box, f" {said}")


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
    head = [head_cell("classes"), head_cell("distance between their means", "number")]
    return tag(
        "details",
        tag("summary", "The map in words: the closest classes"),
        table("closest-classes", head, lines, aria_label="The closest classes"),
    )
