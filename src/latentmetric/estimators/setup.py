"""What a fit of MaPML begins with: settings, and round 0 from rows or from the last fit.

And what it ends with: the scores from which thresholds for ``predict(reject_below=…)`` come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import inf, sqrt
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np

from latentmetric.core.alternation import Settings, State, reduced, state_from
from latentmetric.core.capacity import (
    CAPACITIES,
    RIDGES,
    Candidate,
    Options,
    Trials,
    choose,
    counts_of,
    draw_folds,
    has_few_rows,
    sample_size,
)
from latentmetric.core.latents import shared_by_weight
from latentmetric.core.learning import begin, begin_from, known_distances
from latentmetric.core.model import REACH, FittedModel
from latentmetric.core.parallel import thread_count
from latentmetric.core.population import (
    LatentsUpdate,
    LocalPopulation,
    Population,
    draw_numbers,
    positions_of,
    weights_by_class,
    weights_of,
)
from latentmetric.core.quasi_newton import BANDWIDTHS
from latentmetric.core.race import choose_start
from latentmetric.core.span import Outside, Span, span_of, spanned
from latentmetric.core.starts import Start, ordered_starts, start_from
from latentmetric.core.steps import Record
from latentmetric.core.tuning import (
    BATCH,
    CHOOSING_NUMBERS,
    CHOOSING_ROWS,
    DENOISED_FEATURES,
    DENSE_ITERATIONS,
    DENSE_PAIRS,
    DENSE_ROWS,
    DENSE_SHARE,
    JUDGED_ROWS,
    MANY_ROWS,
    MAP_RANK,
    MAP_SHARE,
    MORE_PASSES,
    MORE_SETS,
    MORE_SHARE,
    MOST_STEPS,
    REFINEMENT_SHARE,
    ROWS_PER_FEATURE,
    TEMPERATURE_SHARE,
    USUAL_PASSES,
    USUAL_ROUNDS,
    USUAL_SHARE,
    WHOLE_FOLDS,
    WRONG_LABELS_EXPONENT,
    WRONG_LABELS_SHARE,
)
from latentmetric.core.types import Floats, Ints
from latentmetric.core.unknown import Distances, kept_out, passes_without
from latentmetric.engines.dispatch import check_in_memory, engine_of
from latentmetric.estimators.training import TrainingData

First = Callable[[np.random.Generator], State]
"""Computes round 0."""


def settings_of(model: Any, dense: bool = False) -> Settings:
    """The settings of the rounds; ``dense`` if the refinement takes all rows at once."""
    # The metric is reduced to a map of low rank only after the rounds.
    is_map = model.refine != 0 and (model.n_components or inf) <= MAP_RANK
    share = TEMPERATURE_SHARE
    if model.refine:
        share = DENSE_SHARE if dense else REFINEMENT_SHARE
        share = WRONG_LABELS_SHARE if model.label_noise else share
        share = max(share, MAP_SHARE) if is_map else share
    return Settings(
        n_steps=model.n_steps,
        metric_reg=model.metric_reg,
        latent_reg=model.latent_reg,
        max_norm=inf if model.max_norm is None else model.max_norm,
        target_neighbors=model.target_neighbors,
        impostors=model.impostors,
        n_components=None if is_map else model.n_components,
        final_rank=model.n_components if is_map else None,
        max_passes=model.max_passes,
        n_threads=thread_count(model.n_jobs),
        judged=model.keep == "best" and not model.early_stopping,
        temperature_share=share,
        exponent=WRONG_LABELS_EXPONENT if model.label_noise else 0.0,
    )


def first_round(model: Any, data: TrainingData, settings: Settings) -> First:
    """Round 0 from the last fit or from rows of each class."""
    if is_warm(model):
        first = _first_from_last_fit(model, data, settings)
        chosen = {"ridge": data.chosen.ridge, "bandwidth": data.chosen.bandwidth}
        return partial(_recorded, first, chosen) if data.dense else first
    counts, init = latent_counts(data), model.init
    if init == "auto":
        init = "spaced" if data.dense else "random"
    if data.start is None:
        return partial(begin, data.training, counts, init, settings, model.start)
    return partial(begin_from, data.training, counts, init, settings, *data.start)


def _recorded(first: First, chosen: Record, generator: np.random.Generator) -> State:
    """Round 0 that says what was chosen in an earlier fit, for the next one."""
    state = first(generator)
    return replace(state, record=state.record | chosen)


def choose_fit(model: Any, data: TrainingData, generator: np.random.Generator) -> TrainingData:
    """The data with what the fit begins from, as far as that is chosen before round 0.

    Rows with more features than rows are written in a basis.
    """
    rows, n_rows = data.training, int(data.training.sizes.sum())
    chosen = Candidate(
        model.start, USUAL_SHARE if model.n_latents == "auto" else model.n_latents,
        1.0 if model.ridge == "auto" else model.ridge,
        "shared" if model.bandwidth == "auto" else model.bandwidth,
    )  # fmt: skip
    dense = may_choose(model, data)
    if is_warm(model):
        before = model.history_[0]
        dense = dense and (n_rows <= DENSE_ROWS or "ridge" in before)
        n_sets = 1 if dense else _last_sets(model, data)
        return _in_last_span(model, replace(data, dense=dense, n_sets=n_sets, chosen=Candidate(
            chosen.start, model.n_latents_ if model.n_latents == "auto" else chosen.n_latents,
            before.get("ridge", 1.0) if model.ridge == "auto" else chosen.ridge,
            before.get("bandwidth", "shared") if model.bandwidth == "auto" else chosen.bandwidth,
        )))  # fmt: skip
    wide = n_rows < rows.n_features and (dense or isinstance(rows, LocalPopulation))
    record: Record = {}
    if dense:
        at_once, record = _choose_capacity(model, rows, chosen, generator)
        if at_once is None:
            return in_sets(model, replace(data, chosen=chosen))
        chosen = at_once
    elif wide:
        data = replace(data, chosen=chosen)
        counts, settings = latent_counts(data), settings_of(model)
        init = "random" if model.init == "auto" else model.init
        name, record = choose_start(rows, model.start, counts, init, settings, generator)
        chosen = replace(chosen, start=name)
    else:
        return in_sets(model, replace(data, chosen=chosen))
    numbers = np.arange(n_rows)
    sample, positions = rows.sample(numbers), positions_of(rows, numbers)
    data = replace(data, chosen=chosen, dense=dense)
    if not wide:
        start = start_from(chosen.start, sample, positions, rows.weights)
        return replace(data, start=(start, record))
    span, start = span_of(sample, positions, chosen.start, rows.weights)
    data = replace(data, training=spanned(rows, sample, span), span=span, start=(start, record))
    if (model.n_components or inf) < rows.n_features:
        return data
    factor = rows.dtype.type(sqrt(min(1.0, inf if model.max_norm is None else model.max_norm)))
    return replace(data, outside=Outside(factor * span.outside.factors, span.basis))


def may_choose(model: Any, data: TrainingData) -> bool:
    """Whether the rows are so few that trials choose how they are fitted.

    Not if labels may be wrong: rows left out, with labels as wrong, would judge.
    """
    rows = data.training
    n_rows = int(rows.sizes.sum())
    rank = min(n_rows, rows.n_features, model.n_components or rows.n_features)
    is_small = n_rows <= CHOOSING_ROWS and n_rows * rows.n_features * rank <= CHOOSING_NUMBERS
    return model.refine != 0 and is_small and not model.label_noise


def usual_passes(model: Any) -> int:
    """The passes of a refinement of few rows."""
    return USUAL_PASSES if model.refine == "auto" else int(model.refine)


def n_passes(model: Any, data: TrainingData) -> int:
    """The passes of the refinement."""
    if model.refine != "auto" or data.dense or not has_many_rows(data):
        return usual_passes(model)
    return MORE_PASSES


def has_many_rows(data: TrainingData) -> bool:
    """Whether rows are so many that the metric cannot suit them one by one.

    Not if they are so many that each pass visits other ones.
    """
    n_rows = int(data.training.sizes.sum())
    enough = min(MANY_ROWS, ROWS_PER_FEATURE * data.training.n_features)
    return enough <= n_rows <= BATCH * MOST_STEPS


def n_rounds(model: Any, data: TrainingData) -> int:
    """The rounds of Alg. 3 before the refinement.

    None from few rows: their latent examples do not show all directions of the metric.
    """
    if model.max_iter != "auto":
        return int(model.max_iter)
    rank = min(data.training.n_features, model.n_components or inf)
    few = USUAL_SHARE * data.training.sizes.sum() < rank and model.refine != 0
    return 0 if data.dense or few else USUAL_ROUNDS


def _choose_capacity(
    model: Any, rows: Population, given: Candidate, generator: np.random.Generator
) -> tuple[Candidate | None, Record]:
    """What cross-validation on a sample of the rows chooses where the parameters are "auto".

    None if the rows are better refined in batches than at once.
    """
    since, n_rows, n_latents = perf_counter(), int(rows.sizes.sum()), given.n_latents
    size = sample_size(n_rows, rows.n_features, len(rows.sizes))
    if isinstance(n_latents, Mapping):
        n_latents = USUAL_SHARE
    elif isinstance(n_latents, Integral) and size < n_rows:  # a sample has fewer of each class
        share = n_latents * len(rows.sizes) / n_rows
        n_latents = share if share > USUAL_SHARE else n_latents
    numbers = draw_numbers(rows, size, generator)
    sample = rows.sample(numbers)
    starts = [name for name in ordered_starts(sample)
              if name != "denoised" or rows.n_features >= DENOISED_FEATURES]  # fmt: skip
    options = Options(
        starts if model.start == "auto" else (model.start,),
        CAPACITIES if model.n_latents == "auto" else (n_latents,),
        RIDGES if model.ridge == "auto" else (given.ridge,),
        BANDWIDTHS if model.bandwidth == "auto" else (given.bandwidth,),
    )  # fmt: skip
    _, positions = np.unique(positions_of(rows, numbers), return_inverse=True)
    trials = Trials(
        sample, positions, weights_of(rows, numbers), draw_folds(positions, generator),
        model.n_components,
    )  # fmt: skip
    chosen, record = choose(trials, options)
    n_points = int(counts_of(chosen.n_latents, rows.sizes).sum())
    if isinstance(given.n_latents, Mapping):
        n_points = sum(given.n_latents.values())
    held = model.ridge != "auto" or model.bandwidth not in ("auto", "shared")
    many = n_rows > trials.rows_at_once(chosen) and not held
    if n_rows * n_points > DENSE_PAIRS or (many and trials.suits_batches(chosen)):
        return None, {}
    if trials.folds and has_few_rows(n_rows, rows.n_features):
        numbers = np.arange(n_rows)
        positions = positions_of(rows, numbers)
        folds = draw_folds(positions, generator, WHOLE_FOLDS)
        trials = Trials(rows.sample(numbers), positions, rows.weights, folds, model.n_components)
        n_iterations = DENSE_ITERATIONS * usual_passes(model)
        record["unseen"] = trials.unseen_by_whole_fits(chosen, n_iterations)
    elif trials.folds:
        record["unseen"] = trials.unseen(chosen)
    if model.n_latents != "auto":
        chosen = replace(chosen, n_latents=given.n_latents)
        record["n_latents"] = given.n_latents
        if isinstance(given.n_latents, Mapping):
            del record["n_latents"]  # records have no numbers by class
    return chosen, record | {"seconds": {"choice": perf_counter() - since}}


def in_sets(model: Any, data: TrainingData) -> TrainingData:
    """The data with latent examples in sets, if their number is not given and rows suffice.

    Those of very many rows are as many together as one set would have.
    """
    if model.n_latents != "auto" or model.refine == 0 or not has_many_rows(data):
        return data
    share = MORE_SHARE if data.training.sizes.sum() < MANY_ROWS else USUAL_SHARE
    return replace(data, n_sets=MORE_SETS, chosen=replace(data.chosen, n_latents=share))


def latent_counts(data: TrainingData) -> Ints:
    """The number of latent examples of the class at each position, in each set."""
    sizes, requested = data.training.sizes, data.chosen.n_latents
    shares: Floats | None = None
    if isinstance(requested, float):
        requested = requested / data.n_sets
        shares = shared_by_weight(requested, sizes, weights_by_class(data.training))
    labels = data.classes[data.training.codes].tolist()
    clipped: Ints = np.clip(requested_counts(requested, labels, shares), 1, sizes)
    return clipped


def requested_counts(requested: Any, labels: list[Any], shares: Any) -> Ints:
    """The numbers of latent examples that ``n_latents`` asks for, at least 1.

    ``shares`` are those of the classes, if it is a share.
    """
    if isinstance(requested, Mapping):
        missing = [label for label in labels if label not in requested]
        if missing:
            raise ValueError(
                f"n_latents has no number for the class {missing[0]!r}, only for "
                f"{len(requested)} others; add it with set_params"
            )
        return np.array([int(requested[label]) for label in labels])
    if isinstance(requested, Integral):
        return np.full(len(labels), int(requested))
    counts: Ints = np.maximum(1, np.rint(shares)).astype(np.intp)
    return counts


def is_warm(model: Any) -> bool:
    """Whether a fit begins from the last one."""
    return bool(model.warm_start) and hasattr(model, "components_")


def _last_sets(model: Any, data: TrainingData) -> int:
    """In how many sets a refinement goes on: in one if the rows are fewer than those of a set."""
    codes = np.searchsorted(data.classes, model.latent_labels_)
    of_classes = np.bincount(codes, minlength=len(data.classes))[data.training.codes]
    n_sets = int(model.n_sets_)
    enough = (of_classes <= n_sets * data.training.sizes).all()
    return n_sets if enough and model.refine != 0 else 1


def _last_metric(model: Any, data: TrainingData) -> tuple[Floats, Outside | None]:
    """The factor of the last fit, wide enough for these rows, and the metric outside their span."""
    rows, last = data.training, model.model_
    components = model.components_.astype(rows.dtype)
    if last.outside is None:
        return components, None
    latents = _last_latents(model, data)
    some = rows.sample(np.arange(min(int(rows.sizes.sum()), rows.n_features)))
    outside = Outside(*(part.astype(rows.dtype) for part in vars(last.outside).values()))
    return outside.cover(components, np.concatenate((some, latents)))


def _last_latents(model: Any, data: TrainingData) -> Floats:
    """The latent examples of the last fit as inner rows; raise if distances would overflow."""
    dtype = data.training.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        latents = data.coordinates.transform(model.latent_examples_.astype(dtype))
    away, reach = float(np.abs(latents).max()), REACH[dtype.name]
    if not away <= reach:
        raise ValueError(
            f"warm_start begins from the latent examples of the last fit, but these are {away:.1g} "
            f"times the spread of X away from its mean; in {dtype}, they can be at most {reach:g} "
            "times; set warm_start=False"
        )
    return latents


def _in_last_span(model: Any, data: TrainingData) -> TrainingData:
    """The data in a basis of what the last fit and these rows span, if there is an outside."""
    rows, (_, outside) = data.training, _last_metric(model, data)
    if outside is None:
        return data
    span, sample = (
        Span(outside.factors, outside.basis, 1.0),
        rows.sample(np.arange(rows.sizes.sum())),
    )
    limited = (model.n_components or inf) < rows.n_features
    return replace(
        data, training=spanned(rows, sample, span), span=span, outside=None if limited else outside
    )


def _first_from_last_fit(model: Any, data: TrainingData, settings: Settings) -> First:
    """Round 0 from the metric and the latent examples of the last fit.

    If they are in sets, from those of the first set; the refinement draws the others anew.
    """
    rows = data.training
    latents = _last_latents(model, data)
    if data.span is None:
        components, _ = _last_metric(model, data)
    else:
        factors, basis = data.span.factors, data.span.basis
        known = (model.components_ / factors) @ basis.T
        more = np.eye(len(basis))[len(model.model_.outside.basis) :]
        components = np.concatenate((known, more)).astype(rows.dtype)
        latents = data.span.transform(latents)
    of_class = [latents[model.latent_labels_ == data.classes[code]] for code in rows.codes]
    of_class = [own[: -(-len(own) // data.n_sets)] for own in of_class]
    class_starts = np.cumsum([0, *map(len, of_class)])
    nothing = np.zeros(class_starts[-1])
    given = LatentsUpdate(np.concatenate(of_class), np.zeros(len(rows)), nothing, passes=0)
    start = Start.euclidean(rows.n_features, rows.dtype)
    return partial(state_from, rows, components, given, class_starts, settings, start)


def check_on_cluster(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Raise before anything is read if rows on a cluster would be needed here."""
    if sample_weight is not None:
        caller = f"{type(model).__name__}.fit with sample_weight"
        check_in_memory(caller, "fit without it", X=X, y=y, sample_weight=sample_weight)
    if engine_of(X).in_process:
        return
    allowed = {
        "early_stopping": False,
        "reference": "latent",
        "class_weight": None,
        "unlabelled": None,
    }
    for name, value in allowed.items():
        if getattr(model, name) != value:
            raise ValueError(
                f"{name}={getattr(model, name)!r} would gather rows of a cluster on one machine; "
                f"fit with {name}={value!r}"
            )


