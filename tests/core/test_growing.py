"""Latent examples of classes that are new or gain rows, against plain k-means and likelihoods."""

from dataclasses import replace

import numpy as np
import pytest

from latentmetric.core.growing import ClassLatents, Growth, Standing, grow, refine_new
from latentmetric.core.likelihood import leave_one_out_factors
from latentmetric.core.tuning import FEWEST_REFINED_ROWS, STAND_IN_SHARE

FOREVER = Growth(0.0, 100)


def classes_rows(rng, n_rows=300, n_features=6):
    centres = 4 * rng.standard_normal((5, n_features))
    return centres[rng.integers(0, 5, n_rows)] + rng.standard_normal((n_rows, n_features))


def own(rows, latents, components):
    gaps = (rows[:, None, :] - latents[None]) @ components.T
    return np.square(gaps).sum(axis=2)


@pytest.mark.parametrize("rank", [6, 3])
def test_latents_of_a_new_class_are_the_means_of_their_rows(rng, rank):
    rows, components = classes_rows(rng), rng.standard_normal((rank, 6))
    latents = grow(rows, rows @ components.T, ClassLatents.none(components), 20, FOREVER, rng)
    squared = own(rows, latents.positions, components)
    nearest = squared.argmin(axis=1)
    np.testing.assert_array_equal(np.bincount(nearest, minlength=20), latents.counts)
    for number in range(20):
        np.testing.assert_allclose(
            latents.positions[number], rows[nearest == number].mean(axis=0), atol=1e-12
        )
    np.testing.assert_allclose(latents.points, latents.positions @ components.T, atol=1e-12)
    assert latents.spread == pytest.approx(squared.min(axis=1).mean())


def test_rows_that_arrive_in_parts_move_a_latent_to_the_mean_of_all(rng):
    rows, components = classes_rows(rng), np.eye(6)
    latents = ClassLatents.none(components)
    for part in np.split(rows, 6):
        latents = grow(part, part @ components.T, latents, 1, FOREVER, rng)
    np.testing.assert_allclose(latents.positions[0], rows.mean(axis=0), atol=1e-12)
    assert latents.counts.tolist() == [300]


def test_a_latent_without_new_rows_stays_where_it_is(rng):
    places = np.array([[0.0, 1.0], [50.0, 1.0]])
    latents = ClassLatents(places, places, np.array([2.0, 2.0]), 1.0)
    row = np.array([[0.0, 7.0]])
    more = grow(row, row, latents, 2, FOREVER, rng)
    np.testing.assert_allclose(more.positions, [[0, 3], [50, 1]])
    assert more.counts.tolist() == [3, 2]
    assert more.spread == pytest.approx((4 * 1 + 16) / 5)


def test_a_far_row_founds_a_latent_only_if_there_may_be_more(rng):
    components, rows = np.eye(2), np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    latents = grow(rows, rows @ components.T, ClassLatents.none(components), 1, FOREVER, rng)
    far = np.array([[900.0, 900.0], *rows.tolist()])
    two = grow(far, far @ components.T, latents, 2, FOREVER, rng)
    assert two.counts.tolist() == [6, 1]
    np.testing.assert_array_equal(two.positions[1], far[0])
    assert len(grow(far, far @ components.T, latents, 1, FOREVER, rng)) == 1


def test_rows_join_the_nearest_latent_less_the_uncertainty_of_its_place(rng):
    """A mean of c rows is off by spread/c, which makes rows farther from it by as much."""
    components, places = np.eye(1), np.array([[0.0], [10.0]])
    latents = ClassLatents(places, places, np.array([100.0, 1.0]), 20.0)
    rows = np.array([[3.9], [4.1], [4.6]])
    once = Growth(0.0, 1)
    squared = np.square(rows - places.T) - 20.0 / latents.counts
    assert squared.argmin(axis=1).tolist() == [0, 1, 1]
    assert grow(rows, rows @ components.T, latents, 2, once, rng).counts.tolist() == [101, 3]


