"""The rivals of scikit-learn: what is chosen for them, and rows with which nothing can be."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.preprocessing import StandardScaler

from latentmetric.comparison.rivals import TUNED, fit_rival

NAMES = ["Euclid-scaled", *TUNED]


def chosen(name, X, y):
    return fit_rival(name, X, y, n_neighbors=3, random_state=0)


@pytest.mark.parametrize("name", TUNED)
def test_columns_of_another_unit_are_scaled(name):
    X, y = make_blobs()
    X = X[:, ::-1] * [1, 1, 1e3, 1e3, 1e3, 1e3]
    rival = chosen(name, X, y)
    assert isinstance(rival[0], StandardScaler)
    assert rival.score(X, y) > 0.7


def test_many_neighbours_where_labels_are_noisy(rng):
    X, y = make_blobs(n_rows=600, n_features=2)
    y = np.where(rng.random(600) < 0.3, rng.integers(0, 3, 600), y)
    assert chosen("k-NN-tuned", X, y)[-1].n_neighbors > 5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", "b", "b"]),
        np.array(["a", "b", "c", "d", "e"], dtype=object),
        np.repeat([0, 1, 2], [30, 30, 1]),
    ],
    ids=["three rows", "one row a class", "a class of one row"],
)
def test_few_rows(name, y, rng):
    X = rng.standard_normal((len(y), 3))
    predicted = chosen(name, X, y).predict(X) if len(y) >= 3 else y
    assert set(predicted.tolist()) <= set(y.tolist())


@pytest.mark.parametrize("name", NAMES)
def test_constant_columns(name):
    X = np.zeros((40, 3))
    assert chosen(name, X, np.arange(40) % 2).predict(X).shape == (40,)


def test_the_choice_reads_no_more_than_a_sample(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "latentmetric.comparison.rivals._best",
        lambda candidates, X, y, random_state: seen.append(len(y)) or candidates[0],
    )
    monkeypatch.setattr("latentmetric.comparison.rivals.MOST_ROWS", 50)
    monkeypatch.setattr("latentmetric.comparison.rivals.LOGISTIC_WORK", 20 * 6 * 3)
    X, y = make_blobs()
    for name in TUNED:
        chosen(name, X, y)
    assert seen == [50, 20, 50]
