"""Numbers that vanish are no error, whatever ``np.errstate`` says; its states do not change."""

from threading import get_ident

import numpy as np
import pytest
from sklearn.base import clone

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML, load, save
from latentmetric.core.parallel import for_each
from latentmetric.evaluation import clustering_nmi, compare, retrieval_scores

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


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
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


def test_nor_are_they_in_scores_and_comparisons():
    X, y = rows_far_apart(np.float64, 1.0)
    with np.errstate(all="raise"):
        retrieval_scores(X, y)
        assert len(list(compare(X, y, ["Euclid", "MaPML-O"], n_folds=2))) == 4


@pytest.mark.parametrize("size", [2.0**100, 2.0**-100])
def test_clusters_do_not_depend_on_the_size_of_the_rows(size):
    X, y = rows_far_apart(np.float32, 1.0)
    expected = clustering_nmi(X, y, random_state=0)
    with np.errstate(all="raise"):
        assert clustering_nmi(X * np.float32(size), y, random_state=0) == expected


def test_threads_treat_errors_of_floats_as_their_caller():
    seen = {}

    def look(item):
        seen.setdefault(get_ident(), np.geterr())

    with np.errstate(over="raise", invalid="ignore"):
        for_each(look, range(1_000), 4)
        assert all(states == np.geterr() for states in seen.values())
