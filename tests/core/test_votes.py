import numpy as np
import pytest
from scipy.spatial.distance import cdist

from latentmetric.core import distances, votes
from latentmetric.core.distances import References
from latentmetric.core.votes import (
    VOTES,
    temperature_from_held_out,
    temperature_from_references,
    vote,
    vote_shares,
)


@pytest.mark.parametrize(
    ("labels", "winner"),
    [
        ([0, 1, 1], 1),
        ([2, 1, 0], 2),
        ([0, 1, 1, 0], 0),
        ([3, 1, 2, 2, 1], 1),
        ([5, 4, 4, 3, 3], 4),
    ],
)
def test_ties_go_to_the_nearest_of_the_tied_classes(labels, winner):
    labels = np.array([labels])
    weights = VOTES["uniform"].weigh(np.ones(labels.shape), 0.0)
    assert vote(labels, weights).tolist() == [winner]
    shares = vote_shares(labels, weights, 6)
    assert np.argmax(shares) == winner
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares[0], np.bincount(labels[0], minlength=6) / labels.size)


def test_distance_weights_are_inverse_distances_and_zeros_vote_alone():
    squared = np.array([[1.0, 4.0, 16.0], [0.0, 0.0, 9.0]])
    weights = VOTES["distance"].weigh(squared, 0.0)
    np.testing.assert_allclose(weights, [[1, 0.5, 0.25], [1, 1, 0]])


def test_kernel_weights_survive_distances_far_beyond_the_temperature():
    weights = VOTES["kernel"].weigh(np.array([[1e6, 1e6 + 1, 1e9]]), 1e-3)
    assert weights[0, 0] == 1
    assert np.all(np.isfinite(weights))


def plainly(labels, weights, n_classes):
    """Winners and shares, one neighbour at a time from the nearest to the farthest."""
    totals = np.zeros((len(labels), n_classes))
    for row, rank in np.ndindex(labels.shape):
        totals[row, labels[row, rank]] += weights[row, rank]
    largest = [totals[row, labels[row]].argmax() for row in range(len(labels))]
    return labels[np.arange(len(labels)), largest], totals / totals.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("few", [1_024, 0], ids=["totals", "comparisons"])
@pytest.mark.parametrize("n_rows", [0, 1, 300])
def test_votes_and_shares_are_those_of_counting_one_by_one_bit_for_bit(
    rng, monkeypatch, few, n_rows
):
    monkeypatch.setattr(votes, "FEW_CLASSES", few)
    monkeypatch.setattr(distances, "BLOCK_BYTES", 1_000)
    labels, weights = rng.integers(0, 9, (n_rows, 20)), rng.random((n_rows, 20)) ** 9
    winners, shares = plainly(labels, weights, 9)
    np.testing.assert_array_equal(vote(labels, weights), winners)
    np.testing.assert_array_equal(vote_shares(labels, weights, 9), shares)


def test_temperature_is_a_share_of_the_mean_distance_to_the_fourth_nearest_other(rng):
    rows = rng.standard_normal((100, 4))
    fourth = np.sort(cdist(rows, rows, "sqeuclidean"), axis=1)[:, 4].mean()
    assert temperature_from_references(References.of(rows)) == pytest.approx(0.14 * fourth)


def test_held_out_temperature_is_low_if_the_nearest_is_right_and_high_if_many_must_vote():
    squared = np.tile([1.0, 1.1, 1.2, 1.3], (50, 1))
    nearest_right = np.tile([True, False, False, False], (50, 1))
    others_right = np.tile([False, True, True, True], (50, 1))
    assert temperature_from_held_out(squared, nearest_right) < temperature_from_held_out(
        squared, others_right
    )
