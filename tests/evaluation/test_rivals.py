"""The rivals of scikit-learn: what is chosen for them, and rows with which nothing can be."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric.evaluation import rivals
from latentmetric.evaluation.rivals import BOOSTING, FOREST, MAJORITY, SCALED, TUNED, fit_rival

NAMES = [MAJORITY, SCALED, *TUNED, FOREST, BOOSTING]


@pytest.mark.parametrize("name", TUNED)
def test_columns_of_another_unit_are_scaled(name):
    X, y = make_blobs()
    X = np.round(X[:, ::-1] * [10, 10, 1e4, 1e4, 1e4, 1e4]).astype(int)
    rival = fit_rival(name, X, y)
    assert isinstance(rival.pipeline[0], StandardScaler)
    assert rival.chosen.endswith("columns standardised")
    assert rival.pipeline.score(X, y) > 0.7


def test_neighbors_are_chosen_as_by_a_grid_search_and_answer_alike(rng):
    """With two classes and odd k, votes cannot tie, which scikit-learn would decide otherwise."""
    X, y = make_blobs(n_rows=300, n_classes=2)
    y = np.where(rng.random(300) < 0.3, rng.integers(0, 2, 300), y)
    rival = fit_rival("tuned k-NN", X[:200], y[:200])
    grid = {
        "scaling": ["passthrough", StandardScaler()],
        "vote__n_neighbors": rivals.NEIGHBORS,
        "vote__weights": list(rivals.WEIGHTS),
    }
    pipeline = Pipeline([("scaling", None), ("vote", KNeighborsClassifier())])
    folds = StratifiedKFold(rivals.FOLDS, shuffle=True, random_state=0)
    oracle = GridSearchCV(pipeline, grid, cv=folds).fit(X[:200], y[:200])
    k = rival.pipeline[-1].n_neighbors
    assert k == oracle.best_params_["vote__n_neighbors"] > 1, "labels are noisy"
    assert rival.chosen.startswith(f"k = {k}, ")
    assert rival.pipeline[-1].weights == oracle.best_params_["vote__weights"]
    np.testing.assert_array_equal(rival.pipeline.predict(X[200:]), oracle.predict(X[200:]))


def test_logistic_regression_converges():
    X, y = make_blobs()
    rival = fit_rival("logistic regression", X[:160], y[:160])
    oracle = LogisticRegression(C=rival.pipeline[-1].C, max_iter=1000)
    oracle = Pipeline([("scaling", rival.pipeline[0]), ("last", oracle)]).fit(X[:160], y[:160])
    np.testing.assert_array_equal(rival.pipeline.predict(X[160:]), oracle.predict(X[160:]))


@pytest.mark.parametrize(
    ("name", "y"),
    [
        *((name, np.array(["a", "b"])) for name in NAMES),
        ("SVC", np.array([7, 9, 9, 9])),
        ("SVC", np.repeat([0, 1, 2], [30, 30, 1])),
    ],
)
def test_few_rows_and_constant_columns(name, y, rng):
    X = rng.standard_normal((len(y), 3)) * [1, 1, 0]
    rival = fit_rival(name, X, y, n_neighbors=1)
    assert set(rival.pipeline.predict(X).tolist()) <= set(y.tolist())
    assert rival.n_rows == len(y)
    assert fit_rival(name, 0 * X, y).pipeline.predict(X).shape == y.shape


def test_parameters_are_chosen_on_a_sample_that_has_every_class(monkeypatch):
    X, y = make_blobs()
    y[:4] = 7
    seen, sample = [], rivals.sample
    monkeypatch.setattr(
        rivals, "sample", lambda codes, n, rng: seen.append(n) or sample(codes, n, rng)
    )
    monkeypatch.setattr(rivals, "SELECTION_ROWS", 50)
    monkeypatch.setattr(rivals, "SVC_SELECTION_ROWS", 40)
    monkeypatch.setattr(rivals, "SELECTION_WORK", 18 * 6 * 4)
    for name in TUNED:
        assert fit_rival(name, X, y).n_rows == len(y), "the fit reads all"
    assert seen == [50, 20, 40]


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("logistic regression", {"LOGISTIC_WORK": 60 * 6 * 3, "ITERATION_WORK": 60 * 6 * 3 * 40}),
        ("SVC", {"SVC_WORK": 60 * 60 * 6}),
        ("SVC", {"SVC_MAX_ROWS": 60}),
    ],
)
def test_a_bounded_fit_takes_no_more_rows_than_time_allows(monkeypatch, name, limits):
    X, y = make_blobs()
    for limit, value in limits.items():
        monkeypatch.setattr(rivals, limit, value)
    bounded = fit_rival(name, X, y, bounded=True)
    assert bounded.n_rows == 60
    assert bounded.pipeline[-1].max_iter == (40 if name == "logistic regression" else -1)
    assert fit_rival(name, X, y).n_rows == fit_rival("tuned k-NN", X, y, bounded=True).n_rows == 240
