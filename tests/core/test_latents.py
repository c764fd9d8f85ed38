"""Alg. 1 against plain functions that read like the paper."""

import numpy as np
import pytest
from helpers import one_class
from scipy.optimize import minimize

from latentmetric.core import classes as classes_module
from latentmetric.core.latents import (
    START_SHIFT,
    Members,
    draw_starts,
    latents_near,
    refill_empty,
    settle,
)
from latentmetric.core.metric import Metric


def nearest(points, latents):
    return np.argmin(np.square(points[:, None] - latents[None]).sum(axis=2), axis=1)


def from_mean(rows):
    """Rows centred on the mean of the class, as in Alg. 1."""
    return rows - rows.mean(axis=0)


def members_of(rows, assignment, start, latent_reg):
    members = Members(len(rows), start, latent_reg)
    members.reassign(slice(0, len(rows)), rows, assignment)
    return members


def places(rows, assignment, start, latent_reg):
    return members_of(rows, assignment, start, latent_reg).means()


def eq_5(points, latents, start, assignment, latent_reg):
    within = np.square(points - latents[assignment]).sum()
    return within + latent_reg * np.square(latents - start).sum()


def alg_1(rows, start, factor, latent_reg=0.0, max_passes=100):
    return settle(one_class(rows), start, Metric(factor), latent_reg, max_passes)


def started(rows, n_latents, init, generator, drawing_order=None):
    (start,) = draw_starts([len(rows)], [n_latents], init, generator)
    of_class = one_class(rows, drawing_order)
    return latents_near(of_class, of_class.drawing_order[start])


@pytest.mark.parametrize("latent_reg", [0.0, 0.7, 25.0])
def test_the_closed_form_is_the_numerical_minimum_of_eq_5(rng, latent_reg):
    rows, start = rng.standard_normal((12, 3)), rng.standard_normal((4, 3))
    assignment = np.arange(12) % 4
    factor = rng.standard_normal((3, 3))

    def value(flat):
        under = flat.reshape(4, 3) @ factor.T
        return eq_5(rows @ factor.T, under, start @ factor.T, assignment, latent_reg)

    found = minimize(value, start.ravel(), method="BFGS", options={"gtol": 1e-10})
    moved = places(rows, assignment, start, latent_reg)
    np.testing.assert_allclose(moved, found.x.reshape(4, 3), atol=1e-5)
    assert value(moved.ravel()) <= found.fun + 1e-9


@pytest.mark.parametrize("latent_reg", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_no_step_raises_the_surrogate(seed, latent_reg):
    generator = np.random.default_rng(seed)
    points = from_mean(generator.standard_normal((60, 3)))
    start = np.concatenate((points[:6], points[:2], 9 + generator.standard_normal((2, 3))))
    latents, assignment = start, nearest(points, start)
    values = [eq_5(points, latents, start, assignment, latent_reg)]
    for _ in range(15):
        latents = places(points, assignment, start, latent_reg)
        values.append(eq_5(points, latents, start, assignment, latent_reg))
        members = members_of(points, nearest(points, latents), start, latent_reg)
        refill_empty(one_class(points), latents, Metric(np.eye(3)), members)
        assignment = members.assignment
        values.append(eq_5(points, members.means(), start, assignment, latent_reg))
    assert values[-1] < values[0]
    assert np.all(np.diff(values) <= 1e-9 * values[0])


@pytest.mark.parametrize(("latent_reg", "expected"), [(0.0, [0, 0, 1, 0]), (1.0, [0, 0, 0, 0])])
def test_an_empty_latent_takes_the_farthest_row_if_that_gains(latent_reg, expected):
    points = from_mean(np.array([[0.0], [1.0], [10.0], [0.5]]))
    latents = points.min() + np.array([[0.5], [100.0]])
    members = members_of(points, np.zeros(4, int), latents, latent_reg)
    refill_empty(one_class(points), latents, Metric(np.eye(1)), members)
    assert members.assignment.tolist() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [200, 40])
def test_alg_1_stops_at_a_fixed_point_and_reports_its_spread(rng, dtype, n_rows, monkeypatch):
    features = 200 if n_rows == 40 else 5
    rows = rng.standard_normal((n_rows, features)).astype(dtype)
    factor = rng.standard_normal((3, features)).astype(dtype)
    start = rows[:20]
    found = alg_1(rows, start, factor, 0.3, max_passes=1000)
    assert found.passes < 1000
    assert found.latents.dtype == dtype
    points, latents = rows @ factor.T, found.latents @ factor.T
    np.testing.assert_array_equal(nearest(points, latents), found.assignment)
    spread = np.square(points - latents[found.assignment]).sum(axis=1).mean()
    assert found.spread == pytest.approx(spread, rel=1e-4)
    assert one_class(rows).has_scatter == (n_rows == 200)
    expected = places(rows, found.assignment, start, 0.3)
    np.testing.assert_allclose(found.latents, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("block_rows", [7, 64, 1000])
def test_alg_1_agrees_with_plain_k_means_however_rows_are_read(rng, monkeypatch, block_rows):
    monkeypatch.setattr(classes_module, "CLASS_BLOCK_BYTES", block_rows * 4 * 8)
    rows = rng.standard_normal((100, 4))
    latents, previous_labels = rows[:8], None
    while True:
        labels = nearest(rows, latents)
        if np.array_equal(labels, previous_labels):
            break
        latents = np.array([rows[labels == cluster].mean(axis=0) for cluster in range(8)])
        previous_labels = labels
    found = alg_1(rows, rows[:8], np.eye(4))
    assert len(one_class(rows).blocks) == -(-100 // block_rows)
    np.testing.assert_allclose(found.latents, latents, rtol=1e-12)
    np.testing.assert_array_equal(found.assignment, labels)


@pytest.mark.parametrize("offset", [0, 1e3, 3e4])
@pytest.mark.parametrize("within", [False, True])
def test_groups_far_apart_keep_the_differences_of_their_rows(rng, offset, within):
    rows = rng.standard_normal((300, 4)).astype(np.float32)
    # The sum is rounded to float32, so that both dtypes start from the same rows.
    rows[:, 0] += np.float32(offset) * (np.arange(300) % 2 if within else 1)
    exact = alg_1(rows.astype(np.float64), rows[:20].astype(np.float64), np.eye(4))
    found = alg_1(rows, rows[:20], np.eye(4, dtype=np.float32))
    np.testing.assert_array_equal(found.assignment, exact.assignment)
    assert found.spread == pytest.approx(exact.spread, rel=1e-3)


@pytest.mark.parametrize("init", ["random", "spaced"])
def test_latents_start_near_distinct_rows(rng, init):
    rows = np.concatenate((np.zeros((5, 2)), rng.standard_normal((10, 2))))
    start = started(rows, 15, init, rng)
    expected = rows + START_SHIFT * (rows.mean(axis=0) - rows)
    np.testing.assert_allclose(np.sort(start, axis=0), np.sort(expected, axis=0))
    small = started(rows.astype("f4"), 3, init, rng)
    assert small.dtype == np.float32
