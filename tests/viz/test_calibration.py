import numpy as np
import pytest

from latentmetric.viz.calibration import calibration


def test_bins_compare_what_was_promised_with_what_was_kept():
    confidence = np.array([0.95, 0.97, 0.55, 0.55, 1.0])
    right = np.array([True, False, True, False, True])
    found = calibration(confidence, right)
    assert found.counts.tolist() == [2, 3]
    np.testing.assert_allclose(found.promised, [0.55, (0.95 + 0.97 + 1) / 3])
    np.testing.assert_allclose(found.kept, [0.5, 2 / 3])
    assert found.error == pytest.approx((2 * 0.05 + 3 * (2.92 / 3 - 2 / 3)) / 5)
    assert found.surplus == pytest.approx(confidence.mean() - right.mean())


def test_probabilities_that_keep_their_word_have_a_small_error(rng):
    confidence = rng.uniform(0.5, 1, 20_000)
    right = rng.random(20_000) < confidence
    assert calibration(confidence, right).error < 0.02
    assert calibration(np.minimum(confidence + 0.1, 1), right).surplus > 0.05
