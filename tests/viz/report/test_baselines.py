"""What one would use instead: rivals that are tuned on training rows."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from latentmetric.viz.report import tuned_logistic as logistic
from latentmetric.viz.report.baselines import FOLDS, Task, folds, standardised
from latentmetric.viz.report.tuned_logistic import tuned_logistic
from latentmetric.viz.report.tuned_neighbors import tuned_neighbors


def task_of(X, y, n_train=160):
    generator = np.random.default_rng(0)
    return Task(X[:n_train], y[:n_train], X[n_train:], int(y.max()) + 1, generator, 1)


def test_every_row_judges_once_and_never_where_it_was_fitted(rng):
    codes = rng.integers(0, 4, 50)
    parts = list(folds(codes, rng))
    assert len(parts) == FOLDS
    assert sorted(np.concatenate([judged for _, judged in parts])) == list(range(50))
    for fitted, judged in parts:
        assert not set(fitted) & set(judged)
        assert set(codes[fitted]) == set(codes)


def test_folds_without_two_classes_are_left_out(rng):
    assert list(folds(np.array([0, 1]), rng)) == []


def test_rows_are_standardised_by_the_first_and_constants_stay_finite(rng):
    X = rng.standard_normal((30, 3)) * (1, 50, 0) + (3, -4, 7)
    rows, others = standardised(X[:20], X[20:])
    scaler = StandardScaler().fit(X[:20])
    np.testing.assert_allclose(rows, scaler.transform(X[:20]))
    np.testing.assert_allclose(others, scaler.transform(X[20:]))


def test_the_choice_of_neighbors_predicts_as_scikit_learn_does():
    X, y = make_blobs()
    found = tuned_neighbors(task_of(X, y))
    k = int(found.chosen.split(",")[0].removeprefix("k = "))
    weights = "uniform" if "equal votes" in found.chosen else "distance"
    train, test = X[:160], X[160:]
    if "standardised" in found.chosen:
        train, test = standardised(train, test)
    oracle = KNeighborsClassifier(k, weights=weights).fit(train, y[:160]).predict(test)
    assert np.mean(oracle == found.predicted) > 0.97, "ties may differ"
    assert found.n_rows == 160


def test_columns_of_different_units_are_standardised():
    X, y = make_blobs()
    X = X * (1, 1, 1, 1, 1, 1000)
    assert "standardised" in tuned_neighbors(task_of(X, y)).chosen


def test_logistic_regression_predicts_as_scikit_learn_does():
    X, y = make_blobs()
    found = tuned_logistic(task_of(X, y))
    train, test = standardised(X[:160], X[160:])
    oracle = LogisticRegression(C=float(found.chosen.removeprefix("C = ")), max_iter=1000)
    assert np.mean(oracle.fit(train, y[:160]).predict(test) == found.predicted) > 0.98


def test_logistic_regression_takes_no_more_rows_than_time_allows(monkeypatch):
    X, y = make_blobs()
    monkeypatch.setattr(logistic, "MOST_WORK", 60 * 6 * 3)
    assert tuned_logistic(task_of(X, y)).n_rows == 60


@pytest.mark.parametrize("fit", [tuned_neighbors, tuned_logistic])
@pytest.mark.parametrize("n_train", [2, 4])
def test_a_few_rows_are_enough(fit, n_train):
    X, y = make_blobs()
    rows = np.concatenate([np.flatnonzero(y == label)[: n_train // 2] for label in (0, 1)])
    task = Task(X[rows], y[rows], X, 3, np.random.default_rng(0), 1)
    assert set(fit(task).predicted) <= {0, 1}
