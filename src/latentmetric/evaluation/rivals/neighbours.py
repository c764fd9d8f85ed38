"""k nearest rows under the Euclidean distance: k, weights and scaling are chosen.

The nearest rows are searched once for all k and weights. The answers are those of scikit-learn's
KNeighborsClassifier.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from latentmetric.core.model import euclidean_model
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.evaluation.rivals.choosing import Chosen, Task, choose

SELECTION_ROWS = 3_000
"""Training rows that the choice is made on."""

NEIGHBOURS = (1, 3, 5, 9, 15)
WEIGHTS = {"uniform": "equal votes", "distance": "nearer rows count more"}
"""The weights that are tried, each in words."""


def nearest_neighbours(task: Task) -> Chosen:
    """Choose on a sample of the training rows; all of them vote."""
    some = task.some(SELECTION_ROWS)
    n_half = max(1, len(some.codes) // 2)
    candidates = [(k, how) for k, how in product(NEIGHBOURS, WEIGHTS) if k <= n_half]

    def answers(known: Floats, codes: Ints, asked: Floats) -> Iterator[Ints]:
        model = euclidean_model(known, codes, task.n_classes)
        neighbors = model.nearest(asked, min(max(NEIGHBOURS), len(known)), task.n_jobs)
        for k, weights in candidates:
            yield model.vote(neighbors.first(k), weights)

    scaling, (k, weights) = choose(some, (False, True), candidates, answers)
    classifier = Euclidean(k, weights=weights, n_jobs=task.n_jobs)
    return Chosen(classifier, scaling, f"k = {k}, {WEIGHTS[weights]}")
