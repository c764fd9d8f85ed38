import numpy as np
import pytest

from latentmetric.viz.projection import usual, view_of, widest_plane


def test_a_projection_never_lengthens_a_distance(rng):
    points = rng.standard_normal((60, 7)) * np.arange(1, 8)
    plane = widest_plane(points, np.arange(60) % 4)
    flat = plane.project(points)
    whole = np.linalg.norm(points[:, None] - points, axis=2)
    shown = np.linalg.norm(flat[:, None] - flat, axis=2)
    assert np.all(shown <= whole + 1e-9)
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-12)


def test_the_plane_contains_the_means_of_three_classes(rng):
    codes = np.arange(300) % 3
    means = np.array([[0, 0, 0, 9.0], [0, 9.0, 0, 0], [0, 0, 0, 0]])
    noise = rng.standard_normal((300, 4)) * [20, 0.1, 0.1, 0.1]
    for code in range(3):  # so that the noise does not move the means
        noise[codes == code] -= noise[codes == code].mean(axis=0)
    plane = widest_plane(means[codes] + noise, codes)
    flat = plane.project(means)
    np.testing.assert_allclose(
        np.linalg.norm(flat[:, None] - flat, axis=2),
        np.linalg.norm(means[:, None] - means, axis=2),
    )


def test_two_classes_take_the_second_axis_from_their_points(rng):
    points = rng.standard_normal((50, 3)) * [0.1, 5, 0.1]
    codes = np.arange(50) % 2
    points[:, 0] += 30 * codes
    plane = widest_plane(points, codes)
    assert abs(plane.axes[0, 0]) > 0.98
    assert abs(plane.axes[1, 1]) > 0.98


@pytest.mark.parametrize(("n_points", "n_features"), [(1, 3), (4, 1), (5, 2)])
def test_points_that_do_not_vary_are_projected_to_the_origin(n_points, n_features):
    points = np.ones((n_points, n_features))
    flat = widest_plane(points, np.zeros(n_points, dtype=int)).project(points)
    np.testing.assert_array_equal(flat, np.zeros((n_points, 2)))


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
