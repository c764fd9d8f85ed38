"""The refinement of all rows at once against a plain loss, and logistic regression."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from latentmetric import MaPML
from latentmetric.core.quasi_newton import (
    BANDWIDTHS,
    KernelVote,
    Labelled,
    Objective,
    descend,
    even_lengths,
)
from latentmetric.core.refinement import Batch, gradient
from latentmetric.core.tuning import BANDWIDTH_PULL, WEIGHT_PULL, WRONG_LABELS_EXPONENT

N_ROWS, N_FEATURES, RANK, T = 12, 5, 3, 1.7
CLASS_STARTS = np.array([0, 3, 5, 6])
OF_POINTS = np.array([0, 0, 0, 1, 1, 2])
POSITIONS = np.sort(np.arange(N_ROWS) % 3)


@pytest.fixture
def vote(rng):
    return KernelVote.equal(
        rng.standard_normal((RANK, N_FEATURES)), rng.standard_normal((6, RANK)), CLASS_STARTS, T
    )


@pytest.fixture
def rows(rng):
    return rng.standard_normal((N_ROWS, N_FEATURES))


class PlainLoss:
    """The loss as the module's docstring has it, row by row and point by point."""

    def __init__(self, data, start, ridge, bandwidth, exponent=0.0, latent_reg=0.0):
        self.data, self.start, self.exponent = data, start, exponent
        self.ridge, self.latent_reg = ridge, latent_reg
        groups = {"shared": [], "class": range(3), "latent": range(6)}[bandwidth]
        self.n_groups = len(groups)
        self.group_of = OF_POINTS if bandwidth == "class" else np.arange(6)

    def __call__(self, vector):
        data, start = self.data, self.start
        n_factor, n_points = start.components.size, start.points.size
        factor = vector[:n_factor].reshape(start.components.shape)
        points = vector[n_factor : n_factor + n_points].reshape(start.points.shape)
        scales, weights = vector[n_factor + n_points :].reshape(2, self.n_groups)
        total = 0.0
        for row, position, own, stretch, share in zip(
            data.rows, data.positions, data.own, data.stretch, data.weights, strict=True
        ):
            exponents = np.empty(len(points))
            for z, point in enumerate(points):
                squared = np.square(factor @ row - point).sum() * (stretch if z == own else 1)
                t, b = (0, 0)
                if self.n_groups:
                    t, b = scales[self.group_of[z]], weights[self.group_of[z]]
                exponents[z] = b - np.exp(t) * squared / T
            log_p = logsumexp(exponents[position == OF_POINTS]) - logsumexp(exponents)
            e = self.exponent
            total += share * ((1 - np.exp(e * log_p)) / e if e else -log_p)
        moved, away = factor - start.components, points - start.points
        total += self.ridge * np.square(moved).sum() / np.square(start.components).sum()
        total += self.ridge * np.square(away).sum() / np.square(start.points).sum()
        total += self.latent_reg / (T * len(data.rows)) * np.square(away).sum()
        pulls = BANDWIDTH_PULL * np.square(scales).sum() + WEIGHT_PULL * np.square(weights).sum()
        return total + pulls / len(data.rows)


