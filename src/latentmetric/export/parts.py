"""What an export needs from a fitted estimator of any kind, or a pipeline that ends in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.model import FittedModel
from latentmetric.estimators.fitted import fitted_model
from latentmetric.validation.parameters import VOTING, validated_copy
from latentmetric.validation.pipelines import SplitPipeline, split_pipeline

SPARE_NEIGHBORS = 16
"""Extra neighbours of the first search, which ranks less exactly than differences do."""

EXPORTED_WEIGHTS = ("uniform", "distance", "kernel")
"""The votes that ONNX and scikit-learn can compute."""


@dataclass(frozen=True)
class Parts:
    """The model, the names of its classes, and how its references vote."""

    model: FittedModel
    classes: np.ndarray[Any, Any]
    weights: str
    n_neighbors: int
    """The estimator's ``n_neighbors``, at most the number of references."""
    n_jobs: int | None
    piped: SplitPipeline
    """The estimator, and the steps of the pipeline before it."""

    @classmethod
    def of(cls, model: Any, tool: str | None = None) -> Parts:
        """The parts of a fitted model; raise if a tool cannot vote as the model does."""
        piped = split_pipeline(model)
        fitted = fitted_model(piped.estimator)
        piped.estimator._voting()
        voting = validated_copy(piped.estimator, VOTING)
        if tool and voting.weights not in EXPORTED_WEIGHTS:
            raise ValueError(
                f"weights={voting.weights!r} has no equivalent in {tool}; export after "
                f"model.set_params(weights=...) with one of {', '.join(EXPORTED_WEIGHTS)}"
            )
        n_neighbors = min(voting.n_neighbors, len(fitted.references))
        return cls(fitted, voting.classes_, voting.weights, n_neighbors, voting.n_jobs, piped)

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """The label of every reference."""
        labels: np.ndarray[Any, Any] = self.classes[self.model.codes]
        return labels

    @property
    def n_voters(self) -> int:
        """References that vote on a row."""
        return self.model.n_voters(self.weights, self.n_neighbors)
