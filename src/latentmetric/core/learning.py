"""MaPML as steps: rounds of Alg. 3, then passes of the refinement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import sqrt

import numpy as np

from latentmetric.core.alternation import (
    Clock,
    Settings,
    State,
    check_state,
    class_margins,
    first_state,
    next_state,
    norm,
    reduced,
    with_judgement,
)
from latentmetric.core.distances import References
from latentmetric.core.passes import Plan, refine, shortened
from latentmetric.core.population import Population
from latentmetric.core.race import choose_start, estimate_start
from latentmetric.core.refinement import Moments
from latentmetric.core.starts import Start
from latentmetric.core.steps import Record, Steps
from latentmetric.core.types import Ints
from latentmetric.core.votes import temperature_from_references

REFINEMENT_SHARE = 0.3
"""T as a multiple of the spacing of the latent examples while labels are made likelier."""

MAP_RANK, MAP_SHARE = 3, 1.0
"""The same for metrics of at most this rank, a map to look at: classes overlap in it.

Such a metric is reduced after the rounds; with more components, the rounds learn it at its rank.
"""

WRONG_LABELS_SHARE = 0.6
"""The same if labels may be wrong."""

WRONG_LABELS_EXPONENT = 0.7
"""If labels may be wrong, the gradient of a row is weighted by this power of P(y | x)."""


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
    start = replace(start, gap=chosen.get("score_gap", start.gap))
    state = first_state(rows, counts, init, settings, start, generator)
    seconds = chosen.get("seconds", {}) | state.record["seconds"]
    return replace(state, record=state.record | chosen | {"seconds": seconds})


def learning(
    rows: Population, settings: Settings, max_iter: int, plan: Plan,
    first: Callable[[np.random.Generator], State],
) -> Steps[State]:  # fmt: skip
    """All steps from ``first``, which is ``begin`` or ``state_from`` with its arguments."""
    following = partial(_following, rows=rows, settings=settings, max_iter=max_iter, plan=plan)
    limit, check = max_iter + plan.n_passes, partial(check_state, rows)
    return Steps(first, following, limit, State, check, partial(_onward, max_iter=max_iter))


def _onward(best: State, last: State, max_iter: int) -> State:
    """The refinement starts from the best round."""
    if last.record["round"] != max_iter:
        return last
    return replace(best, record=best.record | {"round": max_iter})


def _following(
    state: State, generator: np.random.Generator, rows: Population, settings: Settings,
    max_iter: int, plan: Plan,
) -> State:  # fmt: skip
    done = state.record["round"]
    if done < max_iter:
        return next_state(state, generator, rows, settings)
    return _next_pass(state, generator, rows, settings, done - max_iter, plan)


def _before_refinement(state: State, n_rows: int, settings: Settings) -> State:
    """The state with the rank, the temperature and the moments that the first pass starts from."""
    components = reduced(state, settings.final_rank)
    points = state.start.into(state.latents) @ components.T
    spacing = temperature_from_references(References.of(points), settings.temperature_share)
    moments = Moments.zero(components, points, n_rows)
    return replace(state, components=components, temperature=spacing, moments=moments)


def _next_pass(
    state: State, generator: np.random.Generator, rows: Population, settings: Settings,
    done: int, plan: Plan,
) -> State:  # fmt: skip
    """One pass of the refinement."""
    clock = Clock()
    if done == 0:
        state = _before_refinement(state, int(rows.sizes.sum()), settings)
    number = state.record["round"] + 1
    if not state.temperature > 0:  # no distances to learn from
        record: Record = state.record | {"round": number, "seconds": {}}
        return replace(state, record=record, finished=True)
    refined = refine(
        rows, state.start, state.components, state.latents, state.class_starts,
        state.counts, state.temperature, state.moments, done, plan, generator,
    )  # fmt: skip
    bound, length = settings.max_norm * sqrt(rows.n_features), norm(refined.components)
    shorter = sqrt(bound / length) if length > bound else 1.0
    refined, temperature = shortened(refined, state.temperature, shorter)
    clock.lap("refinement")
    record = {
        "round": number,
        "refinement": done + 1,
        "active_share": refined.active_share,
        "norm": norm(refined.components),
        "rank": len(refined.components),
        "mean_margin": float(class_margins(refined.spreads).mean()),
        "seconds": clock.laps,
    }
    state = replace(
        state, components=refined.components, latents=refined.latents, spreads=refined.spreads,
        counts=refined.counts, temperature=temperature, record=record, moments=refined.moments,
        lineage=None,
    )  # fmt: skip
    if not settings.judged:
        return state
    points = state.latents @ state.start.fold(state.components).T
    return with_judgement(state, state.components, points, rows, settings, clock)