CASES = [
    ("shared", 0.0, False, 0.0, 0.0), ("shared", WRONG_LABELS_EXPONENT, True, 2.0, 0.3),
    ("class", 0.0, True, 0.0, 0.1), ("class", WRONG_LABELS_EXPONENT, False, 3.0, 0.0),
    ("latent", 0.0, False, 1.0, 2.0), ("latent", WRONG_LABELS_EXPONENT, True, 0.0, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("bandwidth", "exponent", "weighted", "latent_reg", "ridge"), CASES)
def test_loss_and_gradient_are_those_of_the_plain_loss(
    rows, vote, rng, bandwidth, exponent, weighted, latent_reg, ridge
):
    weights = rng.uniform(0.5, 2, N_ROWS) if weighted else None
    data = Labelled.of(rows, POSITIONS, weights, vote)
    options = ridge, bandwidth, exponent, latent_reg
    objective, plain = Objective(data, vote, *options), PlainLoss(data, vote, *options)
    vector = objective.first + 0.3 * rng.standard_normal(len(objective.first))
    loss, slope = objective(vector)
    assert loss == pytest.approx(plain(vector), rel=1e-10)
    expected = approx_fprime(vector, plain, 1e-7)
    np.testing.assert_allclose(slope, expected, atol=1e-5)
    assert (np.abs(expected) > 1e-4).mean() > 0.9  # every number matters


def test_rows_are_left_out_of_the_nearest_latent_example_of_their_class(rows, vote):
    data = Labelled.of(rows, POSITIONS, None, vote)
    squared = np.square((rows @ vote.components.T)[:, None] - vote.points).sum(axis=2)
    other = POSITIONS[:, None] != OF_POINTS
    np.testing.assert_array_equal(data.own, np.where(other, np.inf, squared).argmin(axis=1))
    counts = np.bincount(data.own, minlength=6)
    stretch = [(c / (c - 1)) ** 2 if c > 1 else 4.0 for c in counts[data.own]]
    np.testing.assert_allclose(data.stretch, stretch)
    left_out = data.left_out(rows @ vote.components.T, vote.points)
    squared[np.arange(N_ROWS), data.own] *= stretch
    np.testing.assert_allclose(left_out, squared)


@pytest.mark.parametrize("exponent", [0.0, WRONG_LABELS_EXPONENT])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_the_refinement_in_batches(rows, vote, rng, exponent, weighted):
    weights = rng.uniform(0.5, 2, N_ROWS) if weighted else None
    data = Labelled.of(rows, POSITIONS, weights, vote)
    slope = Objective(data, vote, 0.0, "shared", exponent)
    _, found = slope(slope.first)
    near = np.tile(np.arange(6), (N_ROWS, 1))
    stretch = np.where(near == data.own[:, None], data.stretch[:, None], 1)
    same = POSITIONS[:, None] == OF_POINTS
    in_one_set = (part[:, None] for part in (near, same, stretch))
    batch = Batch(vote.components, vote.points, *in_one_set, T, exponent, weights)
    in_batches = gradient(rows, batch)
    total = N_ROWS if weights is None else weights.sum()
    expected = np.concatenate((in_batches.components.ravel(), in_batches.points.ravel())) / total
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("exponent", [0.0, WRONG_LABELS_EXPONENT])
def test_rows_far_from_all_latent_examples_of_their_label(dtype, bandwidth, exponent):
    """All votes for the label underflow; the nearest latent example of it is still drawn near."""
    points = np.array([[100, 0], [300, 0], [0.5, 0]], dtype)
    vote = KernelVote.equal(np.eye(2, dtype=dtype), points, np.array([0, 2, 3]), 0.1)
    data = Labelled.of(np.zeros((2, 2), dtype), np.array([0, 1]), None, vote)
    objective = Objective(data, vote, 0.0, bandwidth, exponent)
    loss, slope = objective(objective.first)
    assert np.isfinite(loss)
    assert np.isfinite(slope).all()
    drawn, other = slope[4], slope[6]
    assert other == 0
    assert (drawn > 1) if exponent == 0 else (drawn == 0)
    learned = descend(objective, 20)
    assert np.isfinite(learned.components).all()
    assert np.isfinite(learned.points).all()


def test_a_descent_lowers_the_loss_and_a_ridge_holds_what_it_starts_from(rows, vote):
    data = Labelled.of(rows, POSITIONS, None, vote)
    moves = []
    for ridge in (0.0, 0.1, 10.0, 1e6):
        objective = Objective(data, vote, ridge, "shared")
        learned = descend(objective, 100)
        vector = np.concatenate((learned.components.ravel(), learned.points.ravel()))
        assert objective(vector)[0] < objective(objective.first)[0]
        moves.append(np.linalg.norm(vector - objective.first))
    assert moves == sorted(moves, reverse=True)
    assert moves[-1] < 1e-3 < 1 < moves[0]


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_votes_are_shared_by_bandwidths_and_weights(rows, vote, rng, bandwidth):
    """The probabilities of a vote, class by class."""
    objective = Objective(Labelled.of(rows, POSITIONS, None, vote), vote, 0.0, bandwidth)
    n_own = len(objective.first) - vote.components.size - vote.points.size
    assert n_own == {"shared": 0, "class": 6, "latent": 12}[bandwidth]
    vector = objective.first + 0.5 * rng.standard_normal(len(objective.first))
    moved = objective.vote(vector)
    found = moved.probabilities(rows)
    for row, shares in zip(rows, found, strict=True):
        squared = np.square(moved.components @ row - moved.points).sum(axis=1)
        votes = np.exp(moved.log_weights - np.exp(moved.log_scales) * squared / T)
        expected = np.bincount(OF_POINTS, votes) / votes.sum()
        np.testing.assert_allclose(shares, expected)


def overlapping_gaussians(n_rows, n_classes, seed=0):
    generator = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    means = 1.5 * generator.standard_normal((n_classes, 4))
    return means[y] + generator.standard_normal((n_rows, 4)), y


def test_one_latent_example_a_class_is_logistic_regression():
    """‖Lx‖² cancels, and with 500 rows a class it hardly matters that rows are left out."""
    X, y = overlapping_gaussians(1500, 3)
    logistic = LogisticRegression(C=1e6, max_iter=1000).fit(X, y)
    model = MaPML(1, ridge=1e-9, bandwidth="shared", refine=20, random_state=0).fit(X, y)
    assert 0.6 < logistic.score(X, y) < 0.95
    np.testing.assert_allclose(model.predict_proba(X), logistic.predict_proba(X), atol=0.01)


def test_a_strong_ridge_keeps_the_means_of_classes_as_latent_examples():
    """A ridge holds the metric and the means where they were, not the weights at 0.

    So its limit is not a constant but linear discriminant analysis: the vote of the class means
    under the start.
    """
    X, y = overlapping_gaussians(1500, 3)
    model = MaPML(1, ridge=1e6, bandwidth="shared", start="within", random_state=0).fit(X, y)
    means = np.array([X[y == label].mean(axis=0) for label in range(3)])
    np.testing.assert_allclose(model.latent_examples_, means, atol=1e-3)
    exponents = -np.square(model.transform(X)[:, None] - model.transform(means)).sum(axis=2)
    exponents /= model.model_.temperature * model.model_.coordinates.scale**2
    expected = np.exp(exponents - logsumexp(exponents, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-3)


def test_points_of_single_rows_come_to_equal_distances_from_their_mean(rng):
    points = np.eye(30) * np.linspace(1, 3, 30)  # in as many directions as there are points
    vote = KernelVote.equal(np.eye(30), points, np.arange(31), 1.0)
    away = [one - points.mean(axis=0) for one in (points, even_lengths(vote).points)]
    before, after = (np.linalg.norm(one, axis=1) for one in away)
    assert after.std() < 0.2 * before.std()
    on_a_line = replace(vote, points=rng.normal(size=(30, 1)) * np.ones(30))
    np.testing.assert_allclose(even_lengths(on_a_line).points, on_a_line.points)
    equal = replace(vote, points=np.ones((30, 30)))
    np.testing.assert_array_equal(even_lengths(equal).points, equal.points)
