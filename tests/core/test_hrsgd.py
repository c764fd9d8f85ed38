"""HR-SGD against a plain version of itself, updates by hand, and the probability of an update."""

import tracemalloc

import numpy as np
import pytest

from latentmetric import HRSGD
from latentmetric.core import distances, psd
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.hrsgd import SHARPNESS, Descent, Settings
from latentmetric.core.psd import PSDMatrix
from latentmetric.core.triplets import RandomTriplets, Triplets


def as_they_are(rows):
    return InnerRows(rows, Coordinates(np.zeros(rows.shape[1]), 1.0))


def the_triplet(times=1):
    """The triplet (0, 1, 2), repeated."""
    return Triplets(*(np.full(times, i) for i in range(3)), np.ones(times))


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


@pytest.mark.parametrize("n_features", [1, 3, 120])
@pytest.mark.parametrize("batch_size", [1, 10])
@pytest.mark.parametrize("learning_rate", [0.001, 0.1, 3.0])
@pytest.mark.parametrize("unbiased", [False, True])
def test_the_same_as_the_plain_algorithm(n_features, batch_size, learning_rate, unbiased):
    rows, triplets = problem(60 * batch_size + batch_size - 1, n_features)
    metric, average, updates, losses = plain_hrsgd(
        rows, triplets, np.random.default_rng(1), learning_rate, batch_size, unbiased
    )
    descent = Descent(PSDMatrix.identity(n_features), Settings(learning_rate, batch_size, unbiased))
    found_losses, found_updates = descent.run(as_they_are(rows), triplets, np.random.default_rng(1))
    assert found_updates == updates > 0
    np.testing.assert_allclose(found_losses, losses, rtol=1e-5, atol=1e-8)
    assert np.linalg.norm(descent.metric - metric) <= 1e-5 * np.linalg.norm(metric)
    assert np.linalg.norm(descent.average() - average) <= 1e-5 * np.linalg.norm(average)


@pytest.mark.parametrize("learning_rate", [0.1, 30.0])
@pytest.mark.parametrize("unbiased", [False, True])
def test_large_batches_are_computed_in_pieces(monkeypatch, learning_rate, unbiased):
    monkeypatch.setattr(distances, "BLOCK_BYTES", 1_000)
    rows, triplets = problem(300 * 20, 7)
    metric, average, updates, _ = plain_hrsgd(
        rows, triplets, np.random.default_rng(1), learning_rate, 300, unbiased
    )
    descent = Descent(PSDMatrix.identity(7), Settings(learning_rate, 300, unbiased))
    assert descent.run(as_they_are(rows), triplets, np.random.default_rng(1))[1] == updates > 0
    np.testing.assert_allclose(descent.metric, metric, atol=1e-8 * np.linalg.norm(metric))
    np.testing.assert_allclose(descent.average(), average, atol=1e-8 * np.linalg.norm(average))


def test_a_large_batch_takes_little_memory():
    X, y = np.random.default_rng(0).standard_normal((100, 20)), np.arange(100) % 2
    tracemalloc.start()
    try:
        HRSGD(batch_size=20_000, n_steps=40_000, random_state=0).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20


def test_a_batch_that_does_not_fit_into_memory_is_refused():
    X, y = np.random.default_rng(0).standard_normal((100, 20)), np.arange(100) % 2
    with pytest.raises(ValueError, match="at most 1000000, got 10000000"):
        HRSGD(batch_size=10**7, n_steps=10**9).fit(X, y)


def test_runs_add_up():
    rows, triplets = problem(600, 5)
    whole, parts = (Descent(PSDMatrix.identity(5), Settings(0.1, 10)) for _ in range(2))
    # Every triplet of these batches causes an update, whatever the coin shows.
    far = as_they_are(100 * rows[:, :1] * np.ones(5))
    violated = Triplets(triplets.anchors, triplets.impostors, triplets.anchors, triplets.margins)
    whole.run(far, violated, np.random.default_rng(0))
    parts.run(far, violated[:200], np.random.default_rng(0))
    parts.run(far, violated[200:], np.random.default_rng(0))
    np.testing.assert_allclose(whole.metric, parts.metric, atol=1e-12)
    np.testing.assert_allclose(whole.average(), parts.average(), atol=1e-12)


@pytest.mark.parametrize(
    ("learning_rate", "expected"),
    [
        # o = 0, p = (2, 0), q = (0, 1): the gap is 1 − 4 = −3, where the slope is nearly 1.
        pytest.param(0.1, [1 - 0.4 * slope(-3), 1 + 0.1 * slope(-3)], id="inside the cone"),
        pytest.param(1.0, [0, 1 + slope(-3)], id="projected to the cone"),
    ],
)
def test_an_update_by_hand(learning_rate, expected):
    rows = as_they_are(np.array([[0.0, 0], [2, 0], [0, 1]]))
    descent = Descent(PSDMatrix.identity(2), Settings(learning_rate, 1))
    losses, updates = descent.run(rows, the_triplet(), np.random.default_rng(0))
    assert updates == 1
    assert losses[0] == pytest.approx(4, abs=1e-5)
    np.testing.assert_allclose(descent.metric, np.diag(expected), atol=1e-12)
    np.testing.assert_allclose(descent.average(), descent.metric, atol=1e-12)


