"""The methods that the demo compares, and what it measures of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from latentmetric.core.types import Bools
from latentmetric.demo.tasks import Task
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.estimators.mapml import MaPML
from latentmetric.evaluation import calibration_error
from latentmetric.evaluation.comparison import timed
from latentmetric.evaluation.rivals import Rival, fit_rival

EUCLID, TUNED, LOGISTIC, SUPPORT = "3-NN", "tuned k-NN", "logistic regression", "tuned SVC"
MAPML, SMALL_MAPML = "MaPML, 10 % latents", "MaPML, 2 % latents"

LATENTS = {MAPML: 0.1, SMALL_MAPML: 0.02}
"""Latent examples for each row."""

RIVALS = {TUNED: "tuned-k-NN", LOGISTIC: "logistic-regression", SUPPORT: "SVC"}
"""How ``latentmetric.evaluation.rivals`` calls them."""

NAMES = (EUCLID, TUNED, LOGISTIC, SUPPORT, MAPML, SMALL_MAPML)


@dataclass(frozen=True, eq=False)
class Measured:
    """A fitted method, and how it did on the test rows."""

    model: Any
    right: Bools
    """Whether each row of the test is predicted correctly."""
    references: int
    """Rows or latent examples that a query is compared with; 0 if there are none."""
    fit_seconds: float
    query_seconds: float
    """For all rows of the test."""
    calibration: float | None
    """None of a method without probabilities."""

    @property
    def rows(self) -> int:
        """Rows of the test."""
        return len(self.right)

    @property
    def wrong(self) -> int:
        """Wrong answers."""
        return int(np.count_nonzero(~self.right))

    @property
    def error(self) -> float:
        """The share of wrong answers."""
        return self.wrong / self.rows


def contest(
    task: Task, about_to: Callable[[str], None], *, label_noise: bool = False
) -> dict[str, Measured]:
    """Fit and measure every method; ``about_to`` is called with the name of each before."""
    measured = {}
    for name in NAMES:
        about_to(name)
        measured[name] = _measure(name, task, label_noise)
    return measured


def _measure(name: str, task: Task, label_noise: bool) -> Measured:
    fitted, fit_seconds = timed(partial(_fit, name, task, label_noise))
    if isinstance(fitted, Rival):
        model, references = fitted.pipeline, fitted.references
    else:
        model, references = fitted, len(fitted.model_.references)
    predicted, query_seconds = timed(partial(model.predict, task.X_test))
    return Measured(
        model,
        predicted == task.y_test,
        references,
        fit_seconds,
        query_seconds,
        _calibration(model, task),
    )


def _calibration(model: Any, task: Task) -> float | None:
    if not hasattr(model, "predict_proba"):
        return None
    return calibration_error(task.y_test, model.predict_proba(task.X_test), model.classes_)


def _fit(name: str, task: Task, label_noise: bool) -> Any:
    X, y = task.X_train, task.y_train
    if name in RIVALS:
        return fit_rival(RIVALS[name], X, y)
    if name == EUCLID:
        return Euclidean().fit(X, y)
    return MaPML(LATENTS[name], label_noise=label_noise, random_state=0).fit(X, y)
