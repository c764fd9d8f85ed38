import numpy as np
import pytest
from scipy.optimize import minimize

from latentmetric.core.distances import References, search
from latentmetric.core.latents import (
    START_SHARE,
    Nearest,
    first_latents,
    move,
    objective,
    refill_empty,
    update_latents,
)


def nearest(points, latents):
    return search(points, References.of(latents), 1)[1][:, 0]


@pytest.mark.parametrize("latent_reg", [0.0, 0.7, 25.0])
def test_the_closed_form_is_the_numerical_minimum_of_eq_5(rng, latent_reg):
    rows, previous = rng.standard_normal((12, 3)), rng.standard_normal((4, 3))
    assignment = np.arange(12) % 4
    factor = rng.standard_normal((3, 3))

    def eq_5(flat):
        latents = flat.reshape(4, 3)
        within = np.square((rows - latents[assignment]) @ factor.T).sum()
        return within + latent_reg * np.square((latents - previous) @ factor.T).sum()

    found = minimize(eq_5, previous.ravel(), method="BFGS", options={"gtol": 1e-10})
    moved = move(rows, assignment, previous, latent_reg)
    np.testing.assert_allclose(moved, found.x.reshape(4, 3), atol=1e-5)
    assert eq_5(moved.ravel()) <= found.fun + 1e-9


@pytest.mark.parametrize("latent_reg", [0.0, 1.0])
def test_a_latent_without_rows_stays(rng, latent_reg):
    previous = rng.standard_normal((3, 2))
    moved = move(rng.standard_normal((5, 2)), np.array([0, 0, 2, 2, 2]), previous, latent_reg)
    np.testing.assert_array_equal(moved[1], previous[1])


