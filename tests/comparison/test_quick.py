"""The quick answer after a fit."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.base import clone

from latentmetric import Euclidean, MaPML
from latentmetric.comparison import quick_check
from latentmetric.comparison.quick import MOST_ROWS
from latentmetric.io import open_rows

QUICK = MaPML(max_iter=2, n_steps=1000, refine=1, random_state=0)


def curved(n_rows, seed=0):
    """Two classes that no line separates, hidden among columns of noise."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n_rows, 12))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def mislabelled(n_rows):
    """One of three labels is drawn at random, which misleads a single neighbour."""
    X, y = make_blobs(n_rows)
    generator = np.random.default_rng(0)
    return X, np.where(generator.random(n_rows) < 1 / 3, generator.integers(0, 3, n_rows), y)


def test_errors_are_those_of_held_out_rows():
    X, y = curved(900)
    model = clone(QUICK)
    found = quick_check(model, X, y)
    assert (found.fitted_rows, found.held_out_rows) == (600, 300)
    assert list(found.errors) == ["MaPML", "tuned-k-NN", "logistic-regression"]
    assert found.errors["logistic-regression"] > 0.4
    assert not hasattr(model, "model_"), "the caller's estimator is not fitted"
    assert "Error on 300 rows after a trial fit to 600 others: MaPML " in found.words
    assert quick_check(model, X, y) == found


@pytest.mark.parametrize(
    ("make", "estimator", "verdict"),
    [
        (curved, QUICK, "MaPML is better."),
        (make_blobs, QUICK, "too close to tell."),
        (mislabelled, Euclidean(n_neighbors=1), "logistic-regression is better."),
    ],
)
def test_the_verdict_follows_a_sign_test(make, estimator, verdict):
    assert quick_check(estimator, *make(900)).words.endswith(verdict)


def test_rows_of_a_file_are_sampled(tmp_path):
    X, y = make_blobs(n_rows=2 * MOST_ROWS)
    np.save(tmp_path / "rows.npy", X)
    found = quick_check(Euclidean(), open_rows(tmp_path / "rows.npy"), y)
    assert found.fitted_rows + found.held_out_rows == MOST_ROWS
    assert found == quick_check(Euclidean(), X, y)
    assert found.words.endswith(f"A fit to all {2 * MOST_ROWS:,} rows should have a lower error.")


def test_nothing_is_said_where_rows_are_few_or_work_is_much(monkeypatch):
    X, y = make_blobs()
    assert quick_check(Euclidean(), X[:50], y[:50]) is None
    assert quick_check(Euclidean(), X, np.arange(len(X))) is None, "no class has three rows"
    monkeypatch.setattr("latentmetric.comparison.quick.MOST_WORK", X.size * 3 - 1)
    assert quick_check(Euclidean(), X, y) is None


def test_rare_classes_are_left_out():
    X, y = make_blobs()
    y[:2] = 9
    found = quick_check(Euclidean(), X, y)
    assert found.fitted_rows + found.held_out_rows == len(y) - 2
