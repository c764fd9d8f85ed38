"""The comparison of methods, against scikit-learn's own cross-validation."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.model_selection import StratifiedKFold, cross_val_score

from latentmetric import MaPML
from latentmetric.comparison import METHODS, compare, sample_rows
from latentmetric.io import open_rows
from latentmetric.registry import estimator_class


@pytest.mark.parametrize("method", ["Euclid", "MaPML", "MaPML-O"])
def test_errors_agree_with_cross_validation(method):
    X, y = make_blobs()
    found = [outcome.error for outcome in compare(X, y, [method], n_folds=3, random_state=1)]
    model = estimator_class(METHODS[method])(random_state=1)
    if method == "MaPML-O":
        model = MaPML(random_state=1, reference="original")
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    np.testing.assert_allclose(found, 1 - cross_val_score(model, X, y, cv=folds))


def test_every_fit_is_announced_before_it_runs():
    X, y = make_blobs(n_rows=90)
    said = []
    outcomes = list(compare(X, y, n_folds=2, about_to=lambda *what: said.append(what)))
    assert said == [(outcome.method, outcome.fold) for outcome in outcomes]
    assert [method for method, _ in said[:6]] == list(METHODS)


def test_a_sample_of_a_file_is_the_sample_of_the_array(tmp_path, monkeypatch):
    X, y = make_blobs()
    np.save(tmp_path / "rows.npy", X)
    monkeypatch.setattr("latentmetric.core.distances.BLOCK_BYTES", 1000, raising=False)
    rows, labels = sample_rows(open_rows(tmp_path / "rows.npy"), y, 50)
    expected, expected_labels = sample_rows(X, y, 50)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(labels, expected_labels)
    assert len(np.unique(rows[:, 0])) == 50
    assert sample_rows(X, y, 1000)[0] is X
