"""A row with a whole number as its weight is the same as so many rows, in each part of a fit."""

import numpy as np
import pytest
from helpers import make_blobs, one_class

from latentmetric.core import classes
from latentmetric.core.alternation import Settings
from latentmetric.core.coordinates import Coordinates
from latentmetric.core.latents import (
    MAX_LATENT_SHARE,
    Members,
    refill_empty,
    settle,
    shared_by_weight,
)
from latentmetric.core.likelihood import ALONE, judge, leave_one_out_factors
from latentmetric.core.metric import Metric
from latentmetric.core.nearby import LatentPoints, list_neighbors
from latentmetric.core.population import LocalPopulation
from latentmetric.core.refinement import Batch, gradient
from latentmetric.core.starts import start_from

SETTINGS = Settings(
    n_steps=200, metric_reg=1.0, latent_reg=0.0, max_norm=10.0, target_neighbors=3, impostors=3,
    n_components=None, max_passes=50, n_threads=1,
)  # fmt: skip


@pytest.fixture
def weighted(rng):
    """Labelled rows, and how often each is repeated."""
    X, y = make_blobs(n_rows=120)
    return X, y, rng.integers(1, 5, len(X))


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_coordinates(weighted):
    X, _, times = weighted
    found, radii = Coordinates.with_radii(X, weights=times.astype(float))
    expected, of_repeated = Coordinates.with_radii(np.repeat(X, times, axis=0))
    same(found.centre, expected.centre)
    assert found.scale == pytest.approx(expected.scale)
    same(np.repeat(radii, times), of_repeated)


@pytest.mark.parametrize("latent_reg", [0.0, 3.0])
@pytest.mark.parametrize("block_bytes", [2**20, 500])
def test_alg_1(weighted, latent_reg, block_bytes, monkeypatch):
    monkeypatch.setattr(classes, "CLASS_BLOCK_BYTES", block_bytes)
    X, _, times = weighted
    start, metric = X[::17] + 0.01, Metric(np.diag(np.arange(1.0, 7)))
    found = settle(one_class(X, weights=times.astype(float)), start, metric, latent_reg, 50)
    expected = settle(one_class(np.repeat(X, times, axis=0)), start, metric, latent_reg, 50)
    same(found.latents, expected.latents)
    np.testing.assert_array_equal(np.repeat(found.assignment, times), expected.assignment)
    same(found.counts, expected.counts)
    assert found.spread == pytest.approx(expected.spread)
    assert found.passes == expected.passes > 2
    same(np.array([found.spread]), np.array([expected.spread]))


def test_an_empty_latent_example_takes_the_row_that_costs_most():
    rows = one_class(np.array([[0.0], [1.0], [10.0], [0.1]]), weights=np.array([1.0, 1, 1, 2000]))
    start = np.array([[0.0], [50.0]])
    members = Members(4, start, 0.0, weights=rows.weights)
    members.reassign(slice(0, 4), rows[slice(0, 4)], np.zeros(4, int))
    latents = members.means()
    refill_empty(rows, latents, Metric(np.eye(1)), members)
    costs = rows.weights * np.square(rows[slice(0, 4)] - latents[0])[:, 0]
    assert members.assignment.tolist().index(1) == np.argmax(costs)
    same(members.counts, np.bincount(members.assignment, rows.weights))


@pytest.mark.parametrize("name", ["standardized", "within"])
def test_starts(weighted, name):
    X, y, times = weighted
    found = start_from(name, X, y, times.astype(float))
    expected = start_from(name, np.repeat(X, times, axis=0), np.repeat(y, times))
    same(found.factor, expected.factor)


def test_judgements(weighted):
    X, y, times = weighted
    latents, starts, counts = np.concatenate([X[y == c][:5] for c in range(3)]), [0, 5, 10, 15], []
    latents, starts, counts = latents + 0.1, np.array(starts), np.full(15, 8)
    found = judge(X, y, latents, starts, counts, 2.0, leave_out=False, weights=times.astype(float))
    repeated = np.repeat(X, times, axis=0), np.repeat(y, times)
    expected = judge(*repeated, latents, starts, counts, 2.0, leave_out=False)
    assert (found.loss, found.error) == pytest.approx((expected.loss, expected.error))
    assert 0 < found.error < 1


