import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from latentmetric.viz.summaries import (
    ConfusedPair,
    class_errors,
    confused_pairs,
    curve,
    last_before_refinement,
    leading_directions,
    order_by_confusion,
    spectrum,
    usual,
    widest_plane,
)


def test_the_spectrum_has_the_eigenvalues_of_the_metric(rng):
    components = rng.standard_normal((3, 5))
    found = spectrum(components)
    expected = np.sort(np.linalg.eigvalsh(components.T @ components))[::-1]
    np.testing.assert_allclose(found.values, np.where(expected > 1e-9, expected, 0), atol=1e-9)
    assert found.rank == 3


def test_the_identity_has_full_effective_rank():
    found = spectrum(np.eye(8, dtype=np.float32))
    assert found.rank == 8
    assert found.effective_rank == pytest.approx(8)
    assert [found.directions_for(share) for share in (0.5, 1.0)] == [4, 8]


def test_errors_and_pairs_agree_with_the_confusion_matrix(rng):
    true, predicted = rng.integers(0, 5, (2, 400))
    matrix = confusion_matrix(true, predicted, labels=range(6))
    errors = class_errors(true, predicted, 6)
    np.testing.assert_array_equal(errors.rows, matrix.sum(axis=1))
    np.testing.assert_array_equal(errors.wrong, matrix.sum(axis=1) - np.diag(matrix))
    assert np.isnan(errors.shares[5])
    pairs = confused_pairs(true, predicted)
    assert all(matrix[pair.true, pair.predicted] == pair.count for pair in pairs)
    assert sum(pair.count for pair in pairs) == errors.wrong.sum()
    counts = [pair.count for pair in pairs]
    assert counts == sorted(counts, reverse=True)
    assert confused_pairs(true, true) == []
    assert errors.hardest[0] == np.nanargmax(errors.shares)


def test_a_curve_leaves_out_rounds_that_did_not_measure_it():
    history = [
        {"round": 0, "objective": 3.0},
        {"round": 1},
        {"round": 2, "objective": float("nan")},
        {"round": 3, "objective": 1.0},
    ]
    found = curve(history, "objective")
    assert (found.rounds, found.values, found.unit) == ([0, 3], [3.0, 1.0], "round")
    assert last_before_refinement(history) is None
    assert last_before_refinement([*history, {"round": 4, "refinement": 1}]) == 3
    history = [{"round": n, "iterations": 10 * n, "objective": 1.0} for n in range(2)]
    found = curve(history, "objective")
    assert (found.rounds, found.unit) == ([0, 10], "iteration")


def test_classes_that_are_never_confused_keep_their_order():
    assert order_by_confusion([], 5) == [0, 1, 2, 3, 4]
    assert order_by_confusion([ConfusedPair(4, 1, 3)], 5) == [0, 1, 4, 2, 3]


def test_groups_become_blocks(rng):
    shuffled = rng.permutation(12)
    groups = [shuffled[:4], shuffled[4:8], shuffled[8:]]
    pairs = [
        ConfusedPair(int(true), int(predicted), int(rng.integers(5, 20)))
        for group in groups
        for true in group
        for predicted in group
        if true != predicted
    ]
    pairs.append(ConfusedPair(int(groups[0][0]), int(groups[1][0]), 1))
    position = np.argsort(order_by_confusion(pairs, 12))
    for group in groups:
        assert np.ptp(position[group]) == 3


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


def test_a_projection_never_lengthens_a_distance(rng):
    points = rng.standard_normal((60, 7)) * np.arange(1, 8)
    plane = widest_plane(points, np.arange(60) % 4)
    flat = plane.project(points)
    whole = np.linalg.norm(points[:, None] - points, axis=2)
    shown = np.linalg.norm(flat[:, None] - flat, axis=2)
    assert np.all(shown <= whole + 1e-9)
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-12)


def test_two_classes_take_the_second_axis_from_their_points(rng):
    points = rng.standard_normal((50, 3)) * [0.1, 5, 0.1]
    codes = np.arange(50) % 2
    points[:, 0] += 30 * codes
    plane = widest_plane(points, codes)
    assert abs(plane.axes[0, 0]) > 0.98
    assert abs(plane.axes[1, 1]) > 0.98


def test_points_that_do_not_vary_are_projected_to_the_origin():
    for points in (np.ones((1, 3)), np.ones((4, 1))):
        flat = widest_plane(points, np.zeros(len(points), dtype=int)).project(points)
        np.testing.assert_array_equal(flat, np.zeros((len(points), 2)))


def test_points_far_from_all_others_are_found(rng):
    points = rng.standard_normal((100, 5))
    assert usual(points).all()
    points[3] = 1e150
    assert np.flatnonzero(~usual(points)).tolist() == [3]
    assert usual(np.ones((4, 2))).all()
