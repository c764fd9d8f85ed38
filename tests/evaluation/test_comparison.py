"""The comparison of methods, against scikit-learn's own cross-validation."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric import Euclidean, MaPML
from latentmetric.evaluation import METHODS, compare
from latentmetric.evaluation.comparison import MAX_CALLS, timed
from latentmetric.evaluation.unequal import balanced_scores

pytestmark = pytest.mark.usefixtures("short_passes")

PLAIN = {
    "majority class": DummyClassifier(),
    "Euclid": Euclidean(),
    "Euclid-scaled": make_pipeline(StandardScaler(), Euclidean()),
    "random forest": RandomForestClassifier(random_state=1),
    "MaPML": MaPML(random_state=1),
    "MaPML-O": MaPML(random_state=1, reference="original"),
}


@pytest.fixture(autouse=True)
def _once(monkeypatch):
    """Nothing is repeated: the seconds do not matter here."""
    monkeypatch.setattr("latentmetric.evaluation.comparison.MIN_SECONDS", 0)


@pytest.mark.parametrize("method", PLAIN)
def test_errors_agree_with_cross_validation(method):
    X, y = make_blobs()
    found = [outcome.error for outcome in compare(X, y, [method], n_folds=3, random_state=1)]
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    np.testing.assert_allclose(found, 1 - cross_val_score(PLAIN[method], X, y, cv=folds))


@pytest.fixture(scope="module")
def all_methods():
    """Outcomes of every method on two folds, and what was announced."""
    X, y = make_blobs(n_rows=90)
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("latentmetric.core.refinement.FEWEST_STEPS", 30)
        patch.setattr("latentmetric.evaluation.comparison.MIN_SECONDS", 0)
        return list(compare(X, y, n_folds=2, on_start=lambda *what: said.append(what))), said


def test_every_fit_is_announced_before_it_runs(all_methods):
    outcomes, said = all_methods
    assert said == [(outcome.method, outcome.fold) for outcome in outcomes]
    assert [method for method, _ in said[: len(METHODS)]] == list(METHODS)


def test_references_are_what_queries_are_compared_with(all_methods):
    found = {outcome.method: outcome.references for outcome in all_methods[0]}
    rows = {found[name] for name in ("Euclid", "Euclid-scaled", "tuned k-NN", "MaPML-O", "LMNN")}
    assert rows == {45}
    assert found["MaPML"] in (3, 9)  # one or three for each class
    no_references = ("majority class", "logistic regression", "random forest")
    assert {found[name] for name in no_references} == {0}
    assert 0 < found["SVC"] <= 45


def test_scores_of_unequal_classes_give_scikit_learns_auc(rng):
    X = rng.standard_normal((120, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(120) > 1.1, "yes", "no")
    methods = ["SVC", "Euclid-scaled", "MaPML-O", "HistGradientBoosting"]
    found = list(compare(X, y, methods, n_folds=2))
    for outcome in found:
        assert "auc" in balanced_scores(outcome.true, outcome.right, outcome.scores)
    own = [
        roc_auc_score(one.true == "yes", one.scores)
        for one in found
        if one.method == "Euclid-scaled"
    ]
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    plain = cross_val_score(PLAIN["Euclid-scaled"], X, y, cv=folds, scoring="roc_auc")
    np.testing.assert_allclose(own, plain)
    assert all(one.scores is None for one in compare(X, X[:, 0] > 0, ["Euclid"], n_folds=2))


def test_steps_are_fitted_to_the_training_rows_of_each_fold():
    X, y = make_blobs()
    X[::7, 0] = np.nan
    steps = make_pipeline(SimpleImputer(), StandardScaler())
    found = [outcome.error for outcome in compare(X, y, ["Euclid"], n_folds=3, steps=steps)]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    plain = make_pipeline(SimpleImputer(), StandardScaler(), Euclidean())
    np.testing.assert_allclose(found, 1 - cross_val_score(plain, X, y, cv=folds))
    assert not hasattr(steps[0], "statistics_")


class Clock:
    """A clock that a call moves on by the next of some durations; the last one repeats."""

    def __init__(self, *durations):
        self.now, self.durations, self.calls = 0.0, durations, 0

    def __call__(self):
        return self.now

    def work(self):
        self.now += self.durations[min(self.calls, len(self.durations) - 1)]
        self.calls += 1
        return self.calls


@pytest.mark.parametrize(
    ("durations", "calls", "seconds"),
    [
        ((1.0,), 1, 1.0),  # long enough
        ((0.05,), 4, 0.05),  # repeated until 0.2 s have passed
        ((0.1, 0.01), 11, 0.01),  # a slow first call does not count
        ((0.0,), MAX_CALLS, 0.0),  # faster than the clock
    ],
)
def test_quick_calls_are_repeated(monkeypatch, durations, calls, seconds):
    monkeypatch.setattr("latentmetric.evaluation.comparison.MIN_SECONDS", 0.2)
    clock = Clock(*durations)
    result, measured = timed(clock.work, clock)
    assert (result, clock.calls) == (calls, calls)
    assert measured == pytest.approx(seconds)
