"""The shares of latent examples in a row, also of a row that is far from those of its label."""

import numpy as np
import pytest

from latentmetric.core.nearby import responsibilities
from latentmetric.core.refinement import Batch, gradient


def test_shares_are_those_of_the_kernel_vote():
    squared = np.array([[1.0, 2.0, 4.0]])
    same = np.array([[False, True, True]])
    p, q, likelihood = responsibilities(squared, same, 2.0)
    weights = np.exp(-squared / 2)
    np.testing.assert_allclose(p, weights / weights.sum())
    np.testing.assert_allclose(q, weights * same / weights[same].sum())
    np.testing.assert_allclose(likelihood, weights[same].sum() / weights.sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_far_from_its_label_has_a_finite_gradient(dtype):
    rows, points = np.zeros((1, 2), dtype), np.array([[0, 0], [1e3, 0]], dtype)
    near, same = np.array([[0, 1]]), np.array([[False, True]])
    stretch = np.ones((1, 2), dtype)
    _, q, likelihood = responsibilities(np.array([[0, 1e6]], dtype), same, 1.0)
    np.testing.assert_array_equal(q, [[0, 1]])
    assert likelihood == 0
    found = gradient(rows, Batch(np.eye(2, dtype=dtype), points, near, same, stretch, 1.0, 0.0))
    assert np.all(np.isfinite(found.points))
    assert found.points[1, 0] > 0
