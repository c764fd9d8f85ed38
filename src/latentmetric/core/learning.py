"""MaPML as steps: rounds of Alg. 3, then passes of the refinement, which say what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from latentmetric.core.alternation import (
    Clock,
    Settings,
    State,
    first_state,
    next_state,
    norm,
    reduced,
    with_judgement,
)
from latentmetric.core.distances import References, squared_norms
from latentmetric.core.latents import draw_starts
from latentmetric.core.likelihood import left_out_distances, loss_of
from latentmetric.core.metric import Metric
from latentmetric.core.population import Population, positions_of, weights_of
from latentmetric.core.quasi_newton import (
    KernelVote,
    Labelled,
    Objective,
    descend,
    even_lengths,
    first_temperature,
)
from latentmetric.core.race import choose_start, estimate_start
from latentmetric.core.refinement import Moments, Plan, preimages, refine
from latentmetric.core.sets import sets_of
from latentmetric.core.starts import Start
from latentmetric.core.steps import Record, Steps
from latentmetric.core.tuning import CERTAIN_LIKELIHOOD, DENSE_ITERATIONS
from latentmetric.core.types import Floats, Ints
from latentmetric.core.unknown import Distances, kept_out, passes_without
from latentmetric.core.votes import temperature_from_references


def begin(
    rows: Population, counts: Ints, init: str, settings: Settings, start: str,
    generator: np.random.Generator,
) -> State:  # fmt: skip
    """Round 0 from the start of this name, or from the best one if it is "auto"."""
    name, record = choose_start(rows, start, counts, init, settings, generator)
    chosen = estimate_start(rows, name, generator)
    return begin_from(rows, counts, init, settings, chosen, record, generator)


def begin_from(
    rows: Population, counts: Ints, init: str, settings: Settings, start: Start, chosen: Record,
    generator: np.random.Generator,
) -> State:  # fmt: skip
    """Round 0 from this start; ``chosen`` is the record of its choice."""
    state = first_state(rows, counts, init, settings, start, generator)
    seconds = chosen.get("seconds", {}) | state.record["seconds"]
    record = state.record | chosen | {"seconds": seconds}
    return replace(state, unseen=record.pop("unseen", state.unseen), record=record)


def learning(
    rows: Population, settings: Settings, max_iter: int, plan: Plan,
    first: Callable[[np.random.Generator], State],
) -> Steps[State]:  # fmt: skip
    """All steps from ``first``, which is ``begin`` or ``state_from`` with its arguments."""

    def next_step(state: State, generator: np.random.Generator) -> State:
        done = state.record["round"]
        if done < max_iter:
            return next_state(state, generator, rows, settings)
        if plan.dense:
            return _refine_at_once(state, rows, settings, plan)
        return _next_pass(state, generator, rows, settings, done - max_iter, plan)

    def onward(best: State, last: State) -> State:
        """The refinement starts from the best round."""
        if last.record["round"] != max_iter:
            return last
        return replace(best, record=best.record | {"round": max_iter})

    n_passes = 1 if plan.dense else plan.n_passes
    return Steps(first, next_step, max_iter + n_passes, State, onward)


def _refine_at_once(state: State, rows: Population, settings: Settings, plan: Plan) -> State:
    """The refinement of few rows, in one step."""
    clock = Clock()
    numbers = np.arange(int(rows.sizes.sum()))
    inside, positions = state.start.transform(rows.sample(numbers)), positions_of(rows, numbers)
    inside = inside.astype(np.float32)  # it is centred, and twice as fast
    components, latents = reduced(state, settings.final_rank), state.start.transform(state.latents)
    points = (latents @ components.T).astype(np.float32)
    vote = KernelVote.equal(components.astype(np.float32), points, state.class_starts, 1.0)
    labelled = Labelled.of(inside, positions, rows.weights, vote)
    vote = replace(vote, temperature=first_temperature(labelled, vote))
    record: Record = state.record | {"round": state.record["round"] + 1, "seconds": clock.laps}
    if not vote.temperature > 0:  # no distances to learn from
        return replace(state, record=record, finished=True)
    objective = Objective(
        labelled, vote, plan.ridge, plan.bandwidth, plan.exponent, plan.latent_reg
    )
    single = len(numbers) == len(rows.sizes)  # one row a class: none can be left out
    n_iterations = DENSE_ITERATIONS * plan.n_passes
    vote = even_lengths(vote) if single else descend(objective, n_iterations)
    components = vote.components.astype(components.dtype)
    points = vote.points.astype(components.dtype)
    moved = preimages(state.latents, state.start, components, points)
    mapped, likelihood, predicted = objective.likelihoods(vote)
    away = squared_norms(mapped - vote.points[labelled.own]).astype(np.float64)
    shares = labelled.weights.astype(np.float64)
    of_classes = np.bincount(positions, shares)
    spreads = np.bincount(positions, shares * away) / of_classes
    temperature = vote.temperature
    bound, length = settings.max_norm * sqrt(rows.n_features), norm(components)
    if length > bound:  # shorten all distances: no vote of the kernel changes
        factor = components.dtype.type(sqrt(bound / length))
        components, temperature = components * factor, temperature * float(factor) ** 2
        spreads = spreads * float(factor) ** 2
    clock.lap("refinement")
    record |= {
        "refinement": 1,
        "active_share": float(shares @ (likelihood < CERTAIN_LIKELIHOOD)),
        "norm": norm(components),
        "rank": len(components),
        "mean_margin": float((1 + spreads).mean()),
        "seconds": clock.laps,
    }
    for name in ("objective", "tried", "loss", "loo_error"):
        record.pop(name, None)
    if settings.judged and not single:
        record |= {
            "loss": float(shares @ loss_of(likelihood, plan.exponent)),
            "loo_error": float(shares @ (predicted != positions)),
        }
    return replace(
        state, components=components, latents=moved, spreads=spreads,
        counts=labelled.counts, temperature=temperature, record=record,
        log_scales=vote.log_scales.astype(components.dtype),
        log_weights=vote.log_weights.astype(components.dtype),
    )  # fmt: skip


def _next_pass(
    state: State, generator: np.random.Generator, rows: Population, settings: Settings,
    done: int, plan: Plan,
) -> State:  # fmt: skip
    """One pass of the refinement."""
    clock = Clock()
    if done == 0:
        components, n_rows = reduced(state, settings.final_rank), int(rows.sizes.sum())
        points = state.start.transform(state.latents) @ components.T
        spacing = temperature_from_references(References.of(points), settings.temperature_share)
        state = replace(state, components=components, temperature=spacing)
        state = with_sets(state, generator, rows, settings, plan.n_sets)
        points = state.start.transform(state.latents) @ components.T
        state = replace(state, moments=Moments.zero(components, points, n_rows, plan.n_sets))
    number = state.record["round"] + 1
    if not state.temperature > 0:  # no distances to learn from
        record: Record = state.record | {"round": number, "seconds": {}}
        return replace(state, record=record, finished=True)
    kept = kept_out(state.judges, int(rows.sizes.sum()), state.unseen)
    if done >= passes_without(plan.n_passes):
        if len(kept) and done == passes_without(plan.n_passes):
            state = replace(state, unseen=_unseen(state, rows, kept))
        kept = kept[:0]
    refined = refine(
        rows, state.start, state.components, state.latents, state.class_starts,
        state.counts, state.temperature, state.moments, done, plan, generator, kept,
    )  # fmt: skip
    components, moments, temperature = refined.components, refined.moments, state.temperature
    bound, length = settings.max_norm * sqrt(rows.n_features), norm(components)
    if length > bound:  # shorten all distances: no vote of the kernel changes
        factor = components.dtype.type(sqrt(bound / length))
        components, moments = components * factor, moments.scaled(float(factor))
        temperature *= float(factor) ** 2
    clock.lap("refinement")
    record = {
        "round": number,
        "refinement": done + 1,
        "active_share": refined.active_share,
        "norm": norm(components),
        "rank": len(components),
        "mean_margin": float((1 + refined.spreads).mean()),
        "seconds": clock.laps,
    }
    state = replace(
        state, components=components, latents=refined.latents, spreads=refined.spreads,
        counts=refined.counts, temperature=temperature, record=record, moments=moments,
    )  # fmt: skip
    if not settings.judged:
        return state
    points = state.latents @ state.start.fold(state.components).T
    return with_judgement(state, state.components, points, rows, settings, clock)


def with_sets(
    state: State, generator: np.random.Generator, rows: Population, settings: Settings, n_sets: int
) -> State:
    """The state with more sets of latent examples: Alg. 1 under its metric from other rows."""
    if n_sets == state.n_sets:
        return state
    sizes, metric = np.diff(state.class_starts), Metric(state.start.fold(state.components))
    latents, counts = [state.latents], [state.counts]
    for _ in range(n_sets - 1):
        starts = draw_starts(rows.sizes, sizes, "random", generator, rows.weights)
        given = rows.first_latents(starts, state.class_starts, settings.n_threads)
        moved = rows.move_latents(
            given.latents, state.class_starts, metric, settings.latent_reg, settings.max_passes,
            settings.n_threads,
        )  # fmt: skip
        latents.append(moved.latents)
        counts.append(moved.counts)
    class_starts = n_sets * state.class_starts
    places = np.argsort(sets_of(class_starts, n_sets).ravel())
    return replace(
        state, latents=np.concatenate(latents)[places], counts=np.concatenate(counts)[places],
        class_starts=class_starts, n_sets=n_sets,
    )  # fmt: skip


def _unseen(state: State, rows: Population, kept: Ints) -> Floats:
    """Distances of the rows that are kept out, in units of those of other rows."""
    components = state.start.fold(state.components)
    others = np.setdiff1d(state.judges, kept)
    usual = known_distances(rows, others, components, state)
    return known_distances(rows, kept, components, state).in_units_of(usual.means)


def known_distances(rows: Population, numbers: Ints, components: Floats, state: State) -> Distances:
    """How far rows with these drawing numbers are, left out of their own latent examples."""
    points = rows.sample(numbers) @ components.T
    nearest = left_out_distances(
        points, positions_of(rows, numbers), References.of(state.latents @ components.T),
        state.class_starts, state.counts, weights_of(rows, numbers), state.n_sets,
    )  # fmt: skip
    return Distances(nearest, squared_norms(points))
