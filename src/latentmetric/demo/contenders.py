"""Digits as they are, with noise and with wrong labels, and what is measured of each method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric.core.types import Bools
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.estimators.mapml import MaPML
from latentmetric.evaluation import calibration_error
from latentmetric.evaluation.comparison import predictor, timed
from latentmetric.evaluation.rivals import Rival, fit_rival

SIGMA = 8
"""Standard deviation of the noise on a pixel, of 16 grey levels."""

DRAWN_LABELS = 0.3
"""The share of the training labels that are drawn at random."""

EUCLID, TUNED, LOGISTIC, SUPPORT = "3-NN", "tuned k-NN", "logistic regression", "tuned SVC"
MAPML, SMALL_MAPML = "MaPML, 10 % latents", "MaPML, 2 % latents"
NAMES = (EUCLID, TUNED, LOGISTIC, SUPPORT, MAPML, SMALL_MAPML)

RIVALS = {TUNED: "tuned-k-NN", LOGISTIC: "logistic-regression", SUPPORT: "SVC"}
"""How ``latentmetric.evaluation.rivals`` calls them."""

LATENTS = {MAPML: 0.1, SMALL_MAPML: 0.02}
"""Latent examples for each row."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Task:
    """Rows to learn from, and rows to test with."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array

    def without(self, label: int) -> Task:
        """No rows of one class to learn from; the test still has them."""
        known = self.y_train != label
        return replace(self, X_train=self.X_train[known], y_train=self.y_train[known])


def digits() -> Task:
    """The images of scikit-learn, three tenths of them for the test."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=0
    )
    return Task(X_train, y_train, X_test, y_test)


def noisy(task: Task) -> Task:
    """Noise on the images to learn from; those of the test stay clean."""
    noise = np.random.default_rng(0).normal(0, SIGMA, task.X_train.shape)
    return replace(task, X_train=task.X_train + noise)


def mislabelled(task: Task) -> Task:
    """Some labels to learn from are drawn at random; those of the test are right."""
    generator = np.random.default_rng(0)
    labels = task.y_train.copy()
    drawn = generator.choice(len(labels), round(DRAWN_LABELS * len(labels)), replace=False)
    labels[drawn] = generator.choice(np.unique(labels), len(drawn))
    return replace(task, y_train=labels)


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
    def wrong(self) -> int:
        """Wrong answers."""
        return int(np.count_nonzero(~self.right))

    @property
    def error(self) -> float:
        """The share of wrong answers."""
        return self.wrong / len(self.right)


def measure(name: str, task: Task, label_noise: bool) -> Measured:
    """Fit a method and measure it."""
    fitted, fit_seconds = timed(partial(_fit, name, task.X_train, task.y_train, label_noise))
    predict, references = predictor(fitted)
    predicted, query_seconds = timed(partial(predict, task.X_test))
    model = fitted.pipeline if isinstance(fitted, Rival) else fitted
    calibration = None
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(task.X_test)
        calibration = calibration_error(task.y_test, shares, model.classes_)
    right = predicted == task.y_test
    return Measured(model, right, references, fit_seconds, query_seconds, calibration)


def _fit(name: str, X: Array, y: Array, label_noise: bool) -> Any:
    if name in RIVALS:
        return fit_rival(RIVALS[name], X, y)
    if name == EUCLID:
        return Euclidean().fit(X, y)
    return MaPML(LATENTS[name], label_noise=label_noise, random_state=0).fit(X, y)
