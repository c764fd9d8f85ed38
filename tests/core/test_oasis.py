"""OASIS in blocks against OASIS one step at a time, and against steps done by hand."""

import numpy as np
import pytest

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.oasis import learn_similarity
from latentmetric.core.random_triplets import RandomTriplets


def as_they_are(rows):
    return InnerRows(rows, Coordinates(np.zeros(rows.shape[1]), 1.0))


def plain_oasis(similarity, rows, triplets, aggressiveness):
    """Algorithm 1 of the paper: one triplet and one matrix per step."""
    similarity, hinges = similarity.copy(), []
    for o, p, q in zip(triplets.anchors, triplets.targets, triplets.impostors, strict=True):
        gradient = np.outer(rows[o], rows[p] - rows[q])
        hinge = max(0, 1 - rows[o] @ similarity @ rows[p] + rows[o] @ similarity @ rows[q])
        hinges.append(hinge)
        if hinge > 0 and gradient.any():
            similarity += min(aggressiveness, hinge / np.sum(gradient**2)) * gradient
    return similarity, np.array(hinges)


def problem(n_steps, n_features, seed=0):
    generator = np.random.default_rng(seed)
    codes = generator.permutation(np.arange(40) % 5)
    rows = generator.standard_normal((40, n_features)) / np.sqrt(n_features)
    rows += generator.standard_normal((5, n_features))[codes] / np.sqrt(n_features)
    return rows, RandomTriplets(codes).draw(n_steps, generator)


@pytest.mark.parametrize(
    ("n_steps", "n_features", "aggressiveness", "steps_per_block"),
    [(1, 4, 0.01, 1), (7, 1, 1000.0, 7), (600, 4, 0.01, 256), (600, 30, 1000.0, 7)],
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_blocks_take_the_same_steps_as_the_plain_algorithm(
    n_steps, n_features, aggressiveness, steps_per_block, dtype, tolerance
):
    rows, triplets = problem(n_steps, n_features)
    expected, expected_hinges = plain_oasis(np.eye(n_features), rows, triplets, aggressiveness)
    learned = np.eye(n_features, dtype=dtype)
    hinges = learn_similarity(
        learned, as_they_are(rows.astype(dtype)), triplets, aggressiveness, steps_per_block
    )
    assert learned.dtype == dtype
    assert np.linalg.norm(learned - expected) <= tolerance * np.linalg.norm(expected)
    np.testing.assert_allclose(hinges, expected_hinges, atol=50 * tolerance)
    if n_steps > 100:
        assert 0 < np.count_nonzero(hinges) < n_steps
