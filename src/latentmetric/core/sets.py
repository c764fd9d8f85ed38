"""Sets of latent examples, which the refinement learns side by side under one metric.

In the refinement, each set classifies the rows alone; in the fitted model, all vote together. Where
one set is wrong by chance, another one is right: as in an average of several fits, at little more
than the cost of one, because all sets see the same rows under the same metric.

In each class, the latent examples stand set by set, as many in each set. Time and memory O(m).
"""

from __future__ import annotations

import numpy as np

from latentmetric.core.types import Ints


def sets_of(class_starts: Ints, n_sets: int) -> Ints:
    """The numbers of the latent examples of each set, (sets, m / sets), class by class."""
    order: Ints = np.argsort(set_numbers(class_starts, n_sets), kind="stable")
    return order.reshape(n_sets, -1)


def set_numbers(class_starts: Ints, n_sets: int) -> Ints:
    """The set of each latent example."""
    sizes = np.diff(class_starts)
    within = np.arange(class_starts[-1]) - np.repeat(class_starts[:-1], sizes)
    numbers: Ints = within * n_sets // np.repeat(sizes, sizes)
    return numbers
