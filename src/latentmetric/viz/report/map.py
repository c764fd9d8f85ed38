"""The map: latent examples and samples of rows, on the plane that separates the classes most.

It is a linear projection of the space under the metric, so distances on the map are never longer
than real ones. A metric of rank 2 gives a second view of the same points. The page's script gets
the points as JSON.
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
from latentmetric.viz.report.gallery import Pictures
from latentmetric.viz.report.rows import LabelledRows
from latentmetric.viz.summaries import class_means, starts, usual, widest_plane

COLOURS, SHAPES = 10, 5
"""Colours and shapes of the classes, of which no pair occurs twice up to their product."""

GRID = 10_000
"""Coordinates are integers up to this: finer than any screen, shorter in JSON than floats."""


@dataclass(frozen=True)
class Points:
    """A sample of points of one kind: ``row``, ``tested`` or ``latent``."""

    kind: str
    n_all: int
    """How many there are, of which the map shows a sample."""
    rows: Floats
    """As the model takes them."""
    codes: Ints
    records: list[tuple[Any, ...]]
    """For the script: kind, code, predicted code, name and picture of each point."""


def map_section(
    evidence: Evidence,
    pictures: Pictures,
    generator: np.random.Generator,
    quick: bool,
    on_start: Callable[[str], None],
) -> dict[str, Any]:
    """The points for the script, and a table of the closest classes."""
    if not evidence.is_metric:
        return {"script": None}
    kinds = _all_points(evidence, pictures, generator)
    positions = [evidence.model.model_.points(points.rows) for points in kinds]
    near = usual(positions[-1])
    spread = positions[-1][near]
    plane = widest_plane(spread, kinds[-1].codes[near])
    variance = float(np.var(spread, axis=0, dtype=np.float64).sum())
    kept = float(np.var(plane.project(spread), axis=0).sum())
    views = {"projection": plane.project(np.concatenate(positions))}
    fitted = None if quick else _fit_plane(evidence, on_start)
    if fitted is not None:
        rows = np.concatenate([fitted.transform(points.rows) for points in kinds], dtype=np.float64)
        views["learned"] = np.pad(rows, ((0, 0), (0, 2 - rows.shape[1])))
    nearest = iter(_nearest_latents(evidence, pictures, np.concatenate(positions)))
    points = []
    for kind in kinds:
        first = 1 if kind.kind == "latent" else 0  # the nearest latent example is itself
        end = first + limits.N_NEAREST
        points += [(*record, next(nearest)[first:end]) for record in kind.records]
    n_wrong = int((~evidence.right).sum())
    return {
        "script": {
            "labels": evidence.labels,
            "looks": [
                (code % COLOURS, (code + code // COLOURS) % SHAPES)
                for code in range(len(evidence.labels))
            ],
            "views": {name: _view(flat) for name, flat in views.items()},
            "points": points,
        },
        "kinds": kinds,
        "n_wrong": n_wrong,
        "n_ringed": min(n_wrong, limits.MAX_MAP_ROWS // 2),
        "n_looks": COLOURS * SHAPES,
        "share": kept / variance if variance else 1.0,
        "has_learned": fitted is not None,
        "closest": _closest_classes(evidence, kinds[-1].codes, positions[-1]),
    }


def _all_points(
    evidence: Evidence, pictures: Pictures, generator: np.random.Generator
) -> list[Points]:
    """Training rows, tested rows and latent examples, where there are any."""

    def of_rows(kind: str, word: str, pool: LabelledRows, n_all: int, chosen: Ints) -> Points:
        codes = pool.codes[chosen]
        said = predicted[chosen] if kind == "tested" else codes
        records = [
            (kind, code, other, f"{word} {pool.name(index)}", pictures.of_row(pool, index))
            for index, code, other in zip(chosen, codes.tolist(), said.tolist(), strict=True)
        ]
        return Points(kind, n_all, pool.rows[chosen], codes, records)

    predicted = np.zeros(len(evidence.given), dtype=np.intp)
    predicted[evidence.queries] = evidence.verdict.predicted
    training, kinds = evidence.originals, []
    if evidence.has_training_rows:
        chosen = sample(training.codes, limits.MAX_MAP_ROWS, generator)
        kinds.append(of_rows("row", "training", training, len(training), chosen))
    # Up to half of the tested rows are misclassified ones if there are so many.
    right, wrong = np.flatnonzero(evidence.right), np.flatnonzero(~evidence.right)
    wrong = wrong[sample(evidence.true[wrong], limits.MAX_MAP_ROWS // 2, generator)]
    right = right[sample(evidence.true[right], limits.MAX_MAP_ROWS - len(wrong), generator)]
    chosen, n_tested = evidence.queries[np.concatenate((right, wrong))], len(evidence.queries)
    kinds.append(of_rows("tested", "tested", evidence.given, n_tested, chosen))
    if evidence.latent_codes is not None:
        chosen = sample(evidence.latent_codes, limits.MAX_MAP_LATENTS, generator)
        rows, codes = evidence.model.latent_examples_[chosen], evidence.latent_codes[chosen]
        records = [
            ("latent", code, code, f"latent example {index:,}", pictures.of_latent(evidence, index))
            for index, code in zip(chosen.tolist(), codes.tolist(), strict=True)
        ]
        kinds.append(Points("latent", len(evidence.latent_codes), rows, codes, records))
    return kinds


def _fit_plane(evidence: Evidence, on_start: Callable[[str], None]) -> Any:
    """A MaPML of rank 2, fitted to a sample; None where it would tell nothing new."""
    model = evidence.model
    if evidence.latent_codes is None or not evidence.has_training_rows:
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


def _view(flat: Floats) -> dict[str, Any]:
    """Coordinates from the corner of what is shown first; points far from the others may not be."""
    near = flat[usual(flat)]
    low, high = near.min(axis=0), near.max(axis=0)
    span = float((high - low).max()) or 1.0
    across, up = np.clip(np.rint((flat - low) / span * GRID), -(10**7), 10**7).astype(int).T
    wide, tall = np.maximum(np.rint((high - low) / span * GRID), 1).astype(int).tolist()
    return {"x": across.tolist(), "y": (tall - up).tolist(), "wide": wide, "high": tall}


def _nearest_latents(evidence: Evidence, pictures: Pictures, positions: Floats) -> list[Any]:
    """Code, picture and distance of the latent examples nearest to each point, itself included."""
    codes = evidence.latent_codes
    if codes is None:
        return [[]] * len(positions)
    model = evidence.model.model_
    latents = model.points(evidence.model.latent_examples_)
    n_nearest = min(limits.N_NEAREST + 1, len(latents))
    squared, found = k_nearest(positions, References.of(latents), n_nearest)
    return [
        [
            (int(codes[index]), pictures.of_latent(evidence, index), float(f"{distance:.4g}"))
            for index, distance in zip(*one, strict=True)
        ]
        for one in zip(found.tolist(), model.distances(squared).tolist(), strict=True)
    ]


def _closest_classes(
    evidence: Evidence, codes: Ints, positions: Floats
) -> list[tuple[str, str, float]]:
    """Each class and the nearest other one, closest pairs first."""
    present, means, _ = class_means(positions, codes)
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
