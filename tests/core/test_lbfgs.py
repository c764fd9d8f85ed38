from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from latentmetric.core.lbfgs import InverseHessian, descend


@dataclass(frozen=True)
class Value:
    loss: float
    gradient: np.ndarray


def uneven_bowl(point):
    """½ Σ aᵢⱼ (xᵢⱼ − 1)², with a from 1 to 100; the minimum is at ones."""
    weights = np.logspace(0, 2, point.size, dtype=point.dtype).reshape(point.shape)
    return Value(float((weights * (point - 1) ** 2).sum() / 2), weights * (point - 1))


def rosenbrock(point):
    x, y = point[0]
    gradient = np.array([[-400 * x * (y - x * x) - 2 * (1 - x), 200 * (y - x * x)]])
    return Value(100 * (y - x * x) ** 2 + (1 - x) ** 2, gradient)


def follow(evaluate, point, n_descents, curvature, n_iterations=1):
    losses = [evaluate(point).loss]
    for _ in range(n_descents):
        point, _ = descend(evaluate, point, evaluate(point), curvature, n_iterations)
        losses.append(evaluate(point).loss)
    return point, losses


def test_a_bent_valley_is_followed_and_the_loss_falls_at_every_step():
    point, losses = follow(rosenbrock, np.array([[-1.2, 1.0]]), 80, InverseHessian())
    np.testing.assert_allclose(point, 1, atol=1e-4)
    assert np.all(np.diff(losses) <= 0)


def test_the_direction_is_that_of_the_dense_update(rng):
    """The inverse Hessian of BFGS built as a matrix from the same steps."""
    steps = rng.standard_normal((3, 2, 3))
    curved = np.diag(np.arange(1.0, 7))
    changes = (steps.reshape(3, 6) @ curved).reshape(steps.shape)
    curvature = InverseHessian(n_corrections=3)
    for step, change in zip(steps, changes, strict=True):
        curvature.learn(step, change)
    last_step, last_change = steps[-1].ravel(), changes[-1].ravel()
    dense = np.eye(6) * (last_step @ last_change) / (last_change @ last_change)
    for step, change in zip(steps.reshape(3, 6), changes.reshape(3, 6), strict=True):
        share = 1 / (step @ change)
        left = np.eye(6) - share * np.outer(step, change)
        dense = left @ dense @ left.T + share * np.outer(step, step)
    gradient = rng.standard_normal((2, 3))
    found = curvature.direction(Value(1.0, gradient))
    np.testing.assert_allclose(found.ravel(), -dense @ gradient.ravel())


def test_as_good_as_scipy_after_as_many_iterations():
    start = np.zeros((3, 4))
    _, losses = follow(uneven_bowl, start, 30, InverseHessian(n_corrections=5))
    oracle = minimize(
        lambda flat: (uneven_bowl(flat).loss, uneven_bowl(flat).gradient),
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 30, "maxcor": 5, "ftol": 0, "gtol": 0},
    )
    assert losses[-1] <= 10 * oracle.fun


def test_a_descent_ends_when_the_loss_is_halved():
    start = np.zeros((3, 4))
    point, made = descend(uneven_bowl, start, uneven_bowl(start), InverseHessian(), 1000)
    assert uneven_bowl(point).loss <= uneven_bowl(start).loss / 2
    assert made < 1000
    short, _ = descend(uneven_bowl, start, uneven_bowl(start), InverseHessian(), made - 1)
    assert uneven_bowl(short).loss > uneven_bowl(start).loss / 2 or made == 1
