"""The base class of the rivals of MaPML, which keep all rows in memory and let them vote."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from latentmetric.core.model import FittedModel
from latentmetric.core.parallel import thread_count
from latentmetric.core.population import LocalPopulation
from latentmetric.core.steps import AnyState
from latentmetric.core.types import Floats
from latentmetric.engines.admission import refuse_remote
from latentmetric.engines.protocol import LabelledRows, Partition
from latentmetric.estimators.base import ReferenceClassifier
from latentmetric.estimators.training import TrainingData

REPORTS = 10
"""The number of steps into which an algorithm of many small updates is divided."""


class MetricLearner(ReferenceClassifier[AnyState]):
    """k-NN with all rows under a metric that a subclass learns in the memory of one process."""

    def _check_on_cluster(self, X: Any) -> None:
        caller, instead = f"{type(self).__name__}.fit", "X.compute() if it fits, or fit MaPML"
        refuse_remote(caller, instead, X=X)

    def _partition(self, admitted: LabelledRows) -> Partition:
        rows = admitted.engine.gather(admitted.rows, f"{type(self).__name__}.fit")
        population = LocalPopulation.of(rows, admitted.codes, thread_count(self.n_jobs))
        return Partition(population, rows, admitted.codes)

    @abstractmethod
    def _components(self, data: TrainingData, state: AnyState) -> Floats:
        """The factor of the metric of a state."""

    def _fitted_model(self, data: TrainingData, state: AnyState, all_rows: bool) -> FittedModel:
        components = self._components(data, state)
        points, codes = data.references(components, all_rows)
        return FittedModel.of_metric(data.coordinates, components, points, codes, len(data.classes))
