"""The fitted model against plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from latentmetric.core import distances
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.model import FittedModel
from latentmetric.core.tuning import LEAST_SHARE


@pytest.fixture
def made(rng):
    rows, codes = rng.standard_normal((60, 5)) * 3 + 7, np.arange(60) % 4
    components = rng.standard_normal((3, 5))
    coordinates = Coordinates.of(rows)
    points = InnerRows(rows, coordinates).under(components)
    model = FittedModel.of_metric(coordinates, components, points, codes, 4)
    return model, rows, codes, components


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
