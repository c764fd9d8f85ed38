"""The latent examples near each row, against a search of all latent examples."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import make_blobs
from scipy.spatial.distance import cdist

from latentmetric.core.nearby import (
    LISTED,
    LISTING_AXES,
    NEAR,
    LatentPoints,
    RowSubset,
    list_neighbors,
)
from latentmetric.core.population import LocalPopulation, positions_of

T = 0.7


def landscape(X, y, counts, factor=None, temperature=T, n_sets=1):
    """Rows by class, and latent examples near some rows of each class, so many in each set."""
    rows = LocalPopulation.of(X, y)
    numbers = np.arange(len(X))
    inner = rows.sample(numbers)
    ends = np.cumsum(rows.sizes)
    chosen = [
        np.linspace(end - size, end, n_sets * many, endpoint=False).astype(int)
        for end, size, many in zip(ends, rows.sizes, counts, strict=True)
    ]
    components = np.eye(X.shape[1], dtype=X.dtype) if factor is None else factor.astype(X.dtype)
    latents = inner[np.concatenate(chosen)] * X.dtype.type(0.98)
    points = latents @ components.T
    class_starts = n_sets * np.concatenate(([0], np.cumsum(counts)))
    lists, known = list_neighbors(points, class_starts, 1, n_sets), np.full(len(points), 7)
    return rows, LatentPoints(
        components, points, class_starts, lists, known, temperature, n_sets=n_sets
    )


def squared_distances(rows, latent_points):
    """Of all rows, in drawing order, to all latent examples, by differences in float64."""
    exact = np.concatenate(
        [of_class[of_class.drawing_order].astype(np.float64) for of_class in rows.classes]
    )
    means = np.repeat([of_class.mean for of_class in rows.classes], rows.sizes, axis=0)
    mapped = (exact + means) @ latent_points.components.T.astype(np.float64)
    return cdist(mapped, latent_points.points.astype(np.float64), "sqeuclidean")


def plain_nearby(rows, latent_points):
    """Near and own latent examples, likelihoods and spreads of each set, a row at a time."""
    squared = squared_distances(rows, latent_points)
    labels = positions_of(rows, np.arange(len(squared)))
    of_points = np.repeat(np.arange(len(rows)), np.diff(latent_points.class_starts))
    found = [
        plain_nearby_of_set(np.where(of_sets == number, squared, np.inf), labels, of_points)
        for of_sets in [plain_sets(latent_points)]
        for number in range(latent_points.n_sets)
    ]
    near, own, likelihoods, spreads = zip(*found, strict=True)
    own, spreads = np.transpose(own), np.mean(spreads, axis=0)
    return list(zip(*near, strict=True)), own, np.min(likelihoods, axis=0), spreads


def plain_sets(latent_points):
    """The set of each latent example: in each class, the first ones are those of the first set."""
    return np.concatenate(
        [
            np.repeat(np.arange(latent_points.n_sets), size // latent_points.n_sets)
            for size in np.diff(latent_points.class_starts)
        ]
    )


def plain_nearby_of_set(squared, labels, of_points):
    """The same by one set; other latent examples are infinitely far away."""
    own = np.argmin(np.where(of_points == labels[:, None], squared, np.inf), axis=1)
    counts = np.bincount(own)
    n_near = min(NEAR, int(np.isfinite(squared[0]).sum()))
    near, likelihood = [], []
    for row, label in enumerate(labels):
        nearest = np.argsort(squared[row])[:n_near]
        if own[row] not in nearest:
            nearest[-1] = own[row]
        near.append(set(nearest))
        likelihood.append(
            plain_likelihood(squared[row], nearest, own[row], counts, of_points, label)
        )
    spreads = [squared[labels == label, own[labels == label]].mean() for label in np.unique(labels)]
    return near, own, np.array(likelihood), spreads


def plain_likelihood(squared, near, own, counts, of_points, label, temperature=T):
    """P(y | x) over the near latent examples, without the row in its own one."""
    weights = {}
    for latent in near:
        stretch = 1.0
        if latent == own:
            stretch = (counts[own] / (counts[own] - 1)) ** 2 if counts[own] > 1 else 4.0
        weights[latent] = np.exp(-stretch * squared[latent] / temperature)
    right = sum(weight for latent, weight in weights.items() if of_points[latent] == label)
    return right / sum(weights.values())


def assert_as_plain(rows, latent_points, n_threads=1, rtol=1e-9):
    found = rows.nearby(latent_points, n_threads)
    near, own, likelihood, spreads = plain_nearby(rows, latent_points)
    np.testing.assert_array_equal(found.own, own)
    assert [tuple(map(set, row)) for row in found.near.tolist()] == near
    np.testing.assert_allclose(found.likelihood, likelihood, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.spreads, spreads, rtol=rtol)
    return found


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-9)])
@pytest.mark.parametrize("counts", [(1, 1, 1), (4, 3, 5), (15, 9, 16), (20, 20, 24)])
@pytest.mark.parametrize("n_sets", [1, 2])
def test_few_latents_are_all_compared(rng, dtype, rtol, counts, n_sets):
    X, y = make_blobs(150, 3, 6)
    rows, latent_points = landscape(
        X.astype(dtype), y, counts, rng.standard_normal((4, 6)), n_sets=n_sets
    )
    found = assert_as_plain(rows, latent_points, rtol=rtol)
    assert found.near.shape == (150, n_sets, min(NEAR, sum(counts)))
    assert found.likelihood.dtype == dtype
    assert 0 <= found.likelihood.min() < found.likelihood.max() <= 1


@pytest.mark.parametrize(
    "visit", [RowSubset(3, 0), RowSubset(3, 2), RowSubset(40, 39), RowSubset(500, 499)]
)
def test_a_part_of_the_rows_sees_what_all_rows_see(visit):
    X, y = make_blobs(200, 4, 6)
    rows, latent_points = landscape(X, y, (12, 10, 11, 9), n_sets=2)
    every = rows.nearby(latent_points, 1)
    counts = np.bincount(every.own.ravel(), minlength=len(latent_points.points))
    numbers = visit.numbers(rows.sizes)
    found = rows.nearby(replace(latent_points, visit=visit, counts=counts), 2)
    np.testing.assert_array_equal(np.unique(positions_of(rows, numbers)), np.arange(4))
    np.testing.assert_array_equal(found.own, every.own[numbers])
    np.testing.assert_array_equal(np.sort(found.near), np.sort(every.near[numbers]))
    np.testing.assert_allclose(found.likelihood, every.likelihood[numbers], rtol=1e-9)


@pytest.mark.parametrize("n_others", [NEAR + 14, LISTED + 30])
def test_rows_among_others_keep_their_own_latent(n_others):
    """The latents of the first class are far away from all rows, its own ones included."""
    X, y = make_blobs(400, 2, 3)
    rows, latent_points = landscape(X, y, (5, n_others))
    points = latent_points.points.copy()
    points[:5] = 10 + np.arange(5)[:, None] * np.eye(3)[0]
    latent_points = replace(
        latent_points, points=points, lists=list_neighbors(points, latent_points.class_starts, 1)
    )
    found = rows.nearby(latent_points, 1)
    nearest = np.argsort(squared_distances(rows, latent_points), axis=1)[:200, :NEAR]
    assert (nearest >= 5).all(), "without the rule no row of the class would find its own"
    near, own, _, spreads = plain_nearby(rows, latent_points)
    np.testing.assert_array_equal(found.own, own)
    np.testing.assert_array_equal((found.near[:, 0] == own).sum(axis=1), 1)
    if n_others < LISTED:
        assert [tuple(map(set, row)) for row in found.near.tolist()] == near
    np.testing.assert_allclose(found.spreads, spreads)


def clustered(n_rows, n_clusters, n_features, seed=0):
    """Rows in clusters, each of one class, in a space of many directions."""
    generator = np.random.default_rng(seed)
    centres = 3 * generator.standard_normal((n_clusters, n_features)) / np.sqrt(n_features)
    cluster = generator.integers(n_clusters, size=n_rows)
    X = centres[cluster] + generator.standard_normal((n_rows, n_features)) / np.sqrt(n_features)
    return X, cluster % 4


@pytest.mark.parametrize(("n_features", "n_sets"), [(10, 1), (LISTING_AXES + 30, 1), (10, 3)])
def test_most_of_the_nearest_among_many_latents_are_found(n_features, n_sets):
    X, y = clustered(2400, 24, n_features)
    rows, latent_points = landscape(X, y, (120, 110, 100, 90), n_sets=n_sets)
    assert latent_points.lists.shape == (n_sets * 420, LISTED)
    found = rows.nearby(latent_points, 1)
    near, own, _, spreads = plain_nearby(rows, latent_points)
    np.testing.assert_array_equal(found.own, own)
    for number in range(n_sets):
        of_set = list(map(set, found.near[:, number].tolist()))
        hits = [len(row & exact[number]) for row, exact in zip(of_set, near, strict=True)]
        assert np.mean(hits) > 0.9 * NEAR
        assert [len(row) for row in of_set] == [NEAR] * len(X)
        assert (found.near[:, number] == own[:, number, None]).any(axis=1).all()
    np.testing.assert_allclose(found.spreads, spreads)


@pytest.mark.parametrize("offset", [1e3, 3e4])
def test_a_class_far_away_keeps_the_differences_of_its_rows_in_float32(offset):
    X, y = make_blobs(300, 3, 6)
    X[y == 2] += offset
    X = X.astype(np.float32)
    rows, latent_points = landscape(X, y, (12, 12, 12), temperature=1e-6)
    assert max(np.abs(of_class.mean).max() for of_class in rows.classes) > 1
    found = rows.nearby(latent_points, 1)
    _, own, _, spreads = plain_nearby(rows, latent_points)
    assert np.mean(found.own != own) < 0.01
    np.testing.assert_allclose(found.spreads, spreads, rtol=0.01)


@pytest.mark.parametrize("n_points", [1, 5, LISTED, LISTED + 1, 200])
def test_lists_hold_the_latents_nearest_to_each_latent(rng, n_points):
    points = rng.standard_normal((n_points, 5))
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    lists = list_neighbors(points, np.array([0, len(points)]), 1)
    expected = np.argsort(squared, axis=1)[:, :LISTED]
    np.testing.assert_array_equal(np.sort(lists, axis=1), np.sort(expected, axis=1))


def test_among_many_latents_only_those_of_near_classes_are_compared(rng, monkeypatch):
    """Forty classes of ten latents in a row, wide enough to overlap with their neighbours."""
    monkeypatch.setattr("latentmetric.core.nearby.MAX_COMPARED", 200)
    centres = np.repeat(np.arange(40.0), 10)[:, None] * np.eye(3)[0]
    points = centres + 0.5 * rng.standard_normal((400, 3))
    lists = list_neighbors(points, np.arange(0, 401, 10), 2)
    assert np.abs(lists // 10 - np.arange(400)[:, None] // 10).max() <= 21
    nearest = np.argsort(cdist(points, points), axis=1)[:, :LISTED]
    hits = [len(set(one) & set(other)) for one, other in zip(lists, nearest, strict=True)]
    assert np.mean(hits) > 0.95 * LISTED
    assert all(number in listed for number, listed in enumerate(lists))
