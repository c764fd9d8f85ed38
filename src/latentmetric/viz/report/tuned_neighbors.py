"""k nearest rows under the Euclidean distance, with k, scaling and weights chosen on training rows.

Time O(q·n·d) for q queries, n training rows and d features, and a bounded choice before it.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from latentmetric.core.model import euclidean_model
from latentmetric.core.types import Floats
from latentmetric.evaluation.sampling import sample
from latentmetric.viz.report.baselines import Baseline, Task, folds, standardised

NAME = "k\N{NON-BREAKING HYPHEN}NN, chosen"

SELECTION_ROWS = 3_000
"""Training rows that the choice is made on."""

NEIGHBORS = (1, 3, 5, 9, 15)
WEIGHTS = ("uniform", "distance")
SCALINGS = ("as they are", "standardised")

Choice = tuple[str, int, str]
"""Scaling, k and weights."""


def tuned_neighbors(task: Task) -> Baseline:
    """Choose on a sample of the training rows, then let all of them vote."""
    scaling, k, weights = _choose(task)
    rows, queries = _scaled(scaling, task.rows, task.queries)
    model = euclidean_model(rows, task.codes, task.n_classes)
    neighbors = model.nearest(queries, min(k, len(rows)), task.n_jobs)
    said = f"k = {k}, {_WEIGHTED[weights]}, columns {scaling}"
    return Baseline(NAME, model.vote(neighbors, weights), len(rows), said)


_WEIGHTED = {"uniform": "equal votes", "distance": "nearer rows count more"}


def _choose(task: Task) -> Choice:
    """The choice with the fewest errors over all folds; of equals, the first."""
    chosen = sample(task.codes, SELECTION_ROWS, task.generator)
    rows, codes = task.rows[chosen], task.codes[chosen]
    wrong: dict[Choice, int] = dict.fromkeys(product(SCALINGS, NEIGHBORS, WEIGHTS), 0)
    for fitted, judged in folds(codes, task.generator):
        for scaling in SCALINGS:
            known, asked = _scaled(scaling, rows[fitted], rows[judged])
            model = euclidean_model(known, codes[fitted], task.n_classes)
            neighbors = model.nearest(asked, min(max(NEIGHBORS), len(known)), task.n_jobs)
            for k, weights in product(NEIGHBORS, WEIGHTS):
                voted = model.vote(neighbors.first(k), weights)
                wrong[scaling, k, weights] += int(np.count_nonzero(voted != codes[judged]))
    return min(wrong, key=lambda choice: wrong[choice])


def _scaled(scaling: str, rows: Floats, queries: Floats) -> list[Floats]:
    return [rows, queries] if scaling == SCALINGS[0] else standardised(rows, queries)
