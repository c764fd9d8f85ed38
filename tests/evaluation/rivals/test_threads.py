"""Small fits leave BLAS one thread, larger ones all of them."""

import numpy as np
import pytest

from latentmetric.evaluation.rivals import fitting


@pytest.mark.parametrize(("small_work", "n_threads"), [(10**7, 1), (0, None)])
def test_only_small_fits_are_limited_to_one_thread(monkeypatch, small_work, n_threads):
    limits = []
    original = fitting.blas_threads
    monkeypatch.setattr(fitting, "SMALL_WORK", small_work)
    monkeypatch.setattr(
        fitting, "blas_threads", lambda limit: limits.append(limit) or original(limit)
    )
    X = np.random.default_rng(0).normal(size=(60, 2))
    fitting.fit_rival("logistic-regression", X, (X[:, 0] > 0).astype(int))
    assert limits == [n_threads]