@pytest.mark.parametrize("latent_reg", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_surrogate_never_rises(seed, latent_reg):
    generator = np.random.default_rng(seed)
    points = generator.standard_normal((60, 3))
    start = np.concatenate((points[:6], points[:2], 9 + generator.standard_normal((2, 3))))
    latents, assignment = start, nearest(points, start)
    values = [objective(points, latents, start, assignment, latent_reg)]
    for _ in range(15):
        latents = move(points, assignment, start, latent_reg)
        values.append(objective(points, latents, start, assignment, latent_reg))
        refilled = refill_empty(points, latents, start, nearest(points, latents), latent_reg)
        assignment = refilled
        after_move = move(points, assignment, start, latent_reg)
        values.append(objective(points, after_move, start, assignment, latent_reg))
    assert values[-1] < values[0]
    assert np.all(np.diff(values) <= 1e-9 * values[0])


def test_an_empty_latent_takes_the_row_that_is_worst_served():
    points = np.array([[0.0], [1.0], [10.0], [0.5]])
    latents = np.array([[0.5], [100.0]])
    assert refill_empty(points, latents, latents, np.zeros(4, int), 0.0).tolist() == [0, 0, 1, 0]


def test_an_empty_latent_stays_where_moving_would_cost_more_than_it_gains():
    points = np.array([[0.0], [1.0], [10.0], [0.5]])
    latents = np.array([[0.5], [100.0]])
    assert refill_empty(points, latents, latents, np.zeros(4, int), 1.0).tolist() == [0, 0, 0, 0]


def test_refilling_never_empties_another(rng):
    points = np.array([[0.0], [50.0], [51.0]])
    latents = np.array([[5.0], [50.5], [900.0], [901.0]])
    refilled = refill_empty(points, latents, latents, np.array([0, 1, 1]), 0.0)
    assert refilled[0] == 0
    assert np.bincount(refilled, minlength=2)[1] >= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_alg_1_stops_at_a_fixed_point_and_reports_its_spread(rng, dtype):
    rows = rng.standard_normal((200, 5)).astype(dtype)
    factor = rng.standard_normal((3, 5)).astype(dtype)
    moved, found = update_latents(rows, rows[:20], factor, 0.3, max_passes=1000)
    assert found.passes < 1000
    assert moved.dtype == dtype
    points, latents = rows @ factor.T, moved @ factor.T
    np.testing.assert_array_equal(nearest(points, latents), found.assignment)
    spread = np.square(points - latents[found.assignment]).sum(axis=1).mean()
    assert found.spread == pytest.approx(spread, rel=1e-4)
    np.testing.assert_array_equal(moved, move(rows, found.assignment, rows[:20], 0.3))


def test_alg_1_agrees_with_plain_k_means(rng):
    rows = rng.standard_normal((100, 4))
    latents, previous_labels = rows[:8], None
    while True:
        labels = np.argmin(np.square(rows[:, None] - latents[None]).sum(axis=2), axis=1)
        if np.array_equal(labels, previous_labels):
            break
        latents = np.array([rows[labels == cluster].mean(axis=0) for cluster in range(8)])
        previous_labels = labels
    moved, found = update_latents(rows, rows[:8], np.eye(4), 0.0, max_passes=100)
    np.testing.assert_allclose(moved, latents, rtol=1e-12)
    np.testing.assert_array_equal(found.assignment, labels)


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_latents_start_near_distinct_rows(rng, init):
    rows = np.concatenate((np.zeros((5, 2)), rng.standard_normal((10, 2))))
    start = first_latents(rows, 15, init, rng)
    expected = rows + START_SHARE * (rows.mean(axis=0) - rows)
    np.testing.assert_allclose(np.sort(start, axis=0), np.sort(expected, axis=0))
    assert start.astype(np.float32).dtype == first_latents(rows.astype("f4"), 3, init, rng).dtype


@pytest.mark.parametrize("latent_reg", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_alg_1_lowers_the_surrogate_with_every_pass_it_is_given(seed, latent_reg):
    generator = np.random.default_rng(seed)
    points = generator.standard_normal((60, 3))
    start = np.concatenate((points[:6], points[:2], 9 + generator.standard_normal((2, 3))))
    values = []
    for passes in range(1, 15):
        latents, found = update_latents(points, start, np.eye(3), latent_reg, passes)
        values.append(objective(points, latents, start, found.assignment, latent_reg))
    assert values[-1] < values[0]
    assert np.all(np.diff(values) <= 1e-9 * values[0])


def test_alg_1_leaves_no_latent_empty_where_rows_are_left():
    points = np.random.default_rng(0).standard_normal((60, 3))
    far = np.concatenate((points[:6], 100 + points[:4]))
    _, found = update_latents(points, far, np.eye(3), 0.0, max_passes=100)
    assert np.bincount(found.assignment, minlength=10).min() >= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_endless_pull_keeps_every_latent_in_its_place(rng, dtype):
    rows = rng.standard_normal((30, 3)).astype(dtype)
    latents, _ = update_latents(rows, rows[:4] + 1, np.eye(3, dtype=dtype), 1e39, max_passes=5)
    np.testing.assert_allclose(latents, rows[:4] + 1, rtol=1e-6)


def test_k_means_plus_plus_spreads_its_start():
    centres = np.array([[0.0, 0], [100, 0], [0, 100], [100, 100]])
    for seed in range(10):
        generator = np.random.default_rng(seed)
        rows = np.repeat(centres, 50, axis=0) + generator.standard_normal((200, 2))
        start = first_latents(rows, 4, "k-means++", generator)
        assert len(np.unique(np.round(start / 100), axis=0)) == 4


def test_moving_some_gives_them_the_places_that_moving_all_does(rng):
    points, previous = rng.standard_normal((50, 3)), rng.standard_normal((9, 3))
    assignment = rng.integers(0, 8, 50)
    which = np.array([1, 4, 8])
    everyone = move(points, assignment, previous, 0.2)
    np.testing.assert_array_equal(move(points, assignment, previous, 0.2, which), everyone[which])


@pytest.mark.parametrize("share_that_moves", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("step", [0.01, 1.0])
def test_nearest_after_a_move_is_what_a_full_search_finds(rng, share_that_moves, step):
    points, latents = rng.standard_normal((300, 4)), rng.standard_normal((40, 4))
    kept = Nearest.of(points, latents)
    for _ in range(5):
        moving = rng.random(40) < share_that_moves
        latents = latents + step * moving[:, None] * rng.standard_normal((40, 4))
        kept, full = kept.after(points, latents), Nearest.of(points, latents)
        np.testing.assert_array_equal(kept.latent, full.latent)
        np.testing.assert_allclose(kept.distance, full.distance, rtol=1e-9, atol=1e-9)
