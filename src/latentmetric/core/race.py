"""Choose the start of the metric: a short fit from each start, on a bounded sample of the rows.

Two thirds of the sample are fitted to: one round and one pass of the refinement from each start.
The start that makes the labels of the other third likeliest wins, unless a simpler one is
practically as good. Nearest neighbours before learning are a poor judge: what learning removes
would count against a start, and a covariance flatters the rows that it is estimated from.

Time: a round and a pass for each start, on a number of rows that does not grow with n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from scipy.stats import entropy

from latentmetric.core.alternation import Settings, first_state, next_state, reduced
from latentmetric.core.distances import References, k_nearest, squared_norms
from latentmetric.core.likelihood import Judgement, judge, left_out_distances
from latentmetric.core.parallel import parallel_map
from latentmetric.core.population import (
    LocalPopulation,
    Population,
    draw_numbers,
    positions_of,
    weights_of,
)
from latentmetric.core.refinement import Moments, Plan, refine
from latentmetric.core.span import span_of, spanned
from latentmetric.core.starts import STARTS, Start, ordered_starts, start_from
from latentmetric.core.steps import Record
from latentmetric.core.tuning import (
    ESTIMATION_ROWS,
    JUDGING_SHARE,
    MIN_GAIN,
    NEAR_BASE,
    NEAR_CHANCE,
    RACE_RANK,
    RACE_ROWS,
    RACE_STEPS,
    REL_TOL,
)
from latentmetric.core.types import Floats, Ints
from latentmetric.core.unknown import Distances
from latentmetric.core.votes import temperature_from_references


@dataclass(frozen=True)
class Trial:
    """A short fit from one start, and what rows that it has not seen say about it."""

    judgement: Judgement
    unseen: Floats
    """Their distances, in units of those of rows left out of their latent examples, or of T."""


def choose_start(
    rows: Population, name: str, counts: Ints, init: str, settings: Settings,
    generator: np.random.Generator,
) -> tuple[str, Record]:  # fmt: skip
    """The name of the start, that of the race's winner for "auto", and what was measured."""
    record: Record = {}
    if name == "auto":
        since = perf_counter()
        trials = race(rows, counts / rows.sizes, init, settings, generator)
        name = winner({start: trial.judgement for start, trial in trials.items()})
        record = {
            "start_losses": {start: trial.judgement.loss for start, trial in trials.items()},
            "start_errors": {start: trial.judgement.error for start, trial in trials.items()},
            "seconds": {"start": perf_counter() - since},
        }
        if trials:
            record["unseen"] = trials[name].unseen
    return name, {"start": name} | record


def estimate_start(rows: Population, name: str, generator: np.random.Generator) -> Start:
    """The start of this name, from a sample of the rows."""
    if name == "euclidean":
        return Start.euclidean(rows.n_features, rows.dtype)
    numbers = draw_numbers(rows, ESTIMATION_ROWS, generator)
    positions = positions_of(rows, numbers)
    return start_from(name, rows.sample(numbers), positions, weights_of(rows, numbers))


def winner(judgements: dict[str, Judgement]) -> str:
    """The name of the start with the lowest loss; a simpler one, which comes first, wins ties."""
    best = next(iter(judgements), "euclidean")
    for name, judgement in judgements.items():
        gain = MIN_GAIN if name == "denoised" else REL_TOL
        if judgement.loss < (1 - gain) * judgements[best].loss:
            best = name
    return best


