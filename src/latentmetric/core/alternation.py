"""Alg. 3 of the paper: rounds of metric and latent examples, each ending in a consistent state.

Round 0 is the Euclidean metric with its own latent examples. Round k learns the metric from the
latent examples it was given (Alg. 2) and then moves them under the metric just learned (Alg. 1).
The sequence z¹, M₁, z², M₂, … is the paper's; a round is cut after the latent examples instead of
after the metric, so that what a round leaves fits together and its objective costs nothing extra.

Time per round O(n·(m/C)·d) for latent examples, O(m²·d) for mining, O(S·d² + d³) for the metric.
Memory O(m·d + d²) beside the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.latents import ClassLatents, first_latents, update_latents
from latentmetric.core.metric import gaps, learn_metric, project_psd
from latentmetric.core.parallel import blas_threads, for_each
from latentmetric.core.rows import ClassRows
from latentmetric.core.triplets import Candidates, Triplets, mine
from latentmetric.core.types import Floats, Ints

OBJECTIVE_TRIPLETS = 10_000
"""The objective is followed on at most this many triplets, drawn once in round 0."""

THREADED_FEATURES = 512
"""Below this many features Alg. 2's products are too small to gain from several threads."""


@dataclass(frozen=True)
class Settings:
    """The numbers of Algs. 1 to 3, in the inner coordinates of ``ClassRows``."""

    n_steps: int
    metric_reg: float
    latent_reg: float
    max_norm: float
    """δ as a multiple of the Euclidean metric's norm √d."""
    target_neighbors: int
    impostors: int
    n_components: int | None
    max_passes: int
    n_threads: int


@dataclass(frozen=True)
class State:
    """A metric, its latent examples class by class, and what was measured on the way there."""

    components: Floats
    latents: Floats
    class_starts: Ints
    spreads: Floats
    """E[D²(x, z)] of every class under the metric: what its margin adds to 1."""
    watched: Triplets
    """The triplets that the objective is followed on."""
    record: dict[str, Any]

    @property
    def round(self) -> int:
        """The number of the round that ended here."""
        number: int = self.record["round"]
        return number

    @property
    def points(self) -> Floats:
        """The latent examples under the metric."""
        return self.latents @ self.components.T

    @property
    def margins(self) -> Floats:
        """1 + E[D²(x, z)] for every latent example."""
        margins = np.repeat(1 + self.spreads, np.diff(self.class_starts))
        return margins.astype(self.latents.dtype)


def first_state(
    rows: ClassRows,
    counts: Ints,
    init: str,
    settings: Settings,
    generator: np.random.Generator,
) -> State:
    """Round 0: the Euclidean metric and latent examples that start at rows of their class."""
    components: Floats = np.eye(rows.n_features, dtype=rows.dtype)
    components *= sqrt(min(1.0, settings.max_norm))
    latents = np.concatenate(
        [first_latents(rows.get(c), int(counts[c]), init, generator) for c in range(len(rows))]
    )
    class_starts = np.concatenate(([0], np.cumsum(counts)))
    components = reduce_rank(components, latents, settings.n_components)
    return state_from(rows, components, latents, class_starts, settings, generator)


def state_from(
    rows: ClassRows,
    components: Floats,
    latents: Floats,
    class_starts: Ints,
    settings: Settings,
    generator: np.random.Generator,
    number: int = 0,
) -> State:
    """A round that takes the metric as it is and only moves the latent examples."""
    clock = _Clock()
    latents, spreads, passes = move_latents(rows, components, latents, class_starts, settings)
    clock.lap("latents")
    state = State(components, latents, class_starts, spreads, Triplets.none(), {})
    candidates = _mine(state, settings)
    clock.lap("mining")
    offered = candidates.all()
    drawn = generator.choice(offered, size=min(OBJECTIVE_TRIPLETS, len(offered)), replace=False)
    state = replace(state, watched=candidates.take(np.sort(drawn)))
    return replace(state, record=_record(state, number, candidates, passes, clock))