class TestRefineNew:
    """A new class beside three others, in a metric whose features differ in units."""

    T = 2.0

    @pytest.fixture
    def arriving(self, rng):
        units = np.array([1.0, 1.0, 1.0, 1e4, 1e-4])
        components = rng.standard_normal((4, 5)) / units
        places = units * (rng.standard_normal((9, 5)) + np.repeat(np.eye(3, 5), 3, axis=0))
        rows = units * (rng.standard_normal((60, 5)) + 0.5)
        points = places @ components.T
        shares = rng.dirichlet(np.ones(3), 3).ravel()
        standing = Standing(places, points, np.zeros((2, 9)), shares)
        latents = grow(rows, rows @ components.T, ClassLatents.none(components), 6, FOREVER, rng)
        return rows, components, latents, standing

    def refined(self, rows, components, before, *standing, n_iterations=20, weights=None):
        growth = Growth(0.0, 100, n_iterations=n_iterations, temperature=self.T, usual=5 * self.T)
        votes, points = np.zeros((2, len(before))), rows @ components.T
        return refine_new(rows, points, before, votes, list(standing), growth, weights)

    def loss(self, latents, rows, components, standing, weights, before):
        """The loss as the module's docstring has it: rows, and the others as rows of their own."""
        to_new = own(rows, latents.positions, components)
        squared = own(rows, before.positions, components)
        every, nearest = np.arange(len(rows)), squared.argmin(axis=1)
        counts = np.bincount(nearest, weights, minlength=len(latents))
        farther = leave_one_out_factors(counts[nearest], weights) - 1
        to_new[every, nearest] += farther * squared[every, nearest]
        votes = np.exp(-to_new / self.T).sum(axis=1)
        others = np.exp(-own(rows, standing.positions, components) / self.T).sum(axis=1)
        total = -np.average(np.log(votes / (votes + others)), weights=weights)
        places = standing.positions
        votes = np.exp(-own(places, latents.positions, components) / self.T).sum(axis=1)
        others = np.exp(-own(places, places, components) / self.T).sum(axis=1)
        weight = STAND_IN_SHARE * np.exp(5)
        return total - weight * standing.shares @ np.log(others / (votes + others))

    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_loss_falls_to_a_minimum(self, arriving, rng, weighted):
        rows, components, before, standing = arriving
        weights = rng.uniform(0.5, 2, len(rows)) if weighted else np.ones(len(rows))
        given = weights if weighted else None
        moved = self.refined(*arriving, n_iterations=200, weights=given)
        args = rows, components, standing, weights, before
        losses = [self.loss(latents, *args) for latents in (before, moved)]
        assert losses[1] < losses[0] - 0.1
        for _ in range(20):  # no other shift makes it lower
            shift = 0.05 * rng.standard_normal(4) @ np.linalg.pinv(components).T
            near = ClassLatents(moved.positions + shift, moved.points, moved.counts, 0.0)
            assert self.loss(near, *args) > losses[1] - 1e-3
        moves = moved.points - before.points
        np.testing.assert_allclose(moves, np.tile(moves[0], (6, 1)), atol=1e-9)
        np.testing.assert_allclose(moved.points, moved.positions @ components.T)
        np.testing.assert_array_equal(moved.counts, before.counts)
        squared = own(rows, moved.positions, components).min(axis=1)
        assert moved.spread == pytest.approx(np.average(squared, weights=weights))

    def test_latents_move_by_what_their_features_vary(self, arriving):
        rows, _, before, _ = arriving
        moved = self.refined(*arriving)
        moves = np.abs(moved.positions - before.positions).max(axis=0) / rows.std(axis=0)
        assert (moves > 0.01).all()
        assert (moves < 10).all()

    def test_more_dimensions_than_rows_change_nothing(self, arriving, rng):
        rows, components, before, standing = arriving
        turn = np.linalg.qr(rng.standard_normal((90, 4)))[0]
        wide = replace(before, points=before.points @ turn.T)
        others = replace(standing, points=standing.points @ turn.T)
        expected = self.refined(*arriving, n_iterations=3)
        moved = self.refined(rows, turn @ components, wide, others, n_iterations=3)
        np.testing.assert_allclose(moved.points @ turn, expected.points, atol=0.01)
        np.testing.assert_allclose(moved.points, moved.positions @ (turn @ components).T, atol=1e-6)

    @pytest.mark.parametrize("rank", [3, 200])
    @pytest.mark.parametrize("far", [1.0, 1e5])
    def test_rows_may_be_equal_or_far_in_float32(self, rng, rank, far):
        rows = np.repeat(rng.standard_normal((5, rank)), 8, axis=0).astype(np.float32)
        rows[0] *= far
        components = np.eye(rank, dtype=np.float32)
        before = grow(rows, rows, ClassLatents.none(components), 4, FOREVER, rng)
        standing = Standing.of(replace(before, points=before.points + 1), np.zeros((2, 4)))
        assert np.isfinite(self.refined(rows, components, before, standing).positions).all()

    def test_few_rows_stay_at_their_means(self, arriving, rng):
        rows, components, _, standing = arriving
        few = rows[: FEWEST_REFINED_ROWS - 1]
        before = grow(few, few @ components.T, ClassLatents.none(components), 2, FOREVER, rng)
        assert self.refined(few, components, before, standing) is before

    def test_a_row_far_away_leaves_the_others_exact_in_float32(self, rng):
        """The middle of the class is the origin: its mean may be far off all other rows."""
        rows = rng.standard_normal((60, 8))
        rows[0] = 1e5
        before = grow(rows, rows, ClassLatents.none(np.eye(8)), 6, FOREVER, rng)
        beside = rng.standard_normal((9, 8)) + 1
        shares = np.full(9, 1 / 9)
        moves = []
        for dtype in (np.float64, np.float32):
            near = Standing(beside.astype(dtype), beside.astype(dtype), np.zeros((2, 9)), shares)
            places = before.positions.astype(dtype)
            start = replace(before, positions=places, points=places)
            moved = self.refined(
                rows.astype(dtype), np.eye(8, dtype=dtype), start, near, n_iterations=200
            )
            moves.append((moved.points - start.points)[np.abs(places[:, 0]) < 1e4].mean(axis=0))
        assert np.abs(moves[0]).max() > 0.1
        np.testing.assert_allclose(moves[1], moves[0], atol=0.02)

    def test_where_rows_are_near_in_units_of_t_the_latents_stay(self, arriving):
        rows, components, before, standing = arriving
        growth = Growth(0.0, 100, n_iterations=20, temperature=self.T, usual=1.9 * self.T)
        votes, points = np.zeros((2, len(before))), rows @ components.T
        assert refine_new(rows, points, before, votes, [standing], growth) is before

    def test_far_others_change_nothing(self, arriving):
        """Alone, all labels are certain."""
        rows, components, before, standing = arriving
        far = replace(standing, points=standing.points + 1e3)
        moved = self.refined(rows, components, before, far)
        np.testing.assert_allclose(moved.points, before.points, atol=1e-9)

    def test_others_may_come_in_parts(self, arriving, monkeypatch):
        """The nearest of all of them stand in, whatever part they are in."""
        monkeypatch.setattr("latentmetric.core.growing.STAND_INS", 5)
        *given, standing = arriving
        parts = [
            Standing(
                standing.positions[some], standing.points[some], standing.votes[:, some],
                standing.shares[some],
            )
            for some in (slice(0, 6), slice(6, 9))
        ]  # fmt: skip
        whole, divided = self.refined(*given, standing), self.refined(*given, *parts)
        np.testing.assert_allclose(divided.points, whole.points)
        far = replace(standing, points=standing.points + 1e3)
        np.testing.assert_array_equal(self.refined(*given, far, standing).points, whole.points)
