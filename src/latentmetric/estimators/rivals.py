"""The base classes of the rivals of MaPML, which keep all rows in memory and let them vote."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from latentmetric.core.coordinates import InnerRows
from latentmetric.core.model import FittedModel
from latentmetric.core.steps import AnyState, Record, Steps
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators.base import ReferenceClassifier
from latentmetric.estimators.training import TrainingData

REPORTS = 10
"""The number of steps into which an algorithm of many small updates is divided."""


class MetricLearner(ReferenceClassifier[AnyState]):
    """k-NN with all rows under a metric that a subclass learns in the memory of one process."""

    _votes_with_rows: ClassVar[bool] = True

    def _components(self, data: TrainingData, state: Any) -> Floats:
        """The factor of the metric of a state, for inner rows."""
        components: Floats = state.components
        return components

    def _fitted_model(self, data: TrainingData, state: AnyState, all_rows: bool) -> FittedModel:
        components = self._components(data, state)
        points, codes = data.references(components, all_rows)
        return FittedModel.of_metric(data.coordinates, components, points, codes, len(data.classes))


@dataclass(frozen=True)
class Solved:
    """The only state of an algorithm without iterations."""

    components: Floats
    record: Record = field(default_factory=lambda: {"round": 0, "seconds": {}})
    finished: bool = True


class ClosedFormLearner(MetricLearner[Solved]):
    """k-NN with all rows under a metric that a subclass computes in one step."""

    @abstractmethod
    def _solve(self, rows: InnerRows, codes: Ints) -> Floats:
        """The factor of the metric for these inner rows: finite, (rank, n_features)."""

    def _steps(self, data: TrainingData) -> Steps[Solved]:
        rows, codes = data.inner_rows()

        def first(generator: np.random.Generator) -> Solved:
            return Solved(self._solve(rows, codes).astype(rows.dtype))

        return Steps(first, lambda state, generator: state, 0, Solved)
