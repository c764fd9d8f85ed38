"""HR-SGD against a plain version of itself, updates by hand, and the probability of an update."""

import numpy as np
import pytest

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.hrsgd import SHARPNESS, Settings, State
from latentmetric.core.random_triplets import RandomTriplets


def as_they_are(rows):
    return InnerRows(rows, Coordinates(np.zeros(rows.shape[1]), 1.0))


def slope(gap):
    return 1 / (1 + np.exp(SHARPNESS * (gap - 1)))


def plain_hrsgd(rows, triplets, generator, learning_rate, batch_size, unbiased=False):
    """One matrix per iteration, and a full eigendecomposition per update."""
    n_batches = len(triplets) // batch_size
    drawn, coins = generator.integers(batch_size, size=n_batches), generator.random(n_batches)
    metric = np.eye(rows.shape[1])
    total, updates, losses = np.zeros_like(metric), 0, []
    for number in range(n_batches):
        matrices = []
        for row in range(number * batch_size, (number + 1) * batch_size):
            to_impostor, to_target = (
                rows[end[row]] - rows[triplets.anchors[row]]
                for end in (triplets.impostors, triplets.targets)
            )
            matrices.append(np.outer(to_impostor, to_impostor) - np.outer(to_target, to_target))
        gaps = np.array([np.sum(matrix * metric) for matrix in matrices])
        losses.append(np.log1p(np.exp(SHARPNESS * (1 - gaps[drawn[number]]))) / SHARPNESS)
        if coins[number] < slope(gaps[drawn[number]]):
            updates += 1
            step = sum(slope(gap) * matrix for gap, matrix in zip(gaps, matrices, strict=True))
            step = step / np.mean(slope(gaps)) if unbiased else step
            values, vectors = np.linalg.eigh(metric + learning_rate / batch_size * step)
            metric = (vectors * np.maximum(values, 0)) @ vectors.T
        total += metric
    return metric, total / n_batches, updates, losses


def problem(n_triplets, n_features, seed=0):
    generator = np.random.default_rng(seed)
    codes = generator.permutation(np.arange(60) % 4)
    rows = generator.standard_normal((60, n_features)) / np.sqrt(n_features)
    rows += 0.5 * generator.standard_normal((4, n_features))[codes] / np.sqrt(n_features)
    return rows, RandomTriplets(codes).draw(n_triplets, generator)


@pytest.mark.parametrize(
    ("n_features", "batch_size", "learning_rate"),
    [(1, 10, 0.1), (3, 1, 3.0), (120, 10, 0.001), (7, 40, 0.1), (7, 40, 30.0)],
)
@pytest.mark.parametrize("unbiased", [False, True])
def test_the_same_as_the_plain_algorithm(n_features, batch_size, learning_rate, unbiased):
    rows, triplets = problem(60 * batch_size + batch_size - 1, n_features)
    metric, average, updates, losses = plain_hrsgd(
        rows, triplets, np.random.default_rng(1), learning_rate, batch_size, unbiased
    )
    state, settings = State.begin(n_features), Settings(learning_rate, batch_size, unbiased)
    found_losses, found_updates = state.run(
        as_they_are(rows), triplets, settings, np.random.default_rng(1)
    )
    assert found_updates == updates > 0
    np.testing.assert_allclose(found_losses, losses, rtol=1e-5, atol=1e-8)
    assert np.linalg.norm(state.metric.matrix - metric) <= 1e-5 * np.linalg.norm(metric)
    assert np.linalg.norm(state.average - average) <= 1e-5 * np.linalg.norm(average)
