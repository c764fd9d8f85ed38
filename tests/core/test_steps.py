"""Algorithms as steps: parts add up."""

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric.core import hrsgd, oasis
from latentmetric.core.coordinates import Coordinates, InnerRows


def followed(steps, seed=0):
    """All states of an algorithm."""
    generator = np.random.default_rng(seed)
    states = [steps.first(generator)]
    while len(states) <= steps.limit:
        states.append(steps.next(states[-1], generator))
    return states


@pytest.mark.parametrize(
    ("make", "result"),
    [
        (lambda *parts: oasis.steps(*parts, 1.0), "similarity"),
        (lambda *parts: hrsgd.steps(*parts, hrsgd.Settings(0.1, 10)), "average"),
    ],
    ids=["OASIS", "HR-SGD"],
)
def test_parts_make_all_steps_and_lower_the_objective(make, result):
    X, y = make_blobs(200)
    rows = InnerRows(X, Coordinates.of(X))
    states = followed(make(rows, y, 2_000, 4))
    assert [state.record["round"] for state in states] == list(range(5))
    assert states[-1].record["iterations"] in (2_000, 200)
    assert states[-1].record["objective"] < states[1].record["objective"]
    learned = getattr(states[-1], result)
    assert learned.shape == (6, 6)
