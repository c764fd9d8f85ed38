"""Alg. 3 of the paper: rounds of metric and latent examples, each ending in a consistent state.

Round 0 is the metric of the start, in the paper the Euclidean one, with its own latent examples.
Round k learns the metric from the
latent examples it was given (Alg. 2) and then moves them under the metric just learned (Alg. 1).
The sequence z¹, M₁, z², M₂, … is the paper's; here a round ends after the latent examples instead
of after the metric, so that the two fit together and the objective costs nothing extra.

Time per round O(n·(m/C)·d) for latent examples, O(min(m, S)·m·d) for mining, O(S·d² + d³) for
the metric.
Memory O(m·d + d²) in addition to the rows, and half a d×d matrix for each class that has at least
a quarter as many rows as features.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt
from time import perf_counter

import numpy as np

from latentmetric.core.distances import References, row_blocks, squared_norms
from latentmetric.core.latents import draw_starts
from latentmetric.core.likelihood import judge
from latentmetric.core.metric import Metric, learn_metric
from latentmetric.core.population import (
    LatentsUpdate,
    Population,
    draw_numbers,
    positions_of,
    weights_of,
)
from latentmetric.core.psd import most_discriminating, project_psd, reduce_rank
from latentmetric.core.refinement import Moments
from latentmetric.core.starts import Start
from latentmetric.core.steps import Record
from latentmetric.core.triplets import Candidates, Triplets, mine
from latentmetric.core.tuning import (
    FEWEST_ANCHORS,
    JUDGED_ROWS,
    OBJECTIVE_TRIPLETS,
    STEPS_PER_ANCHOR,
    TEMPERATURE_SHARE,
)
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import temperature_from_references


@dataclass(frozen=True)
class Settings:
    """The parameters of Algs. 1 to 3, in the inner coordinates of the rows."""

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
    judged: bool = False
    """Whether states are judged by the leave-one-out likelihood of the rows."""
    temperature_share: float = TEMPERATURE_SHARE
    """T of the kernel vote that judges, as a multiple of the spacing of the latent examples."""
    final_rank: int | None = None
    """The rank that the metric is reduced to after the rounds, if they do not limit it."""
    exponent: float = 0.0
    """Greater than 0 if labels may be wrong; see ``likelihood.loss_of``."""


@dataclass(frozen=True)
class State:
    """The result of a round: a metric, its latent examples class by class, and the record."""

    start: Start
    components: Floats
    """The factor of the metric, in the coordinates of the start."""
    latents: Floats
    class_starts: Ints
    spreads: Floats
    """E[D²(x, z)] of every class under the metric: what its margin adds to 1."""
    counts: Floats
    """Rows of every latent example, or their weight."""
    judges: Ints
    """The drawing numbers of the rows that states are judged by; none if they are not."""
    temperature: float
    """T of the kernel vote; 0 if states are not judged."""
    candidates: Candidates
    """The mined triplets that the next round draws from."""
    watched: Triplets
    """The triplets that the objective is evaluated on."""
    record: Record
    moments: Moments = field(default_factory=Moments.none)
    """Moments of the gradients of the refinement, which follows the rounds."""
    log_scales: Floats = field(default_factory=lambda: np.empty(0))
    """t of every latent example with a bandwidth of its own; none if all have the same."""
    log_weights: Floats = field(default_factory=lambda: np.empty(0))
    """b of every latent example with a weight of its own; none if all have the same."""
    unseen: Floats = field(default_factory=lambda: np.empty((2, 0)))
    """Distances of rows that short fits had not seen, in units of those of left-out rows."""
    n_sets: int = 1
    """Sets of latent examples; see ``sets``."""
    finished: bool = False


def first_state(
    rows: Population,
    counts: Ints,
    init: str,
    settings: Settings,
    start: Start,
    generator: np.random.Generator,
) -> State:
    """Round 0: the metric of the start and latent examples that start at rows of their class."""
    class_starts = np.concatenate(([0], np.cumsum(counts)))
    starts = draw_starts(rows.sizes, counts, init, generator, rows.weights)
    given = rows.first_latents(starts, class_starts, settings.n_threads)
    euclid: Floats = np.eye(rows.n_features, dtype=rows.dtype)
    return state_from(rows, euclid, given, class_starts, settings, start, generator)


def state_from(
    rows: Population,
    components: Floats,
    given: LatentsUpdate,
    class_starts: Ints,
    settings: Settings,
    start: Start,
    generator: np.random.Generator,
) -> State:
    """Round 0 from a given metric and given latent examples."""
    components = reduce_rank(components, start.transform(given.latents), settings.n_components)
    bound, length = settings.max_norm * sqrt(rows.n_features), norm(components)
    if length > bound:
        components = components * components.dtype.type(sqrt(bound / length))
    judges = np.empty(0, dtype=np.intp)
    if settings.judged:
        judges = draw_numbers(rows, JUDGED_ROWS, generator)
    nothing, nowhere = np.empty(0, dtype=np.intp), np.empty(0)
    state = State(
        start, components, given.latents, class_starts, given.spreads, given.counts, judges, 0.0,
        Candidates(nothing, nothing, nothing, nowhere, nowhere),
        Triplets(nothing, nothing, nothing, nowhere), {"round": -1},
    )  # fmt: skip
    return _finish_round(state, rows, settings, generator, Clock())


def next_state(
    state: State, generator: np.random.Generator, rows: Population, settings: Settings
) -> State:
    """One round: learn the metric from the mined triplets, move the latent examples under it."""
    clock = Clock()
    state = replace(state, components=_learn(state, settings, generator))
    clock.lap("metric")
    return _finish_round(state, rows, settings, generator, clock)


def _finish_round(
    state: State, rows: Population, settings: Settings, generator: np.random.Generator,
    clock: Clock,
) -> State:  # fmt: skip
    """Alg. 1 for every class under the state's new metric, then mined triplets and record."""
    inner, class_starts = state.start.fold(state.components), state.class_starts
    moved = rows.move_latents(
        state.latents, class_starts, Metric(inner), settings.latent_reg, settings.max_passes,
        settings.n_threads,
    )  # fmt: skip
    clock.lap("latents")
    points = moved.latents @ inner.T
    margins = 1 + moved.spreads
    of_latents = np.repeat(margins, np.diff(class_starts)).astype(points.dtype)
    n_anchors, anchors = max(FEWEST_ANCHORS, settings.n_steps // STEPS_PER_ANCHOR), None
    if len(points) > n_anchors:
        anchors = np.sort(generator.choice(len(points), size=n_anchors, replace=False))
    candidates = mine(
        points, class_starts, of_latents, settings.target_neighbors, settings.impostors,
        settings.n_threads, anchors,
    )  # fmt: skip
    clock.lap("mining")
    offered = np.flatnonzero(candidates.hinges > -np.inf)
    watched = state.watched
    if not len(watched):
        size = min(OBJECTIVE_TRIPLETS, len(offered))
        watched = candidates.take(np.sort(generator.choice(offered, size=size, replace=False)))
    record: Record = {
        "round": state.record["round"] + 1,
        "objective": objective(points, of_latents, watched),
        "active_share": float(np.count_nonzero(candidates.hinges > 0) / len(offered)),
        "norm": norm(state.components),
        "rank": len(state.components),
        "mean_margin": float(margins.mean()),
        "passes": moved.passes,
        "seconds": clock.laps,
    }
    state = replace(
        state, latents=moved.latents, spreads=moved.spreads, counts=moved.counts,
        candidates=candidates, watched=watched, record=record,
    )  # fmt: skip
    if not settings.judged:
        return state
    kept = reduced(state, settings.final_rank)
    if kept is not state.components:
        points = moved.latents @ state.start.fold(kept).T
    spacing = temperature_from_references(References.of(points), settings.temperature_share)
    state = replace(state, temperature=spacing)
    return with_judgement(state, kept, points, rows, settings, clock)


def reduced(state: State, rank: int | None) -> Floats:
    """The factor of the state's metric at this rank, in the coordinates of the start."""
    if rank is None:
        return state.components
    latents = state.start.transform(state.latents)
    return most_discriminating(state.components, latents, state.class_starts, state.counts, rank)


def with_judgement(
    state: State, components: Floats, points: Floats, rows: Population, settings: Settings,
    clock: Clock,
) -> State:  # fmt: skip
    """The state with its leave-one-out likelihood and error in the record.

    ``components`` is the factor of the state's metric at the final rank, ``points`` are the latent
    examples under it.
    """
    judging = rows.sample(state.judges) @ state.start.fold(components).T
    judgement = judge(
        judging, positions_of(rows, state.judges), points, state.class_starts,
        state.counts, state.temperature, settings.exponent, settings.n_threads,
        weights=weights_of(rows, state.judges), n_sets=state.n_sets,
    )  # fmt: skip
    clock.lap("judging")
    record = state.record | {"loss": judgement.loss, "loo_error": judgement.error}
    return replace(state, record=record | {"seconds": clock.laps})


def objective(points: Floats, margins: Floats, watched: Triplets) -> float:
    """The mean hinge loss of the watched triplets, with latent examples at ``points``."""
    total = 0.0
    for block in row_blocks(len(watched), points[:1].nbytes):
        part = watched[block]
        impostors, targets = part.differences(points)
        hinges = margins[part.anchors] - (squared_norms(impostors) - squared_norms(targets))
        total += float(np.maximum(hinges, 0).sum(dtype=np.float64))
    return total / len(watched)


def _learn(state: State, settings: Settings, generator: np.random.Generator) -> Floats:
    """The factor of the metric that Alg. 2 learns; the old one if no triplet is active."""
    active = np.flatnonzero(state.candidates.hinges > 0)
    if not len(active):
        return state.components
    used, candidates = state.candidates.compact()
    latents, n_features = state.start.transform(state.latents[used]), state.latents.shape[1]
    on_start = candidates.gaps(latents @ state.components.T)
    averaged = learn_metric(
        latents, state.components, candidates.take(active), on_start.flat[active],
        generator.integers(len(active), size=settings.n_steps), settings.metric_reg,
        settings.max_norm * sqrt(n_features),
    )  # fmt: skip
    values, directions = project_psd(averaged)
    if not len(values):
        return state.components
    components = np.sqrt(values)[:, None] * directions
    if settings.n_components is None:
        return components
    return reduce_rank(components, state.start.transform(state.latents), settings.n_components)


def norm(components: Floats) -> float:
    """‖M‖_F of the metric with this factor."""
    return float(np.linalg.norm(components @ components.T))


@dataclass
class Clock:
    """Seconds of each part of a round."""

    laps: dict[str, float] = field(default_factory=dict)
    since: float = field(default_factory=perf_counter)

    def lap(self, part: str) -> None:
        """Note the seconds since the last call as those of this part."""
        now = perf_counter()
        self.laps[part], self.since = now - self.since, now
