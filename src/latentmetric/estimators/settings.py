"""The parameters of ``MaPML`` as the core takes them."""

from __future__ import annotations

from math import inf
from typing import Any

from latentmetric.core.alternation import Settings
from latentmetric.core.parallel import thread_count
from latentmetric.core.refinement import Plan
from latentmetric.core.tuning import (
    MAP_RANK,
    MAP_SHARE,
    REFINEMENT_SHARE,
    TEMPERATURE_SHARE,
    WRONG_LABELS_EXPONENT,
    WRONG_LABELS_SHARE,
)


def settings_of(model: Any) -> Settings:
    """The settings of the rounds."""
    is_map = _is_map(model)
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
        temperature_share=_temperature_share(model),
        exponent=_exponent(model),
    )


def plan_of(model: Any) -> Plan:
    """The plan of the refinement."""
    return Plan(model.refine, model.latent_reg, _exponent(model), thread_count(model.n_jobs))


def _exponent(model: Any) -> float:
    return WRONG_LABELS_EXPONENT if model.label_noise else 0.0


def _temperature_share(model: Any) -> float:
    if not model.refine:
        return TEMPERATURE_SHARE
    share = WRONG_LABELS_SHARE if model.label_noise else REFINEMENT_SHARE
    return max(share, MAP_SHARE) if _is_map(model) else share


def _is_map(model: Any) -> bool:
    """Whether the metric is reduced to a map only after the rounds."""
    return model.refine > 0 and (model.n_components or inf) <= MAP_RANK
