"""The fitted model of an estimator, for functions that act on one, and how it judges labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentmetric.core.distances import row_blocks
from latentmetric.core.likelihood import label_likelihoods
from latentmetric.core.model import FittedModel
from latentmetric.core.parallel import parallel_map, single_threaded_blas, thread_count
from latentmetric.core.types import Floats, Ints
from latentmetric.validation.labels import known_codes
from latentmetric.validation.parameters import validated_copy


def fitted_model(estimator: Any) -> FittedModel:
    """The model of a fitted estimator of this package; raise on anything else."""
    model = getattr(estimator, "model_", None)
    if isinstance(model, FittedModel):
        return model
    if hasattr(estimator, "_parameter_rules"):
        check_is_fitted(estimator)
    raise TypeError(
        "a fitted model of latentmetric is needed, such as MaPML, got "
        f"{type(estimator).__name__}; of a pipeline, pass its last step, pipeline[-1]"
    )


def check_latents(estimator: Any) -> None:
    """Raise unless a fitted estimator has latent examples."""
    fitted_model(estimator)
    if not hasattr(estimator, "latent_examples_"):
        raise TypeError(f"{type(estimator).__name__} has no latent examples; fit MaPML")


def scores_of_labels(estimator: Any, rows: Floats, codes: Ints, training: bool) -> Floats:
    """The score of each checked row's label; ``training`` leaves it out of its latent examples.

    Time O(n·m·r) for n rows, m latent examples and a metric of rank r.
    """
    of_latents = known_codes(estimator.latent_labels_, estimator.classes_)
    model = estimator.model_
    if estimator.reference_ != "latent":
        model = model.with_references(estimator.latent_examples_, of_latents)
    scores, n_sets = np.empty(len(rows)), estimator.n_sets_
    n_threads = thread_count(validated_copy(estimator, ("n_jobs",)).n_jobs)

    def score(block: slice) -> None:
        scores[block] = label_likelihoods(
            model.points(rows[block]), codes[block], model.references, of_latents,
            n_sets * estimator.latent_counts_, model.temperature, training,
            model.log_scales, model.log_weights, n_sets,
        )  # fmt: skip

    with single_threaded_blas():
        blocks = row_blocks(len(rows), 8 * (len(of_latents) + rows.shape[1]))
        parallel_map(score, list(blocks), n_threads)
    return scores
