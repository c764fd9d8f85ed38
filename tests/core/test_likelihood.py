"""The leave-one-out likelihood, against a loop over rows and latent examples."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from latentmetric.core.distances import References, k_nearest
from latentmetric.core.likelihood import (
    ALONE,
    MIN_LIKELIHOOD,
    _nearest_of_class,
    judge,
    label_likelihoods,
    left_out_distances,
)
from latentmetric.core.votes import KERNEL_NEIGHBORS


def plain_judge(
    points, positions, latents, class_starts, counts, temperature, exponent=0.0, leave_out=True,
    n_sets=1,
):  # fmt: skip
    """Mean loss of P(y | x) and the share of rows that would be classified wrongly."""
    of_latents, of_sets = labels_and_sets(class_starts, n_sets)
    losses, wrong = [], []
    for point, label in zip(points, positions, strict=True):
        squared = np.array([np.square(point - latent).sum() for latent in latents])
        voters = np.argsort(squared)[:KERNEL_NEIGHBORS]
        if leave_out:
            for number in range(n_sets):
                same = [
                    latent for latent in voters
                    if (of_latents[latent], of_sets[latent]) == (label, number)
                ]  # fmt: skip
                if same:
                    own = min(same, key=lambda latent: squared[latent])
                    count = counts[own]
                    squared[own] *= (count / (count - 1)) ** 2 if count > 1 else ALONE
        votes = np.zeros(len(class_starts) - 1)
        for latent in voters:
            nearest = squared[voters].min()
            votes[of_latents[latent]] += np.exp(-(squared[latent] - nearest) / temperature)
        votes /= votes.sum()
        right = votes[label]
        losses.append(
            (1 - right**exponent) / exponent if exponent else -np.log(max(right, MIN_LIKELIHOOD))
        )
        wrong.append(np.argmax(votes) != label)
    return np.mean(losses), np.mean(wrong)


def labels_and_sets(class_starts, n_sets):
    """The class and the set of each latent example."""
    sizes = np.diff(class_starts)
    of_sets = [np.repeat(np.arange(n_sets), size // n_sets) for size in sizes]
    return np.repeat(np.arange(len(sizes)), sizes), np.concatenate(of_sets)


def case(rng, counts_of_latents=(9, 6, 12, 8), n_rows=120, dtype=np.float64):
    """Rows of overlapping classes, and latent examples of different numbers of rows."""
    class_starts = np.concatenate(([0], np.cumsum(counts_of_latents)))
    n_classes = len(counts_of_latents)
    centres = 1.5 * rng.standard_normal((n_classes, 3))
    positions = rng.integers(n_classes, size=n_rows)
    points = centres[positions] + rng.standard_normal((n_rows, 3))
    latents = np.repeat(centres, counts_of_latents, axis=0)
    latents = latents + rng.standard_normal(latents.shape)
    counts = rng.integers(0, 9, size=len(latents))
    return points.astype(dtype), positions, latents.astype(dtype), class_starts, counts


@pytest.mark.parametrize("leave_out", [True, False])
@pytest.mark.parametrize(
    ("temperature", "exponent", "dtype", "rtol", "counts_of_latents"),
    [
        (0.05, 0, np.float64, 1e-9, (9, 6, 12, 8)), (0.5, 0, np.float32, 1e-4, (1, 1, 1)),
        (4.0, 0, np.float64, 1e-9, (30, 2)), (0.5, 0.7, np.float32, 1e-4, (9, 6, 12, 8)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n_sets", [1, 2])
def test_the_judgement_is_that_of_a_plain_loop(
    rng, leave_out, temperature, exponent, dtype, rtol, counts_of_latents, n_sets
):
    counts_of_latents = tuple(n_sets * count for count in counts_of_latents)
    arguments = (*case(rng, counts_of_latents, dtype=dtype), temperature, exponent)
    found = judge(*arguments, leave_out=leave_out, n_sets=n_sets)
    loss, error = plain_judge(*arguments, leave_out=leave_out, n_sets=n_sets)
    assert found.loss == pytest.approx(loss, rel=rtol)
    assert found.error == error
    assert 0 < error < 1


@pytest.mark.parametrize("leave_out", [True, False])
def test_without_a_temperature_the_nearest_latents_vote(leave_out):
    points, positions = np.array([[0.0], [1.0], [2.4]]), np.array([0, 0, 1])
    latents, class_starts = np.array([[0.1], [1.5], [2.5]]), np.array([0, 1, 3])
    counts = np.array([9, 9, 9])
    found = judge(points, positions, latents, class_starts, counts, 0.0, leave_out=leave_out)
    assert found.error == pytest.approx(1 / 3)
    assert found.loss == pytest.approx(-np.log(MIN_LIKELIHOOD) / 3)


@pytest.mark.parametrize("leave_out", [True, False])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_sets", [1, 2])
def test_the_likelihood_of_labels_is_that_of_a_plain_loop(rng, leave_out, own, dtype, n_sets):
    sizes = n_sets * np.array([5, 3, 6, 4])
    points, codes, latents, class_starts, counts = case(rng, sizes, dtype=dtype)
    of_latents, of_sets = labels_and_sets(class_starts, n_sets)
    log_scales, log_weights = (rng.standard_normal((2, len(latents))) * own).astype(dtype)
    votes = (log_scales, log_weights) if own else ()
    found = label_likelihoods(
        points, codes, References.of(latents), of_latents, counts, 0.5, leave_out,
        *(votes or (None, None)), n_sets,
    )  # fmt: skip
    for point, label, likelihood in zip(points, codes, found, strict=True):
        squared = np.square(point - latents).sum(axis=1, dtype=np.float64)
        for number in range(n_sets if leave_out else 0):
            same = (of_latents == label) & (of_sets == number)
            nearest = np.argmin(np.where(same, squared, np.inf))
            count = counts[nearest]
            squared[nearest] *= min((count / (count - 1)) ** 2, ALONE) if count > 1 else ALONE
        weights = np.exp(log_weights - np.exp(log_scales, dtype=np.float64) * squared / 0.5)
        expected = weights[of_latents == label].sum() / weights.sum()
        np.testing.assert_allclose(likelihood, expected, rtol=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("n_sets", [1, 2, 3])
def test_left_out_distances_are_those_of_a_plain_loop(rng, n_sets):
    counts_of_latents = n_sets * np.array([5, 1, 6])
    points, positions, latents, class_starts, counts = case(rng, counts_of_latents)
    weights = rng.uniform(0.5, 2, len(points))
    found = left_out_distances(
        points, positions, References.of(latents), class_starts, counts, weights, n_sets
    )
    of_latents, of_sets = labels_and_sets(class_starts, n_sets)
    for point, label, weight, nearest in zip(points, positions, weights, found, strict=True):
        squared = np.square(point - latents).sum(axis=1)
        for number in range(n_sets):
            candidates = np.flatnonzero((of_latents == label) & (of_sets == number))
            own = candidates[np.argmin(squared[candidates])]
            rest = counts[own] - weight
            squared[own] *= min((counts[own] / rest) ** 2, ALONE) if rest > 0 else ALONE
        assert nearest == pytest.approx(squared.min())


def test_the_nearest_of_a_class_is_that_of_a_plain_loop(rng):
    points, codes, latents, class_starts, _ = case(rng, (5, 3, 6, 4))
    of_latents, references = np.repeat(np.arange(4), np.diff(class_starts)), References.of(latents)
    searched = k_nearest(points, references, 2)
    squared, found = _nearest_of_class(points, codes, references, of_latents, *searched)
    among_nearest = (found[:, None] == searched[1]).any(axis=1)
    assert among_nearest.any()
    assert not among_nearest.all()
    every = cdist(points, latents, "sqeuclidean")
    every[of_latents != codes[:, None]] = np.inf
    np.testing.assert_array_equal(found, every.argmin(axis=1))
    np.testing.assert_allclose(squared, every.min(axis=1))
