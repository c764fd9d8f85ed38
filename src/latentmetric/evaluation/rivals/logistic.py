"""Logistic regression: its strength and the scaling are chosen.

The time of the choice is bounded: rows times features times classes by ``SELECTION_WORK``. So is
that of the last fit, if the task is bounded: the same product by ``MOST_WORK``, and the iterations
by ``ALL_WORK`` over it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression

from latentmetric.core.types import Floats, Ints
from latentmetric.evaluation.rivals.choosing import Chosen, Task, choose

STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Values of C that are tried, the strongest regularisation first."""

SELECTION_ROWS = 3_000
SELECTION_WORK = 2 * 10**8
"""Training rows that the choice is made on, and their product with features and classes."""

SELECTION_ITERATIONS = 50
SELECTION_TOLERANCE = 1e-3

MOST_WORK = 2 * 10**9
"""Product of rows, features and classes of a bounded fit; from more rows, a sample is drawn."""

ALL_WORK = 4 * 10**10
"""The same times the iterations of a bounded fit."""

FEWEST_ITERATIONS, MOST_ITERATIONS = 20, 300


def logistic_regression(task: Task) -> Chosen:
    """Choose on a sample of the training rows."""
    some = task.some(min(SELECTION_ROWS, SELECTION_WORK // task.width + 2))
    scaling, strength = choose(some, (True, False), STRENGTHS, _answers)
    n_rows, iterations = _bounds(task) if task.bounded else (None, MOST_ITERATIONS)
    classifier = LogisticRegression(C=strength, max_iter=iterations)
    return Chosen(classifier, scaling, f"C = {strength:g}", n_rows)


def _answers(known: Floats, codes: Ints, asked: Floats) -> Iterator[Ints]:
    """Each fit begins where the one before it ended."""
    model = LogisticRegression(
        max_iter=SELECTION_ITERATIONS, tol=SELECTION_TOLERANCE, warm_start=True
    )
    for strength in STRENGTHS:
        yield model.set_params(C=strength).fit(known, codes).predict(asked)


def _bounds(task: Task) -> tuple[int, int]:
    """Rows and iterations that a bounded time allows."""
    most_rows = max(2 * task.n_classes, MOST_WORK // task.width)
    n_rows = min(len(task.codes), most_rows)
    iterations = np.clip(ALL_WORK // (task.width * n_rows), FEWEST_ITERATIONS, MOST_ITERATIONS)
    return n_rows, int(iterations)