def test_batches_that_keep_their_margins_are_skipped():
    rows = as_they_are(np.array([[0.0, 0], [1, 0], [0, 30]]))
    descent = Descent(PSDMatrix.identity(2), Settings(1.0, 10))
    losses, updates = descent.run(rows, the_triplet(500), np.random.default_rng(0))
    assert updates == 0
    assert np.all(losses < 1e-12)
    np.testing.assert_array_equal(descent.metric, np.eye(2))
    np.testing.assert_array_equal(descent.average(), np.eye(2))


@pytest.mark.parametrize("gap", [0.5, 1.0, 1.7])
def test_the_odds_of_an_update_are_the_slope_of_the_loss(gap):
    # A step too short to change anything, so that every coin has the same probability.
    rows = as_they_are(np.array([[0.0, 0], [1, 0], [0, np.sqrt(1 + gap)]]))
    _, updates = Descent(PSDMatrix.identity(2), Settings(1e-13, 1)).run(
        rows, the_triplet(4000), np.random.default_rng(0)
    )
    odds = slope(gap)
    assert abs(updates - 4000 * odds) < 4 * np.sqrt(4000 * odds * (1 - odds))


def test_the_metric_is_psd_after_every_update(monkeypatch):
    rows, triplets = problem(2000, 120)
    rows[:, :4] *= 4
    lowest, update = [], psd.PSDMatrix.update

    def checked(self, added, removed):
        before = self.matrix + added.T @ added - removed.T @ removed
        update(self, added, removed)
        lowest.append([np.linalg.eigvalsh(m)[0] for m in (before, self.matrix)])

    monkeypatch.setattr(psd.PSDMatrix, "update", checked)
    descent = Descent(PSDMatrix.identity(120), Settings(1.0, 10))
    descent.run(as_they_are(rows.astype(np.float32)), triplets, np.random.default_rng(0))
    before, after = np.array(lowest).T
    assert np.count_nonzero(before < -1e-3) > 20
    assert np.all(after > -1e-8)
    assert np.linalg.eigvalsh(descent.average())[0] > 0


def test_huge_steps_stay_finite():
    rows, triplets = problem(500, 20)
    descent = Descent(PSDMatrix.identity(20), Settings(1e9, 10))
    losses, _ = descent.run(as_they_are(1e3 * rows), triplets, np.random.default_rng(0))
    assert np.all(np.isfinite(losses))
    assert np.all(np.isfinite(descent.metric))


def mean_gradient(rows, triplets):
    """Minus the exact gradient of the mean loss of some triplets, at the identity."""
    to_impostors, to_targets = (
        rows[ends] - rows[triplets.anchors] for ends in (triplets.impostors, triplets.targets)
    )
    slopes = slope((to_impostors**2).sum(axis=1) - (to_targets**2).sum(axis=1))
    step = to_impostors.T * slopes @ to_impostors - to_targets.T * slopes @ to_targets
    return step / len(triplets), slopes.mean()


@pytest.mark.parametrize("unbiased", [False, True])
def test_what_an_iteration_does_on_average(unbiased):
    rows, batch = problem(10, 5, seed=3)
    rows *= 1.5
    gradient, odds = mean_gradient(rows, batch)
    # Steps so short that the projection changes nothing.
    rate, n_repeats = 1e-3, 4000
    moves = np.zeros((n_repeats, 5, 5))
    for number in range(n_repeats):
        descent = Descent(PSDMatrix.identity(5), Settings(rate, 10, unbiased))
        descent.run(as_they_are(rows), batch, np.random.default_rng(number))
        moves[number] = (descent.metric - np.eye(5)) / rate
    expected = gradient if unbiased else odds * gradient
    assert 0.2 < odds < 0.8, "the two readings differ"
    within = 4.5 * moves.std(axis=0) / np.sqrt(n_repeats)
    assert np.all(np.abs(moves.mean(axis=0) - expected) < within)
    assert np.any(np.abs(moves.mean(axis=0) - odds ** (1 if unbiased else 0) * gradient) > within)


def test_an_unlikely_unbiased_update_is_no_longer_than_its_longest_triplet():
    # The gap is 14, so that an update is very unlikely; it is forced here.
    rows = as_they_are(np.array([[0.0, 0], [1, 0], [0, np.sqrt(15)]]))
    descent = Descent(PSDMatrix.identity(2), Settings(0.1, 10, unbiased=True))
    descent._update(rows, the_triplet(10))
    np.testing.assert_allclose(descent.metric, np.diag([1 - 0.1, 1 + 0.1 * 15]), atol=1e-9)
