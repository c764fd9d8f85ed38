import numpy as np
import pytest

from latentmetric.viz.weights import feature_effects, leading_directions


def test_an_effect_is_the_distance_of_a_step_of_one_deviation(rng):
    components, deviations = rng.standard_normal((3, 5)), rng.uniform(0.1, 2, 5)
    for feature, effect in enumerate(feature_effects(components, deviations)):
        step = np.zeros(5)
        step[feature] = deviations[feature]
        assert effect == pytest.approx(np.linalg.norm(components @ step))


def test_directions_are_those_of_the_metric_in_deviations(rng):
    components, deviations = rng.standard_normal((4, 6)), rng.uniform(0.1, 2, 6)
    scaled = components * deviations
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    found = leading_directions(components, deviations, 2)
    for place, direction in enumerate(found):
        assert direction.share == pytest.approx(values[-1 - place] / values.sum())
        assert abs(direction.loadings @ vectors[:, -1 - place]) == pytest.approx(1)
        assert direction.loadings[np.abs(direction.loadings).argmax()] > 0


def test_a_metric_of_zeros_has_no_directions():
    assert leading_directions(np.zeros((2, 3)), np.ones(3), 2) == []