def check_warm_start(model: Any, classes: np.ndarray[Any, Any]) -> None:
    """Raise unless rows of these classes can continue the last fit."""
    n_features, known, given = (
        model.latent_examples_.shape[1],
        model.classes_.tolist(),
        classes.tolist(),
    )
    if given != known or model.n_features_in_ != n_features:
        raise ValueError(
            f"warm_start needs the classes and features of the last fit: it had {n_features} "
            f"features and {len(known)} classes, from {known[0]!r} to {known[-1]!r}, but X has "
            f"{model.n_features_in_} features and y has {len(given)} classes, from {given[0]!r} to "
            f"{given[-1]!r}; set warm_start=False"
        )
    missing = np.setdiff1d(classes, model.latent_labels_)
    if len(missing):
        raise ValueError(
            f"warm_start needs latent examples of every class, but {len(missing)} of "
            f"{len(classes)} have none, such as {missing.tolist()[0]!r}; set warm_start=False"
        )


def with_known_scores(
    estimator: Any, data: TrainingData, state: State, model: FittedModel
) -> tuple[FittedModel, Floats | None]:
    """The model that knows how far known rows usually are, and what new ones score, ascending.

    New rows are those held out or kept out of the refinement, or else those that short fits had
    not seen. None if rows vote, or if no rows may be read for it.
    """
    if estimator.reference != "latent":
        return model, None
    if len(data.held_out):
        new = data.rows[data.held_out]
        known = model.nearest_and_centre(model.nearest(new, 1, estimator.n_jobs), new)
    else:
        rows, n_rows = data.training, int(data.training.sizes.sum())
        joined = state.record.get("refinement", 0) > passes_without(n_passes(estimator, data))
        from_others = data.dense or data.span or joined
        kept = kept_out(state.judges, 0 if from_others else n_rows, state.unseen)
        numbers = kept if len(kept) else state.judges
        if not len(numbers) and isinstance(rows, LocalPopulation):  # a cluster's rows stay there
            numbers = np.linspace(0, n_rows - 1, min(n_rows, JUDGED_ROWS)).astype(np.intp)
            numbers = np.unique(numbers)
        if not len(numbers):
            return model, None
        components = state.start.fold(reduced(state, settings_of(estimator).final_rank))
        known = known_distances(rows, numbers, components, state)
        units = known.means if data.span is None else state.temperature
        if state.unseen.size and np.any(units) and not len(kept):
            known = Distances(*(state.unseen * units))
    usual = known.usual()
    return replace(model, usual=usual), np.sort(known.scores(usual))
