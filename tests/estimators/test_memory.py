"""No array of rows by rows, rows by latents or latents by latents is ever held."""

import tracemalloc

import numpy as np
import pytest

from latentmetric import MaPML

N_ROWS, N_CLASSES, RATIO = 30_000, 2, 0.1
SMALLEST_FORBIDDEN = (int(N_ROWS * RATIO)) ** 2 * 4
"""Bytes of a latents-by-latents array in float32; the other two are far larger."""


@pytest.mark.parametrize("reference", ["latent", "original"])
def test_peak_memory_stays_below_the_smallest_forbidden_array(reference):
    generator = np.random.default_rng(0)
    y = np.arange(N_ROWS) % N_CLASSES
    X = (generator.standard_normal((N_ROWS, 3)) + y[:, None]).astype(np.float32)
    model = MaPML(
        RATIO, reference=reference, max_iter=1, n_steps=100, weights="kernel", n_jobs=1,
        random_state=0,
    )  # fmt: skip
    model.fit(X[:100], y[:100])
    tracemalloc.start()
    try:
        model.fit(X, y)
        model.predict(X[:2000])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(model.latent_examples_) == N_ROWS * RATIO
    assert peak < 0.9 * SMALLEST_FORBIDDEN


def test_where_all_references_vote_memory_does_not_grow_with_the_queries(monkeypatch):
    monkeypatch.setattr("latentmetric.estimators.answering.VOTING_BYTES", 2**20)
    generator = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = generator.standard_normal((600, 4)) + y[:, None]
    model = MaPML(0.5, bandwidth="latent", n_jobs=1, random_state=0).fit(X, y)
    queries = generator.standard_normal((6_000, 4))
    tracemalloc.start()
    try:
        shares, labels = model.predict_proba(queries), model.predict(queries)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(queries) * len(model.latent_examples_) * 8, "less than distances alone take"
    np.testing.assert_array_equal(labels, shares.argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(queries[-50:]), shares[-50:])
