import baselines
import numpy as np
import pytest
from pairwise_svm import PairwiseSVM
from rivals import RIVALS, Trials, fit_within, negative_log_likelihood
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import SVC
from small_sets import SMALL_SETS, folds, load_small

NEED_FILES = {"letter 3k", "banking 4k"}


@pytest.mark.parametrize("name", sorted(set(SMALL_SETS) - NEED_FILES))
def test_small_sets_and_their_folds_are_always_the_same(name):
    X, y = load_small(name)
    again, labels = load_small(name)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    tested = np.concatenate([test for _, test in folds(name, y)])
    np.testing.assert_array_equal(np.sort(tested), np.arange(len(X)))
    for (train, test), (train_again, _) in zip(folds(name, y), folds(name, y), strict=True):
        np.testing.assert_array_equal(train, train_again)
        assert not np.intersect1d(train, test).size
        assert len(np.unique(y[train])) == len(np.unique(y))


def test_pairwise_svm_is_the_svc_of_scikit_learn():
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 600), slice(600, 1000)
    ours = PairwiseSVM(10, 1e-3).fit(X[train], y[train]).predict(X[test])
    theirs = SVC(C=10, gamma=1e-3, break_ties=True).fit(X[train], y[train]).predict(X[test])
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("rival", RIVALS)
def test_rivals_learn_iris(rival):
    X, y = load_iris(return_X_y=True)
    outcome = RIVALS[rival](X[::2], y[::2], X[1::2], 1)
    assert np.mean(outcome.predicted != y[1::2]) < 0.1
    assert outcome.rows == 75
    if outcome.shares is not None:
        np.testing.assert_allclose(outcome.shares.sum(axis=1), 1)
        assert (outcome.shares.argmax(axis=1) == outcome.predicted).all()


def test_the_largest_sample_within_the_time_is_fitted():
    tried = []
    assert fit_within(lambda n: tried.append(n) or n, 50_000, 3600) == (50_000, 50_000)
    assert tried == [2_000, 8_000, 32_000, 50_000]
    assert fit_within(lambda n: n, 50_000, 0) == (2_000, 2_000)
    assert fit_within(lambda n: n, 700, 0) == (700, 700)


def test_of_equal_errors_the_most_likely_probabilities_are_chosen():
    trials, codes = Trials("name"), np.array([0, 1])
    for name, right in (("unsure", 0.6), ("sure", 0.9), ("too late", 0.9)):
        shares = np.where(np.eye(2) == 1, right, 1 - right)
        trials.add((name,), codes, codes, shares)
    trials.add(("wrong",), 1 - codes, codes, np.eye(2))
    assert trials.best() == {"name": "sure"}


def test_calibration_by_hand():
    shares = np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [1.0, 0.0]])
    predicted, codes = np.array([0, 0, 1, 0]), np.array([0, 1, 1, 1])
    expected = (abs(2 * 0.9 - 1) + abs(0.8 - 1) + 1) / 4
    found = baselines.calibration_error(shares, predicted, codes)
    np.testing.assert_allclose(found, 100 * expected)
    nll = -np.log([0.9, 0.1, 0.8, 1e-3]).mean()
    np.testing.assert_allclose(negative_log_likelihood(shares, codes), nll)
