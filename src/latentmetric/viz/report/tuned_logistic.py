"""Logistic regression on standardised rows, with its strength chosen on training rows.

Time is bounded: rows times features times classes by ``MOST_WORK``, and the iterations of the last
fit by ``ALL_WORK`` over that.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from latentmetric.core.types import Floats, Ints
from latentmetric.evaluation.sampling import sample
from latentmetric.viz.report.baselines import Baseline, Task, folds, standardised

NAME = "logistic regression"

STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Values of C that are tried, the strongest regularisation first."""

SELECTION_ROWS = 3_000
SELECTION_WORK = 2 * 10**8
"""Training rows that the choice is made on, and their product with features and classes."""

SELECTION_ITERATIONS = 50

MOST_WORK = 2 * 10**9
"""Product of rows, features and classes of the last fit; from more rows, a sample is drawn."""

ALL_WORK = 4 * 10**10
"""The same times the iterations of the last fit."""

FEWEST_ITERATIONS, MOST_ITERATIONS = 20, 300


def tuned_logistic(task: Task) -> Baseline:
    """Choose C on a sample of the training rows, then fit to as many as time allows."""
    width = task.rows.shape[1] * task.n_classes
    strength = _choose(task, min(SELECTION_ROWS, SELECTION_WORK // width + 2))
    kept = sample(task.codes, max(2 * task.n_classes, MOST_WORK // width), task.generator)
    rows, queries = standardised(task.rows[kept], task.queries)
    iterations = ALL_WORK // (width * len(kept))
    model = _new(strength, int(np.clip(iterations, FEWEST_ITERATIONS, MOST_ITERATIONS)))
    _fit(model, rows, task.codes[kept])
    return Baseline(NAME, model.predict(queries), len(kept), f"C = {strength:g}")


def _choose(task: Task, n_rows: int) -> float:
    """The C with the fewest errors over all folds; of equals, the strongest regularisation."""
    chosen = sample(task.codes, n_rows, task.generator)
    rows, codes = task.rows[chosen], task.codes[chosen]
    wrong = np.zeros(len(STRENGTHS), dtype=np.intp)
    for fitted, judged in folds(codes, task.generator):
        known, asked = standardised(rows[fitted], rows[judged])
        model = _new(STRENGTHS[0], SELECTION_ITERATIONS)
        for place, strength in enumerate(STRENGTHS):
            _fit(model.set_params(C=strength), known, codes[fitted])
            wrong[place] += np.count_nonzero(model.predict(asked) != codes[judged])
    return STRENGTHS[int(wrong.argmin())]


def _new(strength: float, iterations: int) -> Any:
    """A fit begins where the one before it ended."""
    return LogisticRegression(C=strength, max_iter=iterations, tol=1e-3, warm_start=True)


def _fit(model: Any, rows: Floats, codes: Ints) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, codes)
