"""Algorithms as steps: parts add up, and states that cannot belong to the rows are refused."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric.core import hrsgd, oasis
from latentmetric.core.alternation import Settings, check_state, first_state
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.population import LocalPopulation
from latentmetric.core.starts import Start
from latentmetric.core.triplets import Triplets


def followed(steps, seed=0):
    """All states of an algorithm, each checked."""
    generator = np.random.default_rng(seed)
    states = [steps.first(generator)]
    while len(states) <= steps.limit:
        states.append(steps.following(states[-1], generator))
    for state in states:
        steps.check(state)
    return states


@pytest.mark.parametrize(
    ("make", "result"),
    [
        (lambda *parts: oasis.steps(*parts, 1.0, 1), "similarity"),
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
    name = "similarity" if result == "similarity" else "metric"
    other, check = replace(states[-1], **{name: np.eye(5)}), make(rows, y, 2_000, 4).check
    with pytest.raises(ValueError, match=r"\(5, 5\), but this data needs \(6, 6\)"):
        check(other)


NOWHERE = np.array([99])
WRONG = {
    "latents of other features": lambda state: {"latents": state.latents[:, :5]},
    "a metric that is not finite": lambda state: {"components": np.nan * state.components},
    "classes without latents": lambda state: {"class_starts": np.array([0, 0, 8, 24])},
    "an unknown start": lambda state: {"start": replace(state.start, name="other")},
    "judges that do not exist": lambda state: {"judges": NOWHERE * 99},
    "triplets of no latents": lambda state: {"watched": Triplets(*[NOWHERE] * 3, np.ones(1))},
    "lists of two lengths": lambda state: {
        "watched": replace(state.watched, targets=state.watched.targets[:1])
    },
    "hinges of other pairs": lambda state: {
        "candidates": replace(state.candidates, hinges=state.candidates.hinges[:, :1])
    },
    "hinges that are no numbers": lambda state: {
        "candidates": replace(state.candidates, hinges=np.nan * state.candidates.hinges)
    },
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_states_that_cannot_belong_to_the_rows_are_refused(change):
    X, y = make_blobs()
    rows = LocalPopulation.of(X, y)
    settings = Settings(100, 1.0, 0.0, np.inf, 3, 3, None, 10, 1)
    start = Start.euclidean(6, np.dtype(np.float64))
    counts, generator = np.full(3, 8), np.random.default_rng(0)
    state = first_state(rows, counts, "random", settings, start, generator)
    check_state(rows, state)
    with pytest.raises(ValueError, match=r"^(its?|an array) "):
        check_state(rows, replace(state, **change(state)))
