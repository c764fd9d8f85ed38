import numpy as np
import pytest

from latentmetric.viz.summaries import (
    leading_directions,
    order_by_confusion,
    widest_plane,
)


def test_confused_classes_become_blocks_and_others_keep_their_order(rng):
    groups = rng.permutation(12).reshape(3, 4)
    counts = rng.integers(0, 2, (12, 12))
    for group in groups:
        counts[np.ix_(group, group)] = rng.integers(5, 20, (4, 4))
    position = np.argsort(order_by_confusion(counts))
    assert all(np.ptp(position[group]) == 3 for group in groups)
    assert order_by_confusion(np.diag([5, 6, 7, 8])).tolist() == [0, 1, 2, 3]


def test_directions_are_those_of_the_metric_in_deviations(rng):
    components, deviations = rng.standard_normal((4, 6)), rng.uniform(0.1, 2, 6)
    scaled = components * deviations
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    found = leading_directions(components, deviations, 2)
    for index, (share, loadings) in enumerate(found):
        assert share == pytest.approx(values[-1 - index] / values.sum())
        assert abs(loadings @ vectors[:, -1 - index]) == pytest.approx(1)
        assert loadings[np.abs(loadings).argmax()] > 0
    assert leading_directions(np.zeros((2, 3)), np.ones(3), 2) == []


def test_two_classes_take_the_second_axis_from_their_points(rng):
    points = rng.standard_normal((50, 3)) * [0.1, 5, 0.1]
    codes = np.arange(50) % 2
    points[:, 0] += 30 * codes
    plane = widest_plane(points, codes)
    assert abs(plane.axes[0, 0]) > 0.98
    assert abs(plane.axes[1, 1]) > 0.98
