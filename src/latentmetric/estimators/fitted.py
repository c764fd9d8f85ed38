"""The fitted model of an estimator, for functions that act on one."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from latentmetric.core.model import FittedModel


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
