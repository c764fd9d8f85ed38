import numpy as np
import pytest

from latentmetric.viz.outliers import usual, view_of


@pytest.mark.parametrize("n_points", [30, 400])
def test_an_outlier_does_not_squeeze_the_view(rng, n_points):
    points = rng.standard_normal((n_points, 2))
    low, high = view_of(points)
    np.testing.assert_array_equal((low, high), (points.min(axis=0), points.max(axis=0)))
    points[7] = (1e6, -1e9)
    low, high = view_of(points)
    assert np.all(high - low < 12)


def test_points_far_from_all_others_are_found(rng):
    points = rng.standard_normal((100, 5))
    assert usual(points).all()
    points[3] = 1e150
    assert np.flatnonzero(~usual(points)).tolist() == [3]
    assert usual(np.ones((4, 2))).all()
