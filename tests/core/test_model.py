"""The fitted model against plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from latentmetric.core import distances
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.model import FittedModel
from latentmetric.core.tuning import LEAST_SHARE
from latentmetric.core.unknown import usual_from_references
from latentmetric.core.votes import VOTES


@pytest.fixture
def made(rng):
    rows, codes = rng.standard_normal((60, 5)) * 3 + 7, np.arange(60) % 4
    components = rng.standard_normal((3, 5))
    coordinates = Coordinates.of(rows)
    points = InnerRows(rows, coordinates).under(components)
    model = FittedModel.of_metric(coordinates, components, points, codes, 4)
    return model, rows, codes, components


def test_nearest_and_distances_are_those_of_the_metric(made, rng):
    model, rows, _, components = made
    queries = rng.standard_normal((20, 5)) * 3 + 7
    neighbors = model.nearest(queries, 6, n_jobs=2)
    apart = cdist(queries @ components.T, rows @ components.T)
    np.testing.assert_array_equal(neighbors.indices, np.argsort(apart, axis=1)[:, :6])
    np.testing.assert_allclose(model.distances(neighbors.squared), np.sort(apart, axis=1)[:, :6])
    from_centre = cdist(queries @ components.T, [model.coordinates.centre @ components.T])[:, 0]
    unit, usual = model.coordinates.unit, usual_from_references(model.references)
    expected = from_centre**2 / usual.centre - apart.min(axis=1) ** 2 / usual.nearest
    np.testing.assert_allclose(model.scores(neighbors, queries), expected / unit)
    assert neighbors.first(2).indices.shape == (20, 2)


@pytest.mark.parametrize("n_threads", [1, 3, 8])
def test_queries_searched_in_pieces_by_several_threads_find_the_same(
    made, rng, monkeypatch, n_threads
):
    model, *_ = made
    queries = rng.standard_normal((200, 5)) * 3 + 7
    expected = model.nearest(queries, 6)
    monkeypatch.setattr(distances, "BLOCK_BYTES", 100 * queries[0].nbytes)  # two blocks
    found = model.nearest(queries, 6, n_threads)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.squared, expected.squared, rtol=1e-12)


@pytest.mark.parametrize("weights", VOTES)
def test_votes_and_shares_agree(made, rng, weights):
    model, _, codes, _ = made
    neighbors = model.nearest(rng.standard_normal((50, 5)) * 3 + 7, 7)
    shares, elected = model.shares(neighbors, weights), model.vote(neighbors, weights)
    assert shares.shape == (50, 4)
    np.testing.assert_array_equal(shares.argmax(axis=1), elected)
    ballots = VOTES[weights].weigh(neighbors.squared, model.temperature)
    for row in range(50):
        expected = np.bincount(codes[neighbors.indices[row]], ballots[row], minlength=4)
        if weights == "kernel":  # classes share what the other references may weigh
            expected += max(ballots[row, -1], LEAST_SHARE * expected.sum()) / 4
        np.testing.assert_allclose(shares[row], expected / expected.sum(), atol=1e-12)


@pytest.mark.parametrize("n_voters", [15, 60])
def test_references_vote_with_their_own_bandwidths_and_weights(made, rng, n_voters):
    model, rows, codes, components = made
    scales, weights = rng.standard_normal((2, 60))
    model = replace(model, temperature=0.5, log_scales=scales, log_weights=weights)
    queries = rng.standard_normal((30, 5)) * 3 + 7
    neighbors = model.nearest(queries, n_voters)
    shares, elected = model.shares(neighbors, "kernel"), model.vote(neighbors, "kernel")
    inner = cdist(queries @ components.T, rows @ components.T) / model.coordinates.scale
    for row, distances_of_row in enumerate(inner):
        nearest = np.argsort(distances_of_row)[:n_voters]
        votes = np.zeros(4)
        for one in nearest:
            last = np.exp(weights[one] - np.exp(scales[one]) * distances_of_row[one] ** 2 / 0.5)
            votes[codes[one]] += last
        assert elected[row] == votes.argmax()
        beyond = last if n_voters < 60 else 0
        votes += max(beyond, LEAST_SHARE * votes.sum()) / 4
        np.testing.assert_allclose(shares[row], votes / votes.sum(), rtol=1e-9)


def test_a_similarity_ranks_by_inner_products(rng):
    rows, codes = rng.standard_normal((40, 5)), np.arange(40) % 2
    similarity = rng.standard_normal((5, 5))
    inner = InnerRows(rows, Coordinates.of(rows))
    model = FittedModel.of_similarity(similarity, inner, codes, 2)
    centred = rows - rows.mean(axis=0)
    similar = centred @ similarity @ centred.T / np.square(centred).sum(axis=1).mean()
    neighbors = model.nearest(rows, 4)
    np.testing.assert_array_equal(neighbors.indices, np.argsort(-similar, axis=1)[:, :4])
    np.testing.assert_allclose(
        model.distances(neighbors.squared), np.sort(-similar, axis=1)[:, :4], atol=1e-12
    )
    other = model.with_references(rows[:10], codes[:10])
    np.testing.assert_array_equal(
        other.nearest(rows, 1).indices[:, 0], np.argmax(similar[:, :10], axis=1)
    )
    assert not other.is_metric


def test_queries_out_of_reach_are_named(made):
    model = made[0]
    queries = np.zeros((3, 5))
    queries[2, 4] = 1e150
    with pytest.raises(ValueError, match=r"row 12, column 4 .* at most 1e\+140 times"):
        model.check_reach(queries, start=10)
