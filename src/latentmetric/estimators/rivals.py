"""What the rivals of MaPML share: rows in memory, all of which vote."""

from __future__ import annotations

from latentmetric.core.model import FittedModel
from latentmetric.core.parallel import thread_count
from latentmetric.core.population import LocalPopulation
from latentmetric.core.steps import AnyState
from latentmetric.core.types import Floats
from latentmetric.engines.protocol import LabelledRows, Partition
from latentmetric.estimators.base import ReferenceClassifier
from latentmetric.estimators.training import TrainingData

REPORTS = 10
"""Steps that an algorithm of many small updates reports in a fit."""


class MetricLearner(ReferenceClassifier[AnyState]):
    """k-NN with all rows under a metric that a subclass learns in the memory of one process."""

    def _partition(self, admitted: LabelledRows) -> Partition:
        rows, codes = admitted.in_memory(f"{type(self).__name__}.fit")
        population = LocalPopulation.of(rows, codes, thread_count(self.n_jobs))
        return Partition(population, rows, codes)

    def _components(self, data: TrainingData, state: AnyState) -> Floats:
        """The factor of the metric that a state has learned."""
        raise NotImplementedError

    def _fitted_model(self, data: TrainingData, state: AnyState, everyone: bool) -> FittedModel:
        components = self._components(data, state)
        points, codes = data.references(components, everyone)
        return FittedModel.of_metric(data.coordinates, components, points, codes, len(data.classes))
