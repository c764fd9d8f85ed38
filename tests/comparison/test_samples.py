"""Samples of rows, in memory and in files."""

import numpy as np
from helpers import make_blobs

from latentmetric.comparison import sample_rows
from latentmetric.io import open_rows


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
