"""An SVM with an RBF kernel: width, penalty and scaling are chosen.

The squared distances of a fold are computed once for all widths and penalties. The last fit takes
all rows, or, if the task is bounded, so few that rows times rows times features do not pass
``MOST_WORK``: its time grows with this product, and that of its answers with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isqrt

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC

from latentmetric.core.types import Floats, Ints
from latentmetric.evaluation.rivals.choosing import Chosen, Task, choose, scaled

SELECTION_ROWS = 1_000
"""Training rows that the choice is made on."""

MOST_ROWS = 5_000
MOST_WORK = 10**10
"""Rows of a bounded fit, and the product of their square and the features; from more rows, a sample
is drawn."""

PENALTIES = (1.0, 10.0)
WIDTHS = (0.3, 1.0, 3.0)
"""Multiples of scikit-learn's gamma="scale"."""

CANDIDATES = tuple(product(WIDTHS, PENALTIES))


def support_vectors(task: Task) -> Chosen:
    """Choose on a sample of the training rows."""
    some = task.some(SELECTION_ROWS)
    scaling, (factor, penalty) = choose(some, (True, False), CANDIDATES, answers)
    gamma = _gamma(factor, *scaled(scaling, some.rows))
    said = f"C = {penalty:g}, gamma = {gamma:.2g}"
    n_rows = _most_rows(task) if task.bounded else None
    return Chosen(SVC(C=penalty, gamma=gamma), scaling, said, n_rows)


def answers(known: Floats, codes: Ints, asked: Floats) -> Iterator[Ints]:
    """What an SVM with each of ``CANDIDATES`` says; a matrix is faster than libsvm's own kernel."""
    within, across = (euclidean_distances(rows, known, squared=True) for rows in (known, asked))
    for factor, penalty in CANDIDATES:
        gamma = _gamma(factor, known)
        machine = SVC(C=penalty, kernel="precomputed").fit(np.exp(-gamma * within), codes)
        yield machine.predict(np.exp(-gamma * across))


def _most_rows(task: Task) -> int:
    """Rows that a bounded time allows, at least two for each class."""
    allowed = min(MOST_ROWS, isqrt(MOST_WORK // int(task.rows.shape[1])))
    return min(len(task.codes), max(2 * task.n_classes, allowed))


def _gamma(factor: float, rows: Floats) -> float:
    variance = float(np.var(rows)) or 1.0
    return factor / (int(rows.shape[1]) * variance)
