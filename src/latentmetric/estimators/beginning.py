"""Where a fit of MaPML begins: at rows of each class, or with ``warm_start`` at the last fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np

from latentmetric.core.alternation import State, state_from
from latentmetric.core.latents import shared_by_weight
from latentmetric.core.learning import begin, begin_from
from latentmetric.core.population import LocalPopulation, Moved, positions_of, weights_by_class
from latentmetric.core.race import choose_start
from latentmetric.core.span import is_wide, span_of, spanned
from latentmetric.core.starts import Start
from latentmetric.core.types import Ints
from latentmetric.estimators.settings import settings_of
from latentmetric.estimators.training import TrainingData

First = Callable[[np.random.Generator], State]
"""Computes round 0."""


def first_of(model: Any, data: TrainingData) -> First:
    """Round 0 from rows of each class."""
    rows, counts, settings = data.training, latent_counts(model, data), settings_of(model)
    if data.span is None:
        return partial(begin, rows, counts, model.init, settings, model.start)
    assert data.start is not None
    return partial(begin_from, rows, counts, model.init, settings, *data.start)


def in_their_span(model: Any, data: TrainingData, generator: np.random.Generator) -> TrainingData:
    """Rows by class, written in a basis if they have more features than rows."""
    rows = data.training
    # A metric that was learned from other rows may be anything outside the span of these.
    if not is_wide(rows) or model.max_norm is not None or continues(model):
        return data
    assert isinstance(rows, LocalPopulation)
    counts, settings = latent_counts(model, data), settings_of(model)
    name, record = choose_start(rows, model.start, counts, model.init, settings, generator)
    numbers = np.arange(rows.sizes.sum())
    positions = positions_of(rows, numbers)
    span, start = span_of(rows.sample(numbers), positions, name, rows.weights)
    return replace(data, training=spanned(rows, span), span=span, start=(start, record))


def latent_counts(model: Any, data: TrainingData) -> Ints:
    """The number of latent examples of the class at each position."""
    sizes, asked = data.training.sizes, model.n_latents
    if isinstance(asked, Mapping):
        classes = data.classes.tolist()
        by_class = [asked[classes[code]] for code in data.training.codes]
        requested = np.array(by_class, dtype=np.intp)
    elif isinstance(asked, Integral):
        requested = np.full(len(sizes), int(asked))
    else:
        shared = shared_by_weight(float(asked), sizes, weights_by_class(data.training))
        requested = np.rint(shared).astype(np.intp)
    counts: Ints = np.clip(requested, 1, sizes)
    return counts


def continues(model: Any) -> bool:
    """Whether a fit begins from the last one."""
    return bool(model.warm_start) and hasattr(model, "components_")


def continued(model: Any, data: TrainingData) -> First:
    """Round 0 from the metric and the latent examples of the last fit."""
    rows = data.training
    latents = data.coordinates.into(model.latent_examples_.astype(rows.dtype))
    components = model.components_.astype(rows.dtype)
    of_class = [latents[model.latent_labels_ == data.classes[code]] for code in rows.codes]
    nothing = np.zeros(len(latents))
    placed = Moved(np.concatenate(of_class), np.zeros(len(rows)), nothing, passes=0)
    class_starts = np.cumsum([0, *map(len, of_class)])
    start = Start.euclidean(rows.n_features, rows.dtype)
    return partial(state_from, rows, components, placed, class_starts, settings_of(model), start)


def digest_of(model: Any) -> str:
    """Identifies the model that a fit continues, for checkpoints."""
    digest = blake2b(digest_size=16)
    for part in (model.components_, model.latent_examples_):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def check_continuation(model: Any, classes: np.ndarray[Any, Any]) -> None:
    """Raise unless rows of these classes can continue the last fit."""
    known = model.classes_
    if not np.array_equal(classes, known):
        raise ValueError(
            f"warm_start needs the classes of the last fit: it had {len(known)}, "
            f"from {known[0]!r} to {known[-1]!r}, but y has {len(classes)}, "
            f"from {classes[0]!r} to {classes[-1]!r}; set warm_start=False"
        )
    missing = np.setdiff1d(classes, model.latent_labels_)
    if len(missing):
        raise ValueError(
            f"warm_start needs latent examples of every class, but {len(missing)} of "
            f"{len(classes)} have none, such as {missing.tolist()[0]!r}; set warm_start=False"
        )
    if model.n_features_in_ != model.latent_examples_.shape[1]:
        raise ValueError(
            f"warm_start needs the features of the last fit: X has {model.n_features_in_}, "
            f"but it had {model.latent_examples_.shape[1]}; set warm_start=False"
        )
