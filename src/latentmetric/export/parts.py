"""What a search needs of a fitted model, whichever estimator it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators._base import ReferenceClassifier

SPARE_NEIGHBORS = 16
"""Found beyond those asked for, because a first search ranks less exactly than differences do."""


@dataclass(frozen=True)
class SearchParts:
    """Queries go into inner coordinates, then under the metric, then to the references."""

    coordinates: Coordinates
    components: Floats | None
    """The factor of the metric; None where the references are found by similarity."""
    references: References
    codes: Ints
    classes: np.ndarray[Any, Any]
    temperature: float

    @classmethod
    def of(cls, model: Any) -> SearchParts:
        """The parts of a fitted model whose parameters are valid; nothing is copied."""
        if not isinstance(model, ReferenceClassifier):
            raise TypeError(
                f"a model of latentmetric is needed, such as MaPML, got {type(model).__name__}; "
                "of a pipeline, export the last step"
            )
        check_is_fitted(model)
        model._check_voting_parameters()
        return cls(
            model._coordinates,
            getattr(model, "components_", None),
            model._references,
            model._reference_codes,
            model.classes_,
            model._temperature,
        )

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """The label of every reference."""
        labels: np.ndarray[Any, Any] = self.classes[self.codes]
        return labels

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the model computes in."""
        return self.references.rows.dtype

    @property
    def n_features(self) -> int:
        """Features of a query."""
        return len(self.coordinates.centre)

    def queries(self, X: Any) -> Floats:
        """Rows in the space of the references."""
        inner = self.coordinates.into(np.array(X, dtype=self.dtype))
        return inner if self.components is None else inner @ self.components.T