def race(
    rows: Population, shares: Floats, init: str, settings: Settings,
    generator: np.random.Generator,
) -> dict[str, Trial]:  # fmt: skip
    """A trial of each start, judged by the judging rows; empty if the rows are too few to divide.

    ``shares`` are the latent examples of each class per row.
    """
    drawn = generator.permutation(draw_numbers(rows, RACE_ROWS, generator))
    n_judges = int(JUDGING_SHARE * len(drawn))
    judges, fitted = np.sort(drawn[:n_judges]), np.sort(drawn[n_judges:])
    present, codes = np.unique(positions_of(rows, fitted), return_inverse=True)
    judges = judges[np.isin(positions_of(rows, judges), present)]
    if len(present) < 2 or not len(judges):
        return {}
    fitted_rows, judging_rows = rows.sample(fitted), rows.sample(judges)
    truth = np.searchsorted(present, positions_of(rows, judges))
    of_fitted, of_judging = weights_of(rows, fitted), weights_of(rows, judges)
    seed = int(generator.integers(2**32))
    wide = isinstance(rows, LocalPopulation) and int(rows.sizes.sum()) < rows.n_features
    alone = replace(
        settings, n_threads=max(1, settings.n_threads // len(STARTS)),
        n_steps=min(RACE_STEPS, settings.n_steps), judged=False,
    )  # fmt: skip
    limited = bool(settings.n_components or settings.final_rank)
    if rows.n_features > RACE_RANK and not wide:
        alone = replace(alone, n_components=min(RACE_RANK, settings.n_components or RACE_RANK))

    def run(name: str) -> Trial:
        sample = LocalPopulation.of(fitted_rows, codes, weights=of_fitted)
        requested = np.rint(shares[present][sample.codes] * sample.sizes).astype(np.intp)
        counts = np.clip(requested, 1, sample.sizes)
        judging = _HeldOutRows(
            sample.coordinates.transform(judging_rows), np.argsort(sample.codes)[truth], of_judging
        )
        return _run(sample, name, counts, init, alone, judging, seed, wide, limited)

    trials = dict(zip(STARTS, parallel_map(run, STARTS, settings.n_threads), strict=True))
    # Where no start tells classes apart, columns without a common unit are not left as they are.
    shares_of = np.bincount(truth, of_judging) / (
        len(truth) if of_judging is None else of_judging.sum()
    )
    judgements = [trial.judgement for trial in trials.values()]
    lost = min(each.loss for each in judgements) > NEAR_BASE * float(entropy(shares_of))
    # With a row or two a class, the loss is high even if many more labels are right than by chance.
    wrong = min(each.error for each in judgements) > NEAR_CHANCE * (1 - float(shares_of.max()))
    if lost and wrong:
        trials = {name: trials[name] for name in ordered_starts(fitted_rows)}
    return trials


@dataclass(frozen=True)
class _HeldOutRows:
    """Rows that judge, and the positions of their classes."""

    rows: Floats
    positions: Ints
    weights: Floats | None


def _run(
    sample: LocalPopulation, name: str, counts: Ints, init: str, settings: Settings,
    judging: _HeldOutRows, seed: int, wide: bool, limited: bool,
) -> Trial:  # fmt: skip
    """A short fit from one start, judged by rows that it has not seen.

    ``wide``: all rows are fewer than their features; ``limited``: the metric to be learned has
    nothing outside the span of its rows.
    """
    generator = np.random.default_rng(seed)
    numbers = np.arange(sample.sizes.sum())
    fitted, positions = sample.sample(numbers), positions_of(sample, numbers)
    weights, judges = sample.weights, judging.rows
    outside: Floats = np.zeros(len(judges))
    if len(fitted) < fitted.shape[1]:
        span, start = span_of(fitted, positions, name, weights)
        if not limited:
            outside = span.outside.squared_norms(judges)
        sample, judges = spanned(sample, fitted, span), span.transform(judges)
    else:
        start = start_from(name, fitted, positions, weights)
    state = first_state(sample, counts, init, settings, start, generator)
    state = next_state(state, generator, sample, settings)
    components = reduced(state, settings.final_rank)
    points = start.transform(state.latents) @ components.T
    temperature = temperature_from_references(References.of(points), settings.temperature_share)
    if temperature > 0:
        plan = Plan(1, 0.0, settings.exponent, settings.n_threads)
        refined = refine(
            sample, start, components, state.latents, state.class_starts, state.counts, temperature,
            Moments.zero(components, points, len(numbers)), 0, plan, generator,
        )  # fmt: skip
        components, points = (
            refined.components,
            start.transform(refined.latents) @ refined.components.T,
        )
    unseen = start.transform(judges) @ components.T
    judgement = judge(
        unseen, judging.positions, points, state.class_starts, state.counts, temperature,
        settings.exponent, settings.n_threads, leave_out=False, weights=judging.weights,
        most_voters=len(points),
    )  # fmt: skip
    latents = References.of(points)
    apart = k_nearest(unseen, latents, 1)[0][:, 0]
    new = Distances(apart + outside, squared_norms(unseen) + outside)
    if wide:
        return Trial(judgement, new.in_units_of(temperature))
    seen = start.transform(sample.sample(numbers)) @ components.T
    left_out = left_out_distances(
        seen, positions, latents, state.class_starts, state.counts, weights
    )
    return Trial(judgement, new.in_units_of(Distances(left_out, squared_norms(seen)).means))
