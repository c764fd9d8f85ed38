"""The comparison of methods, against scikit-learn's own cross-validation."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric import Euclidean, MaPML
from latentmetric.comparison import METHODS, compare

pytestmark = pytest.mark.usefixtures("short_passes")

PLAIN = {
    "Euclid": Euclidean(),
    "Euclid-scaled": make_pipeline(StandardScaler(), Euclidean()),
    "random-forest": RandomForestClassifier(random_state=1),
    "MaPML": MaPML(random_state=1),
    "MaPML-O": MaPML(random_state=1, reference="original"),
}


@pytest.fixture(autouse=True)
def _once(monkeypatch):
    """Nothing is repeated: the seconds do not matter here."""
    monkeypatch.setattr("latentmetric.comparison.timing.ENOUGH_SECONDS", 0)


@pytest.mark.parametrize("method", PLAIN)
def test_errors_agree_with_cross_validation(method):
    X, y = make_blobs()
    found = [outcome.error for outcome in compare(X, y, [method], n_folds=3, random_state=1)]
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    np.testing.assert_allclose(found, 1 - cross_val_score(PLAIN[method], X, y, cv=folds))


def test_every_fit_is_announced_before_it_runs():
    X, y = make_blobs(n_rows=90)
    said = []
    outcomes = list(compare(X, y, n_folds=2, about_to=lambda *what: said.append(what)))
    assert said == [(outcome.method, outcome.fold) for outcome in outcomes]
    assert [method for method, _ in said[: len(METHODS)]] == list(METHODS)


def test_references_are_what_queries_are_compared_with():
    X, y = make_blobs(n_rows=120)
    found = {outcome.method: outcome.references for outcome in compare(X, y, n_folds=2)}
    assert found["Euclid"] == found["tuned-k-NN"] == found["MaPML-O"] == found["LMNN"] == 60
    assert found["MaPML"] == 6
    assert found["logistic-regression"] == found["random-forest"] == 0
    assert 0 < found["SVC"] <= 60
