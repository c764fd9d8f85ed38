"""What the rivals of MaPML share: a fit that follows an algorithm, and a vote of all rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import References
from latentmetric.core.parallel import blas_threads, thread_count
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import temperature_from_references
from latentmetric.estimators._base import ReferenceClassifier, generator_from
from latentmetric.estimators._checks import (
    check_verbose,
    set_attributes,
    unchanged_on_failure,
)
from latentmetric.estimators._compat import CallbackSupportMixin, with_callbacks
from latentmetric.estimators._progress import RoundReporter, round_is_over

REPORTS = 10
"""Steps that an algorithm of many small updates reports in a fit."""


@dataclass(frozen=True)
class Step:
    """Where an algorithm stands: the factor of its metric, and what was measured."""

    components: Floats
    record: dict[str, Any]
    """"round", "seconds" by part, and what else the algorithm can tell."""


@dataclass(frozen=True)
class Data:
    """What one call of ``fit`` works on."""

    rows: Floats
    codes: Ints
    classes: Any
    coordinates: Coordinates


class MetricLearner(CallbackSupportMixin, ReferenceClassifier):
    """k-NN with all rows under a metric that a subclass learns.

    A subclass checks its own parameters, says how many steps it reports at most, and yields them.
    """

    random_state: Any
    verbose: int

    @abstractmethod
    def _check_own_parameters(self) -> None:
        """Raise on parameters out of range."""

    @abstractmethod
    def _n_reports(self) -> int:
        """The largest number of steps that ``_steps`` yields."""

    @abstractmethod
    def _steps(
        self, rows: InnerRows, codes: Ints, generator: np.random.Generator
    ) -> Generator[Step, None, None]:
        """The algorithm, on centred rows of unit mean variance; at least one step."""

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the metric. A fit that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            self._check_parameters()
            rows, codes, classes = self._validated_training_data(X, y)
            with blas_threads(thread_count(self.n_jobs)):
                attributes = self._run(Data(rows, codes, classes, Coordinates.of(rows)), X, y)
        set_attributes(self, attributes)
        return self

    def _check_parameters(self) -> None:
        self._check_voting_parameters()
        check_verbose(self.verbose)
        self._check_own_parameters()

    def _run(self, data: Data, X: Any, y: Any) -> dict[str, Any]:
        """Follow the steps, telling callbacks of X and y; the attributes of the last one."""
        reporter = RoundReporter(self, self._n_reports())
        reporter.fit_begins(X, y)
        history: list[dict[str, Any]] = []
        generator = generator_from(self.random_state)
        steps = self._steps(InnerRows(data.rows, data.coordinates), data.codes, generator)
        reporter.round_begins(X, y)
        for step in steps:
            history.append(step.record)
            asked = round_is_over(type(self).__name__, history, self._n_reports(), self.verbose)
            stop = reporter.round_ends(X, y, partial(self._attributes, data, step, history))
            if stop or asked or len(history) == self._n_reports():
                break
            reporter.round_begins(X, y)
        steps.close()
        attributes = self._attributes(data, step, history)
        reporter.fit_ends(X, y, lambda: attributes)
        return attributes

    def _attributes(self, data: Data, step: Step, history: list[dict[str, Any]]) -> dict[str, Any]:
        """The fitted attributes where the algorithm stands; all rows vote."""
        inner = InnerRows(data.rows, data.coordinates)
        references = References.of(inner.under(step.components))
        return {
            "classes_": data.classes,
            "components_": step.components,
            "history_": list(history),
            "n_iter_": len(history),
            "_coordinates": data.coordinates,
            "_references": references,
            "_reference_codes": data.codes,
            "_temperature": temperature_from_references(references),
        }
