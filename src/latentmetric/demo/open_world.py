"""What happens when a class is missing from the fit: its rows are turned away, or it is added."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from latentmetric.demo.tasks import LEFT_OUT, Task
from latentmetric.demo.words import percent
from latentmetric.estimators.mapml import MaPML

REJECTED_SHARE = 0.05
"""How many rows of known classes one is willing to turn away."""

NOTHING = -1
"""The label of a row that is turned away."""


def unknown_rows(model: MaPML, task: Task) -> str:
    """How many rows of the class that the model does not know are turned away, in words."""
    threshold = model.reject_threshold(REJECTED_SHARE)
    answers = model.predict(task.X_test, reject_below=threshold, reject_label=NOTHING)
    strange = task.y_test == LEFT_OUT
    turned_away = answers == NOTHING
    unknown, known = (percent(turned_away[rows].mean()) for rows in (strange, ~strange))
    return (
        f"A model that has never seen a {LEFT_OUT} turns away {unknown} of them as no known digit, "
        f"and {known} of the digits it knows."
    )


def new_class(model: MaPML, task: Task) -> str:
    """Add the class that the model does not know, and say how well it then does, in words."""
    own = task.y_train == LEFT_OUT
    since = perf_counter()
    model.add_classes(task.X_train[own], task.y_train[own])
    seconds = perf_counter() - since
    right = model.predict(task.X_test) == task.y_test
    new = task.y_test == LEFT_OUT
    return (
        f"Then {np.count_nonzero(own)} images of a {LEFT_OUT} are added in "
        f"{1000 * seconds:.0f} ms, without a new fit: {percent(right[new].mean())} of the test's "
        f"{LEFT_OUT}s are recognised, and {percent(1 - right.mean(), 1)} of all digits are wrong."
    )
