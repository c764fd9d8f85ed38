"""One loop that runs the steps of any estimator's algorithm.

It also decides what happens around a step: which state to keep, when to stop early, what to write
to a checkpoint, whom to notify, and what an interrupt leaves. So all estimators behave the same.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.core.likelihood import loss_of
from latentmetric.core.model import FittedModel
from latentmetric.core.steps import AnyState, Record, Steps
from latentmetric.core.votes import VOTES, temperature_from_held_out
from latentmetric.estimators.progress import Listener
from latentmetric.estimators.training import TrainingData
from latentmetric.persistence.checkpoints import Checkpoints, Progress

if TYPE_CHECKING:
    from latentmetric.estimators.base import ReferenceClassifier

PATIENCE = 3
"""Early stopping ends a fit after this many steps without a lower validation error."""

FREE_PARAMETERS = ("n_jobs", "verbose")
"""Parameters that may differ when a fit is resumed; the number of threads may change rounding."""


def run(
    estimator: ReferenceClassifier[AnyState], data: TrainingData, steps: Steps[AnyState],
    generator: np.random.Generator, listener: Listener, checkpoints: Checkpoints | None,
    keep_on_interrupt: bool,
) -> dict[str, Any]:  # fmt: skip
    """Run all steps and return the fitted attributes of the kept state."""
    progress: Progress[AnyState] | None = None
    stop = False
    if checkpoints is not None:
        progress = checkpoints.resumed(data.fingerprint(), steps)
        if progress is not None:
            generator.bit_generator.state = progress.generator_state
    try:
        while progress is None or not (progress.finished or stop):
            listener.step_begins()
            progress = next_step(estimator, data, steps, generator, progress)
            kept, history = progress.kept, progress.history
            stop = listener.step_ends(
                history, partial(estimator._attributes, data, kept, history, final=False)
            )
            if checkpoints is not None:
                checkpoints.write(progress)
        attributes = estimator._attributes(data, progress.kept, progress.history, final=True)
    except KeyboardInterrupt:
        if not keep_on_interrupt or progress is None:
            raise
        attributes = estimator._attributes(data, progress.kept, progress.history, final=True)
    try:
        listener.ends(lambda: attributes)
    except KeyboardInterrupt:
        if not keep_on_interrupt:
            raise
    return attributes


def next_step(
    estimator: ReferenceClassifier[AnyState], data: TrainingData, steps: Steps[AnyState],
    generator: np.random.Generator, before: Progress[AnyState] | None,
) -> Progress[AnyState]:  # fmt: skip
    """Run one step, measure it, and keep its state if it is the best so far."""
    if before is None:
        state, history = steps.first(generator), []
    else:
        state = steps.next(steps.onward(before.kept, before.state), generator)
        history = before.history
    record = dict(state.record)
    for name in estimator._in_squared_units:
        if name in record:
            record[name] *= data.coordinates.unit
    if len(data.held_out):
        record |= held_out_model(estimator, data, state)[1]
    # Without an error to compare, the last state is the best. Few rows often tie in their errors.
    # If trials chose how they are refined, rows left out have judged it better than a loss can.
    error = record.get("validation_error", None if data.dense else record.get("loss"))
    kept, kept_error = state, (inf if error is None else error, record.get("validation_loss", 0.0))
    if before is not None and error is not None and not kept_error < tuple(before.kept_error):
        kept, kept_error = before.kept, before.kept_error
    done = state.record["round"]
    finished = state.finished or done >= steps.limit
    # The refinement follows the rounds, however many of them were better than the last.
    if len(data.held_out) and not getattr(estimator, "refine", 0):
        finished = finished or done - kept.record["round"] >= PATIENCE
    now = generator.bit_generator.state
    return Progress(state, kept, kept_error, [*history, record], now, finished)


def held_out_model(
    estimator: ReferenceClassifier[AnyState], data: TrainingData, state: AnyState
) -> tuple[FittedModel, Record]:
    """The model of a state, and what the held-out rows say of it.

    They also set the temperature, unless few rows were refined with one: still fewer of them are
    held out, which often all have the right label, however low the temperature is.
    """
    model = estimator._fitted_model(data, state, all_rows=False)
    rows, codes = data.rows[data.held_out], data.codes[data.held_out]
    weights = data.row_weights(data.held_out)
    k = model.n_voters(estimator.weights, estimator.n_neighbors)
    neighbors = model.nearest(rows, k, estimator.n_jobs)
    record: Record = {}
    by_latents = getattr(estimator, "reference", "") == "latent"
    refined = data.dense and by_latents and "refinement" in state.record
    if VOTES[estimator.weights].needs_temperature and model.is_metric:
        shares = model.shares(neighbors, estimator.weights)[np.arange(len(codes)), codes]
        record["validation_loss"] = float(np.average(loss_of(shares, 0.0), weights=weights))
        if model.log_scales is None and not refined:
            correct = model.codes[neighbors.indices] == codes[:, None]
            temperature = temperature_from_held_out(neighbors.squared, correct, weights)
            model = replace(model, temperature=temperature)
    wrong = model.vote(neighbors, estimator.weights) != codes
    return model, record | {"validation_error": float(np.average(wrong, weights=weights))}


def open_checkpoints(
    estimator: ReferenceClassifier[Any], folder: Any, resume: bool, generator: np.random.Generator
) -> Checkpoints:
    """The checkpoints of a fit of this estimator; on resume, the generator is set back."""
    if folder is None:
        raise ValueError("resume=True needs checkpoint, the folder to resume from")
    parameters = estimator.get_params(deep=False)
    deciding = {name: parameters[name] for name in parameters if name not in FREE_PARAMETERS}
    begun_from: Any = "rows"
    if getattr(estimator, "warm_start", False) and hasattr(estimator, "components_"):
        digest = blake2b(digest_size=16)
        for part in (estimator.components_, estimator.latent_examples_):
            digest.update(np.ascontiguousarray(part).tobytes())
        begun_from = digest.hexdigest()
    identity = {"estimator": type(estimator).__name__, "warm start from": begun_from, **deciding}
    return Checkpoints(folder, resume, identity, generator)
