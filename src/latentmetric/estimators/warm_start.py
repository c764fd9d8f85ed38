"""A fit of MaPML that begins from the metric and the latent examples of the last one."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from latentmetric.core.alternation import state_from
from latentmetric.core.population import Moved
from latentmetric.core.starts import Start
from latentmetric.estimators.setup import First, settings_of
from latentmetric.estimators.training import TrainingData


def is_warm(model: Any) -> bool:
    """Whether a fit begins from the last one."""
    return bool(model.warm_start) and hasattr(model, "components_")


def first_of_last_fit(model: Any, data: TrainingData) -> First:
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


def check_warm_start(model: Any, classes: np.ndarray[Any, Any]) -> None:
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
