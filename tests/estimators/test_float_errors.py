"""Numbers that vanish are no error, whatever ``np.errstate`` says; its states do not change."""

import numpy as np
import pytest
from sklearn.base import clone

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML, load, save

MODELS = [
    MaPML(n_steps=100, max_iter=2, random_state=0),
    MaPML(n_steps=100, reference="original", early_stopping=True, random_state=0),
    LMNN(max_iter=10, weights="kernel"),
    OASIS(n_steps=200, psd=True, weights="kernel", random_state=0),
    HRSGD(n_steps=300, weights="kernel", random_state=0),
    Euclidean(weights="kernel"),
]


def rows_far_apart(dtype, size):
    X, y = np.random.default_rng(0).standard_normal((150, 6)), np.arange(150) % 3
    X[:, 0] += 40 * y
    X[:, 3] *= 1e-4
    X[:30] *= 1e3
    return (size * X).astype(dtype), y


@pytest.mark.parametrize(("size", "n_jobs"), [(1e-30, 2), (1e30, 1)])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_numbers_that_vanish_are_no_error(model, size, n_jobs, tmp_path):
    X, y = rows_far_apart(np.float32, size)
    model = clone(model).set_params(n_jobs=n_jobs)
    expected = clone(model).fit(X, y).predict_proba(X)
    with np.errstate(all="raise"):
        states = np.geterr()
        found = model.fit(X, y).predict_proba(X)
        for name in ("predict", "score_samples", "kneighbors", "transform"):
            getattr(model, name)(X)
        model.get_mahalanobis_matrix()
        save(model, tmp_path / "m")
        load(tmp_path / "m").set_references(X[:60], y[:60]).predict(X)
        assert np.geterr() == states
    np.testing.assert_array_equal(found, expected)
