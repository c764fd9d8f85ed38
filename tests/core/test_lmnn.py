import numpy as np
import pytest
from helpers import make_blobs, states_of

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.lmnn import Problem, evaluate, find_impostors, steps


def make_problem(max_impostors=1000, push=0.5, n_targets=3, data=None, n_threads=1):
    X, y = data or make_blobs(n_rows=90)
    rows = InnerRows(X, Coordinates.of(X))
    return Problem.of(rows, y, n_targets, push, max_impostors, n_threads)


def plain_loss(problem, components):
    """The definition, over all rows of other classes."""
    X = problem.rows
    classes = np.searchsorted(problem.class_starts, np.arange(len(X)), side="right")
    points = X @ components.T
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    loss = 0.0
    for i in range(len(X)):
        to_targets = squared[i, problem.targets[i]]
        others = squared[i, classes != classes[i]]
        hinges = problem.margin + to_targets[:, None] - others[None]
        loss += (1 - problem.push) * to_targets.sum() + problem.push * np.maximum(hinges, 0).sum()
    return loss


@pytest.mark.parametrize("push", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_that_of_the_definition(push, seed):
    problem = make_problem(push=push)
    components = np.random.default_rng(seed).standard_normal((6, 6))
    found = evaluate(problem, components, find_impostors(problem, components))
    assert found.active > 0
    assert found.loss == pytest.approx(plain_loss(problem, components))


@pytest.mark.parametrize("rank", [2, 6])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_gradient_is_that_of_finite_differences(rng, rank, n_threads):
    problem = make_problem(n_threads=n_threads)
    components = rng.standard_normal((rank, 6))
    impostors = find_impostors(problem, components)
    gradient = evaluate(problem, components, impostors).gradient
    for _ in range(10):
        direction = rng.standard_normal(components.shape)
        step = 1e-6
        above = evaluate(problem, components + step * direction, impostors).loss
        below = evaluate(problem, components - step * direction, impostors).loss
        slope = (above - below) / (2 * step)
        assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-4)


def test_a_far_away_centre_does_not_spoil_the_gradient(rng):
    X, y = make_blobs(n_rows=90)
    components = rng.standard_normal((6, 6))
    near, far = make_problem(data=(X, y)), make_problem(data=(X + 1e5, y))
    expected = evaluate(near, components, find_impostors(near, components)).gradient
    gradient = evaluate(far, components, find_impostors(far, components)).gradient
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_impostors_are_the_nearest_inside_the_margin():
    problem, few = make_problem(), make_problem(max_impostors=2)
    points = problem.rows
    every, nearest = find_impostors(problem, np.eye(6)), find_impostors(few, np.eye(6))
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    classes = np.searchsorted(problem.class_starts, np.arange(90), side="right")
    for i in range(90):
        reach = squared[i, problem.targets[i]].max() + problem.margin
        inside = np.flatnonzero((classes != classes[i]) & (squared[i] < reach))
        assert sorted(every.rows[every.of == i]) == inside.tolist()
        two = inside[np.argsort(squared[i, inside])[:2]]
        assert sorted(nearest.rows[nearest.of == i]) == sorted(two)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_over_all_rows_falls_from_step_to_step(seed):
    problem = make_problem(data=make_blobs(n_rows=90, seed=seed))
    found = list(states_of(steps(problem, np.eye(6), max_iter=200, tol=1e-6)))
    losses = [plain_loss(problem, state.components) for state in found]
    assert len(losses) > 3
    assert np.all(np.diff(losses) <= 1e-9 * losses[0])
    np.testing.assert_allclose(losses, [state.at.loss for state in found])
    assert losses[-1] < losses[0] / 2