def test_a_row_is_left_out_with_all_its_weight():
    """The mean of the other rows is c/(c − w) times as far away."""
    X, weights = np.array([[0.0, 1.0], [2.0, 2.0], [5.0, 0.0]]), np.array([1.0, 2.0, 0.5])
    whole = weights @ X / weights.sum()
    for row, weight in enumerate(weights):
        others = np.arange(3) != row
        rest = weights[others] @ X[others] / weights[others].sum()
        farther = np.square(X[row] - rest).sum() / np.square(X[row] - whole).sum()
        expected = min(farther, ALONE)
        assert leave_one_out_factors(weights.sum(), weight) == pytest.approx(expected)
    assert leave_one_out_factors(np.array([0.5]), np.array([0.5])) == ALONE
    same(leave_one_out_factors(np.array([1, 2, 3])), [ALONE, 4, 2.25])


def test_nearby(weighted):
    X, y, times = weighted
    found = nearby(LocalPopulation.of(X, y, weights=times.astype(float)))
    repeated = LocalPopulation.of(np.repeat(X, times, axis=0), np.repeat(y, times))
    expected = nearby(repeated)
    weights = LocalPopulation.of(X, y, weights=times.astype(float)).weights
    again = np.repeat(found.own, weights.astype(int), axis=0)
    np.testing.assert_array_equal(again, expected.own)
    same(found.spreads, expected.spreads)


def nearby(rows):
    inner = rows.sample(np.arange(rows.sizes.sum()))
    ends = np.cumsum(rows.sizes)
    radii = np.square(inner).sum(axis=1)
    # The same latents in both populations: near the rows with the smallest radii of each class.
    first = [inner[e - s : e][np.unique(radii[e - s : e], return_index=True)[1][:4]]
             for s, e in zip(rows.sizes, ends, strict=True)]  # fmt: skip
    points = np.concatenate(first) * 0.98
    starts = np.arange(0, 16, 4)
    latent_points = LatentPoints(
        np.eye(inner.shape[1]), points, starts, list_neighbors(points, starts, 1, 2),
        np.full(12, 7.0), 0.7, n_sets=2,
    )  # fmt: skip
    return rows.nearby(latent_points, 1)


def test_gradients(rng):
    rows, points = rng.standard_normal((9, 5)), rng.standard_normal((7, 3))
    factor, times = rng.standard_normal((3, 5)), rng.integers(1, 5, 9)
    near = np.stack([rng.permutation(7)[:6] for _ in range(9)]).reshape(9, 2, 3)
    same_label = rng.random((9, 2, 3)) < 0.5
    same_label[:, :, 0] = True
    stretch = rng.uniform(1, 4, (9, 2, 3))
    one = Batch(factor, points, near, same_label, stretch, 1.3, 0.7, times.astype(float))
    numbers = np.repeat(np.arange(9), times)
    many = Batch(factor, points, *(part[numbers] for part in (near, same_label, stretch)), 1.3, 0.7)
    found, expected = gradient(rows, one), gradient(rows[numbers], many)
    same(found.components, expected.components)
    same(found.points, expected.points)
    halves = [gradient(rows[part], one.part(part)) for part in (slice(0, 4), slice(4, 9))]
    same((halves[0] + halves[1]).components, expected.components)


def test_classes_share_latent_examples_by_weight():
    sizes = np.array([980, 20])
    np.testing.assert_allclose(shared_by_weight(0.1, sizes, sizes), [98, 2])
    heavy, light = shared_by_weight(0.1, sizes, np.array([900.0, 100.0]))
    assert heavy == pytest.approx(90 * 2 / 3)
    assert light == MAX_LATENT_SHARE * 20
    # A small class among many takes little from them.
    sizes = np.array([100] * 99 + [4])
    shared = shared_by_weight(0.1, sizes, np.full(100, sizes.mean()))
    assert shared[-1] == 1
    assert shared[:-1].min() > 9
    assert shared_by_weight(0.9, np.array([10, 10]), np.array([10, 10])).tolist() == [9, 9]
