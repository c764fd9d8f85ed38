"""Samples of rows, in memory and in files."""

import numpy as np
from helpers import make_blobs
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.evaluation.sampling import sample, sample_rows
from latentmetric.io import open_rows

CODES = st.lists(st.integers(0, 6), min_size=1, max_size=80).map(np.array)


@given(CODES, st.integers(1, 60), st.integers(0, 9))
def test_a_sample_is_stratified(codes, n_rows, seed):
    chosen = sample(codes, n_rows, np.random.default_rng(seed))
    assert len(np.unique(chosen)) == len(chosen) == min(n_rows, len(codes))
    classes, sizes = np.unique(codes, return_counts=True)
    got = np.array([(codes[chosen] == label).sum() for label in classes])
    expected = sizes * len(chosen) / len(codes)
    if len(chosen) >= len(classes):
        assert got.min() >= 1
    assert np.all(np.abs(got - expected) <= 1 + len(classes))


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
