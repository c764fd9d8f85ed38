"""An SVM with an RBF kernel: width, penalty and scaling are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from sklearn.svm import SVC

from latentmetric.core.types import Floats, Ints
from latentmetric.evaluation.rivals.choosing import Chosen, Task, choose, scaled

SELECTION_ROWS = 1_000
"""Training rows that the choice is made on."""

PENALTIES = (1.0, 10.0)
WIDTHS = (0.3, 1.0, 3.0)
"""Multiples of scikit-learn's gamma="scale"."""


def support_vectors(task: Task) -> Chosen:
    """Choose on a sample of the training rows."""
    some = task.some(SELECTION_ROWS)
    candidates = list(product(WIDTHS, PENALTIES))

    def answers(known: Floats, codes: Ints, asked: Floats) -> Iterator[Ints]:
        for factor, penalty in candidates:
            machine = SVC(C=penalty, gamma=_gamma(factor, known))
            yield machine.fit(known, codes).predict(asked)

    scaling, (factor, penalty) = choose(some, (True, False), candidates, answers)
    gamma = _gamma(factor, *scaled(scaling, some.rows))
    said = f"C = {penalty:g}, gamma = {gamma:.2g}"
    return Chosen(SVC(C=penalty, gamma=gamma), scaling, said)


def _gamma(factor: float, rows: Floats) -> float:
    variance = float(np.var(rows)) or 1.0
    return factor / (int(rows.shape[1]) * variance)
