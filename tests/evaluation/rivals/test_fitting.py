"""The rivals of scikit-learn: what is chosen for them, and rows with which nothing can be."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from latentmetric.evaluation.rivals import FOREST, SCALED, TUNED, fit_rival
from latentmetric.evaluation.rivals.choosing import Task
from latentmetric.evaluation.rivals.support_vectors import CANDIDATES, answers

NAMES = [SCALED, *TUNED, FOREST]


def as_scaled(rival, *parts):
    """Rows as the classifier of a rival sees them."""
    if rival.chosen.endswith("standardised"):
        return [rival.pipeline[0].transform(part) for part in parts]
    return parts


@pytest.mark.parametrize("name", TUNED)
def test_columns_of_another_unit_are_scaled(name):
    X, y = make_blobs()
    X = X[:, ::-1] * [1, 1, 1e3, 1e3, 1e3, 1e3]
    rival = fit_rival(name, X, y)
    assert isinstance(rival.pipeline[0], StandardScaler)
    assert rival.chosen.endswith("columns standardised")
    assert rival.pipeline.score(X, y) > 0.7


def test_many_neighbours_where_labels_are_noisy(rng):
    X, y = make_blobs(n_rows=600, n_features=2)
    y = np.where(rng.random(600) < 0.3, rng.integers(0, 3, 600), y)
    rival = fit_rival("tuned-k-NN", X, y)
    k = rival.pipeline[-1].n_neighbors
    assert k > 5
    assert rival.chosen.startswith(f"k = {k}, ")


@pytest.mark.parametrize("scale", [1.0, [1, 1, 1e3, 1e3, 1e3, 1e3]], ids=["plain", "other units"])
def test_tuned_neighbours_answer_as_those_of_scikit_learn(scale):
    X, y = make_blobs(n_rows=300)
    X = X[:, ::-1] * scale
    rival = fit_rival("tuned-k-NN", X[:200], y[:200])
    found, train, test = rival.pipeline[-1], *as_scaled(rival, X[:200], X[200:])
    oracle = KNeighborsClassifier(found.n_neighbors, weights=found.weights).fit(train, y[:200])
    np.testing.assert_array_equal(rival.pipeline.predict(X[200:]), oracle.predict(test))


def test_logistic_regression_converges():
    X, y = make_blobs()
    rival = fit_rival("logistic-regression", X[:160], y[:160])
    found, train, test = rival.pipeline[-1], *as_scaled(rival, X[:160], X[160:])
    oracle = LogisticRegression(C=found.C, max_iter=1000).fit(train, y[:160])
    np.testing.assert_array_equal(rival.pipeline.predict(X[160:]), oracle.predict(test))


def test_a_forest_has_the_defaults_of_scikit_learn_and_the_seed():
    X, y = make_blobs()
    rival = fit_rival(FOREST, X[:160], y[:160], random_state=3, n_jobs=1)
    plain = RandomForestClassifier(random_state=3, n_jobs=1).fit(X[:160], y[:160])
    assert rival.pipeline[-1].get_params() == plain.get_params()
    np.testing.assert_array_equal(rival.pipeline.predict(X[160:]), plain.predict(X[160:]))


def test_references_are_what_a_query_is_compared_with():
    X, y = make_blobs()
    found = {name: fit_rival(name, X, y).references for name in NAMES}
    assert found[SCALED] == found["tuned-k-NN"] == len(y)
    assert found["logistic-regression"] == found[FOREST] == 0
    assert 0 < found["SVC"] <= len(y)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", "b"]),
        np.array(["a", "b", "b"]),
        np.array([7, 7, 9, 9]),
        np.array(["a", "b", "c", "d", "e"], dtype=object),
        np.repeat([0, 1, 2], [30, 30, 1]),
    ],
    ids=["two rows", "three rows", "two rows a class", "one row a class", "a class of one row"],
)
def test_few_rows(name, y, rng):
    X = rng.standard_normal((len(y), 3))
    rival = fit_rival(name, X, y, n_neighbors=1)
    assert set(rival.pipeline.predict(X).tolist()) <= set(y.tolist())
    assert rival.n_rows == len(y)


@pytest.mark.parametrize("name", NAMES)
def test_constant_columns(name):
    X = np.zeros((40, 3))
    assert fit_rival(name, X, np.arange(40) % 2).pipeline.predict(X).shape == (40,)


@pytest.mark.parametrize("name", NAMES)
def test_integers_are_rows_too(name):
    X, y = make_blobs()
    whole = np.round(10 * X).astype(int)
    assert fit_rival(name, whole, y).pipeline.score(whole, y) > 0.7


def test_the_choice_reads_no_more_than_a_sample(monkeypatch):
    seen, some = [], Task.some
    monkeypatch.setattr(Task, "some", lambda task, n: seen.append(n) or some(task, n))
    for module in ("neighbours", "logistic", "support_vectors"):
        monkeypatch.setattr(f"latentmetric.evaluation.rivals.{module}.SELECTION_ROWS", 50)
    monkeypatch.setattr("latentmetric.evaluation.rivals.logistic.SELECTION_WORK", 18 * 6 * 3)
    X, y = make_blobs()
    for name in TUNED:
        assert fit_rival(name, X, y).n_rows == len(y), "the fit reads all"
    assert seen == [50, 20, 50]


def test_a_bounded_fit_takes_no_more_rows_than_time_allows(monkeypatch):
    X, y = make_blobs()
    monkeypatch.setattr("latentmetric.evaluation.rivals.logistic.MOST_WORK", 60 * 6 * 3)
    monkeypatch.setattr("latentmetric.evaluation.rivals.logistic.ALL_WORK", 60 * 6 * 3 * 40)
    rival = fit_rival("logistic-regression", X, y, bounded=True)
    assert rival.n_rows == 60
    assert rival.pipeline[-1].max_iter == 40
    assert fit_rival("logistic-regression", X, y).n_rows == len(y)
    assert fit_rival("tuned-k-NN", X, y, bounded=True).n_rows == len(y)


@pytest.mark.parametrize(("name", "value"), [("MOST_WORK", 60 * 60 * 6), ("MOST_ROWS", 60)])
def test_a_bounded_svc_takes_no_more_rows_than_time_allows(monkeypatch, name, value):
    X, y = make_blobs()
    monkeypatch.setattr(f"latentmetric.evaluation.rivals.support_vectors.{name}", value)
    assert fit_rival("SVC", X, y, bounded=True).n_rows == 60
    assert fit_rival("SVC", X, y).n_rows == len(y)


@pytest.mark.parametrize("far", [0, 1e4])
def test_svc_is_chosen_by_the_answers_that_it_would_give(far):
    X, y = make_blobs()
    X = X + far
    known, asked = X[:160], X[160:]
    for (factor, penalty), found in zip(CANDIDATES, answers(known, y[:160], asked), strict=True):
        gamma = factor / (X.shape[1] * known.var())
        plain = SVC(C=penalty, gamma=gamma).fit(known, y[:160])
        np.testing.assert_array_equal(found, plain.predict(asked))
