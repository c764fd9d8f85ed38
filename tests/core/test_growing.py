"""Latent examples of classes that are new or gain rows, against plain k-means."""

import numpy as np
import pytest

from latentmetric.core.growing import ClassLatents, Growth, grow

FOREVER = Growth("random", 0.0, 100)


def classes_rows(rng, n_rows=300, n_features=6):
    centres = 4 * rng.standard_normal((5, n_features))
    return centres[rng.integers(0, 5, n_rows)] + rng.standard_normal((n_rows, n_features))


def own(rows, latents, components):
    gaps = (rows[:, None, :] - latents[None]) @ components.T
    return np.square(gaps).sum(axis=2)


@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("rank", [6, 3])
def test_latents_of_a_new_class_are_the_means_of_their_rows(rng, init, rank):
    rows, components = classes_rows(rng), rng.standard_normal((rank, 6))
    latents = grow(rows, components, ClassLatents.none(components), 20, Growth(init, 0.0, 100), rng)
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
        latents = grow(part, components, latents, 1, FOREVER, rng)
    np.testing.assert_allclose(latents.positions[0], rows.mean(axis=0), atol=1e-12)
    assert latents.counts.tolist() == [300]


def test_a_latent_without_new_rows_stays_where_it_is(rng):
    components = np.eye(2)
    places = np.array([[0.0, 1.0], [50.0, 1.0]])
    latents = ClassLatents(places, places, np.array([2.0, 2.0]), 1.0)
    more = grow(np.array([[0.0, 7.0]]), components, latents, 2, FOREVER, rng)
    np.testing.assert_allclose(more.positions, [[0, 3], [50, 1]])
    assert more.counts.tolist() == [3, 2]
    assert more.spread == pytest.approx((4 * 1 + 16) / 5)


def test_a_far_row_founds_a_latent_only_if_there_may_be_more(rng):
    components, rows = np.eye(2), np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    latents = grow(rows, components, ClassLatents.none(components), 1, FOREVER, rng)
    far = np.array([[900.0, 900.0], *rows.tolist()])
    two = grow(far, components, latents, 2, FOREVER, rng)
    assert two.counts.tolist() == [6, 1]
    np.testing.assert_array_equal(two.positions[1], far[0])
    assert len(grow(far, components, latents, 1, FOREVER, rng)) == 1


def test_rows_join_the_nearest_latent_less_the_uncertainty_of_its_place(rng):
    """A mean of c rows is off by spread/c, which makes rows farther from it by as much."""
    components, places = np.eye(1), np.array([[0.0], [10.0]])
    latents = ClassLatents(places, places, np.array([100.0, 1.0]), 20.0)
    rows = np.array([[3.9], [4.1], [4.6]])
    once = Growth("random", 0.0, 1)
    squared = np.square(rows - places.T) - 20.0 / latents.counts
    assert squared.argmin(axis=1).tolist() == [0, 1, 1]
    assert grow(rows, components, latents, 2, once, rng).counts.tolist() == [101, 3]