def next_state(
    state: State, rows: ClassRows, settings: Settings, generator: np.random.Generator
) -> State:
    """One round: mine, learn the metric, move the latent examples under it."""
    clock = _Clock()
    candidates = _mine(state, settings)
    clock.lap("mining")
    components = _learn(state, candidates, settings, generator)
    clock.lap("metric")
    latents, spreads, passes = move_latents(
        rows, components, state.latents, state.class_starts, settings
    )
    clock.lap("latents")
    following = replace(state, components=components, latents=latents, spreads=spreads)
    return replace(following, record=_record(following, state.round + 1, candidates, passes, clock))


def move_latents(
    rows: ClassRows, components: Floats, latents: Floats, class_starts: Ints, settings: Settings
) -> tuple[Floats, Floats, int]:
    """Alg. 1 for every class, one thread a class, the largest first; latents, spreads, passes."""
    moved = np.empty_like(latents)
    spreads = np.empty(len(rows))
    passes = np.empty(len(rows), dtype=np.intp)

    def move_class(position: int) -> None:
        own = slice(class_starts[position], class_starts[position + 1])
        found: ClassLatents = update_latents(
            rows.get(position), latents[own], components, settings.latent_reg, settings.max_passes
        )
        moved[own], spreads[position], passes[position] = found.latents, found.spread, found.passes

    largest_first = np.argsort([-len(members) for members in rows.members], kind="stable")
    for_each(move_class, largest_first.tolist(), settings.n_threads)
    return moved, spreads, int(passes.max())


def objective(state: State) -> float:
    """The mean hinge loss of the watched triplets under the state's metric and margins."""
    points, margins, total = state.points, state.margins, 0.0
    for block in row_blocks(len(state.watched), points[:1].nbytes):
        watched = state.watched[block]
        hinges = margins[watched.anchors] - gaps(*watched.differences(points))
        total += float(np.maximum(hinges, 0).sum(dtype=np.float64))
    return total / len(state.watched)


def reduce_rank(components: Floats, latents: Floats, n_components: int | None) -> Floats:
    """The metric of this rank that keeps the latent examples' distances best."""
    if n_components is None or n_components >= len(components):
        return components
    points = latents @ components.T
    points -= points.mean(axis=0)
    _, directions = project_psd(points.T @ points)
    return directions[:n_components] @ components


def _mine(state: State, settings: Settings) -> Candidates:
    return mine(
        state.points,
        state.class_starts,
        state.margins,
        settings.target_neighbors,
        settings.impostors,
        settings.n_threads,
    )


def _learn(
    state: State, candidates: Candidates, settings: Settings, generator: np.random.Generator
) -> Floats:
    """The factor of the metric that Alg. 2 learns; the old one where there is nothing to learn."""
    active = candidates.active()
    if not len(active):
        return state.components
    triplets = candidates.take(generator.choice(active, size=settings.n_steps))
    n_features = state.latents.shape[1]
    with blas_threads(settings.n_threads if n_features >= THREADED_FEATURES else 1):
        averaged = learn_metric(
            state.latents,
            state.components,
            triplets,
            settings.metric_reg,
            settings.max_norm * sqrt(n_features),
        )
        values, directions = project_psd(averaged)
    if not len(values):
        return state.components
    components = np.sqrt(values)[:, None] * directions
    return reduce_rank(components, state.latents, settings.n_components)


def _record(
    state: State, number: int, candidates: Candidates, passes: int, clock: _Clock
) -> dict[str, Any]:
    """What ``history_`` says of a round."""
    return {
        "round": number,
        "objective": objective(state),
        "active_share": len(candidates.active()) / len(candidates.all()),
        "norm": float(np.linalg.norm(state.components @ state.components.T)),
        "rank": len(state.components),
        "mean_margin": float(1 + state.spreads.mean()),
        "passes": passes,
        "seconds": dict(clock.laps),
    }


class _Clock:
    """Seconds of each part of a round."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._since = perf_counter()

    def lap(self, part: str) -> None:
        now = perf_counter()
        self.laps[part] = now - self._since
        self._since = now
