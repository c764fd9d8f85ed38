"""Predictions and fits give the same results in any number of threads and processes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from forking import forked, needs_forks
from helpers import make_blobs
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML

MODELS = [
    MaPML(8, n_steps=200, max_iter=2, random_state=0),
    MaPML(8, n_steps=200, max_iter=2, random_state=0, reference="original", weights="kernel"),
    LMNN(max_iter=5),
    OASIS(psd=False, n_steps=500, random_state=0),
    HRSGD(n_steps=500, random_state=0),
    Euclidean(),
]


@pytest.fixture(autouse=True)
def _short_passes():
    """Not here: other processes would not know of it."""


def answers(model, X):
    distances, indices = model.kneighbors(X)
    return model.predict(X), model.predict_proba(X), distances, indices


def assert_same_answers(one, other):
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


def fitted_answers(model, X, y):
    return answers(clone(model).fit(X, y), X)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("model", MODELS[:4], ids=lambda model: type(model).__name__)
def test_sixteen_threads_get_the_answers_of_one(model):
    X, y = make_blobs(600)
    model = clone(model).fit(X, y)
    expected, before = answers(model, X), blas_threads()
    with ThreadPoolExecutor(16) as pool:
        for found in pool.map(lambda _: answers(model, X), range(32)):
            assert_same_answers(found, expected)
    assert blas_threads() == before


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fits_under_joblib_are_those_of_one_process(backend):
    X, y = make_blobs()
    before = blas_threads()
    parallel = Parallel(n_jobs=2, backend=backend)
    found = parallel(delayed(fitted_answers)(model, X, y) for model in MODELS)
    for model, one in zip(MODELS, found, strict=True):
        assert_same_answers(one, fitted_answers(model, X, y))
    assert blas_threads() == before


@pytest.mark.slow
@needs_forks
@pytest.mark.parametrize("n_threads", [1, 2])
def test_children_forked_while_threads_predict_give_the_same_answers(n_threads):
    X, y = make_blobs(600)
    model = Euclidean(n_jobs=n_threads).fit(X, y)
    expected, done = model.predict(X), threading.Event()

    def predict():
        while not done.is_set():
            model.predict(X)

    def same_answers():
        return np.array_equal(model.predict(X), expected)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    with threadpool_limits(n_threads, user_api="blas"):
        for thread in threads:
            thread.start()
        try:
            assert all(forked(same_answers) for _ in range(8))
        finally:
            done.set()
            for thread in threads:
                thread.join()
