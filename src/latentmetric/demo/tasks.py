"""What the demo sets its contenders: digits as they are, with noise, with wrong labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

IMAGE_SHAPE = (8, 8)
GREY_LEVELS = 16
"""The largest value of a pixel."""

SIGMA = 8
"""Standard deviation of the noise on a pixel."""

DRAWN_LABELS = 0.3
"""The share of the training labels that are drawn at random."""

LEFT_OUT = 9
"""The digit that is unknown at first, and then added."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Task:
    """Rows to learn from, and rows to test with."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


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


def without(task: Task, label: int) -> Task:
    """No rows of one class to learn from; the test still has them."""
    known = task.y_train != label
    return replace(task, X_train=task.X_train[known], y_train=task.y_train[known])
