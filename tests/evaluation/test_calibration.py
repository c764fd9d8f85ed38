"""The calibration error, against counts by hand and a plain loop."""

import numpy as np
import pytest

from latentmetric.evaluation import calibration_error
from latentmetric.evaluation.calibration import BINS, calibration


def plainly(labels, probabilities, classes):
    total, confidence = 0.0, probabilities.max(axis=1)
    right = classes[probabilities.argmax(axis=1)] == labels
    for low in range(BINS):
        inside = np.minimum(confidence * BINS, BINS - 0.5) // 1 == low
        if inside.any():
            total += inside.sum() * abs(confidence[inside].mean() - right[inside].mean())
    return total / len(labels)


def test_it_agrees_with_a_plain_loop(rng):
    classes = np.array(["a", "b", "c", "d"])
    probabilities = rng.dirichlet(np.full(4, 0.3), 500)
    labels = rng.choice(classes, 500)
    found = calibration_error(labels, probabilities, classes)
    assert found == pytest.approx(plainly(labels, probabilities, classes))


def test_certain_and_right_or_wrong():
    certain = [[1.0, 0.0]] * 4
    assert calibration_error([5, 5, 5, 5], certain, [5, 6]) == 0
    assert calibration_error([6, 6, 6, 7], certain, [5, 6]) == 1


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="2 columns, but there are 3 classes"):
        calibration_error([0, 1], [[1.0, 0.0], [0.0, 1.0]], [0, 1, 2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        calibration_error([0, 1, 1], [[1.0, 0.0], [0.0, 1.0]], [0, 1])


def test_bins_compare_confidence_with_accuracy():
    confidence = np.array([0.95, 0.97, 0.55, 0.55, 1.0])
    right = np.array([True, False, True, False, True])
    found = calibration(confidence, right)
    assert found.counts.tolist() == [2, 3]
    np.testing.assert_allclose(found.confidence, [0.55, (0.95 + 0.97 + 1) / 3])
    np.testing.assert_allclose(found.accuracy, [0.5, 2 / 3])
    assert found.error == pytest.approx((2 * 0.05 + 3 * (2.92 / 3 - 2 / 3)) / 5)
    assert found.surplus == pytest.approx(confidence.mean() - right.mean())
