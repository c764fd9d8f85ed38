"""The map: latent examples and samples of rows, on the plane that separates the classes most.

It is a linear projection of the space under the metric, so distances on the map are never longer
than real ones. A metric of rank 2 gives a second view of the same points. The page's script gets
points and neighbours as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.distances import References, k_nearest
from latentmetric.core.starts import STARTS
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators.mapml import MaPML
from latentmetric.evaluation.sampling import sample
from latentmetric.viz.report import limits
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.gallery import options
from latentmetric.viz.report.pictures import Pictures
from latentmetric.viz.report.rows import LabelledRows
from latentmetric.viz.summaries import class_means, starts, usual, view_of, widest_plane

COLOURS, SHAPES = 10, 5
"""Colours and shapes of the classes, of which no pair occurs twice up to their product."""

GRID = 10_000
"""Coordinates are integers up to this: finer than any screen, shorter in JSON than floats."""


@dataclass(frozen=True)
class Points:
    """Points of one kind on the map."""

    kind: str
    """``row``, ``tested`` or ``latent``."""
    pool: LabelledRows | None
    """Where the rows are; None for latent examples."""
    n_all: int
    """How many there are, of which the map shows a sample."""
    indices: Ints
    """In drawing order: the classes in turn, so that none covers the others."""
    codes: Ints
    rows: Floats
    """As the model takes them."""
    positions: Floats
    """Their coordinates under the metric."""

    def __len__(self) -> int:
        return len(self.indices)


def appearance(code: int) -> tuple[int, int]:
    """The numbers of a class's colour and shape."""
    return code % COLOURS, (code + code // COLOURS) % SHAPES


def map_section(
    evidence: Evidence,
    pictures: Pictures,
    generator: np.random.Generator,
    quick: bool,
    on_start: Callable[[str], None],
) -> dict[str, Any]:
    """The points for the canvas, and a table of the closest classes."""
    if not evidence.is_metric:
        return {"script": None}
    kinds = _all_points(evidence, generator)
    spanning = kinds[-1]
    near = usual(spanning.positions)
    spread = spanning.positions[near]
    plane = widest_plane(spread, spanning.codes[near])
    variance = float(np.var(spread, axis=0, dtype=np.float64).sum())
    kept = float(np.var(plane.project(spread), axis=0).sum())
    views = {"projection": np.concatenate([plane.project(points.positions) for points in kinds])}
    fitted = None if quick else _fit_plane(evidence, on_start)
    if fitted is not None:
        rows = np.concatenate([fitted.transform(points.rows) for points in kinds], dtype=np.float64)
        views["learned"] = np.pad(rows, ((0, 0), (0, 2 - rows.shape[1])))
    n_wrong = int((~evidence.right).sum())
    return {
        "script": _script_data(evidence, pictures, views, kinds),
        "kinds": kinds,
        "n_points": sum(map(len, kinds)),
        "n_wrong": n_wrong,
        "n_ringed": min(n_wrong, limits.MAX_MAP_TESTED // 2),
        "n_looks": COLOURS * SHAPES,
        "share": kept / variance if variance else 1.0,
        "has_learned": fitted is not None,
        "options": options(evidence, list(range(len(evidence.labels)))),
        "closest": _closest_classes(spanning, evidence),
    }


def _all_points(evidence: Evidence, generator: np.random.Generator) -> list[Points]:
    """Rows, tested rows and latent examples, where there are any."""
    model, pool = evidence.model, evidence.originals

    def points(kind: str, rows: LabelledRows | None, n_all: int, indices: Ints) -> Points:
        if rows is None:
            own, codes = model.latent_examples_[indices], evidence.latent_codes
            assert codes is not None
        else:
            own, codes = rows.rows[indices], rows.codes
        positions = model.model_.points(own)
        return Points(kind, rows, n_all, indices, codes[indices], own, positions)

    others = np.arange(len(pool)) if evidence.has_training_rows else evidence.references
    chosen = others[sample(pool.codes[others], limits.MAX_MAP_ROWS, generator)]
    kinds = [points("row", pool, len(others), chosen)]
    # Up to half of the tested rows are misclassified ones if there are so many.
    right, wrong = np.flatnonzero(evidence.right), np.flatnonzero(~evidence.right)
    wrong = wrong[sample(evidence.true[wrong], limits.MAX_MAP_TESTED // 2, generator)]
    right = right[sample(evidence.true[right], limits.MAX_MAP_TESTED - len(wrong), generator)]
    chosen = evidence.queries[np.concatenate((right, wrong))]
    kinds.append(points("tested", evidence.given, len(evidence.queries), chosen))
    if evidence.latent_codes is not None:
        chosen = sample(evidence.latent_codes, limits.MAX_MAP_LATENTS, generator)
        kinds.append(points("latent", None, len(evidence.latent_codes), chosen))
    return [one for one in kinds if len(one)]


def _fit_plane(evidence: Evidence, on_start: Callable[[str], None]) -> Any:
    """A MaPML of rank 2, fitted to a sample; None where it would tell nothing new."""
    model = evidence.latent_model
    if model is None or not evidence.has_training_rows:
        return None
    rows, codes = evidence.originals.rows, evidence.originals.codes
    if len(model.components_) <= 2 or len(np.unique(codes)) < 2:
        return None
    on_start("map of rank 2")
    chosen = np.sort(sample(codes, limits.MAX_FITTED, np.random.default_rng(0)))
    start = starts(model.history_).chosen
    start = start if start in STARTS else "auto"
    learner = MaPML(n_components=2, start=start, random_state=0, n_jobs=model.n_jobs)
    return learner.fit(rows[chosen], codes[chosen])


def _script_data(
    evidence: Evidence, pictures: Pictures, views: dict[str, Floats], kinds: list[Points]
) -> dict[str, Any]:
    predicted = np.zeros(len(evidence.given), dtype=np.intp)
    predicted[evidence.queries] = evidence.verdict.predicted
    named, thumbnails, tested = [], [], []
    for points in kinds:
        for index in points.indices.tolist():
            if points.pool is None:
                thumbnails.append(pictures.of_latent(evidence, index))
            else:
                named.append(points.pool.name(index))
                thumbnails.append(pictures.of_row(points.pool, index))
        if points.kind == "tested":
            tested = predicted[points.indices].tolist()
    data: dict[str, Any] = {
        "labels": evidence.labels,
        "looks": [appearance(code) for code in range(len(evidence.labels))],
        "views": {name: _view(flat) for name, flat in views.items()},
        "code": np.concatenate([points.codes for points in kinds]).tolist(),
        "kinds": {points.kind: len(points) for points in kinds},
        "names": named,
        "predicted": tested,
        "training": evidence.has_training_rows,
        "picture": [-1 if index is None else index for index in thumbnails],
    }
    if kinds[-1].kind == "latent":
        data |= {"latents": kinds[-1].indices.tolist(), **_nearest(evidence, pictures, kinds)}
    return data


def _view(flat: Floats) -> dict[str, Any]:
    """Coordinates from the corner of what is shown first; outliers may lie outside."""
    low, high = view_of(flat)
    span = float((high - low).max()) or 1.0
    across, up = np.clip(np.rint((flat - low) / span * GRID), -(10**7), 10**7).astype(int).T
    wide, tall = np.maximum(np.rint((high - low) / span * GRID), 1).astype(int).tolist()
    return {"x": across.tolist(), "y": (tall - up).tolist(), "wide": wide, "high": tall}


def _nearest(evidence: Evidence, pictures: Pictures, kinds: list[Points]) -> dict[str, Any]:
    """The nearest latent examples of every point, other than the point itself."""
    model, codes = evidence.model, evidence.latent_codes
    assert codes is not None
    points = np.concatenate([one.positions for one in kinds])
    latents = model.model_.points(model.latent_examples_)
    squared, found = k_nearest(
        points, References.of(latents), min(limits.N_NEAREST + 1, len(latents))
    )
    distances = model.model_.distances(squared)
    itself = np.full(len(points), -1)
    itself[len(points) - len(kinds[-1]) :] = kinds[-1].indices
    near: list[list[list[float]]] = []
    known: dict[str, list[int]] = {}
    for own, indices, lengths in zip(
        itself.tolist(), found.tolist(), distances.tolist(), strict=True
    ):
        others = [pair for pair in zip(indices, lengths, strict=True) if pair[0] != own][
            : limits.N_NEAREST
        ]
        near.append([[latent, float(f"{distance:.4g}")] for latent, distance in others])
        for latent, _ in others:
            if str(latent) not in known:
                picture = pictures.of_latent(evidence, latent)
                known[str(latent)] = [int(codes[latent]), -1 if picture is None else picture]
    return {"near": near, "known": known}


def _closest_classes(points: Points, evidence: Evidence) -> list[tuple[str, str, float]]:
    """Each class and the nearest other one, closest pairs first."""
    present, means, _ = class_means(points.positions, points.codes)
    if len(present) < 2:
        return []
    squared, found = k_nearest(means, References.of(means), 2)
    distances = evidence.model.model_.distances(squared[:, 1])
    pairs: dict[frozenset[int], tuple[str, str, float]] = {}
    for index in np.argsort(distances, kind="stable").tolist():
        other = int(found[index, 1]) if found[index, 1] != index else int(found[index, 0])
        names = evidence.labels[present[index]], evidence.labels[present[other]]
        pairs.setdefault(frozenset((index, other)), (*names, float(distances[index])))
    return list(pairs.values())[: limits.MAX_CLOSEST]
