import numpy as np
import pytest

from latentmetric import OASIS, Euclidean
from latentmetric.datasets import IMAGENET, image_like, make_image_like


def test_a_row_is_its_latent_example_and_distortion_of_mean_zero():
    made = make_image_like(20_000, 32, 4, 3, distortion=1.0, noise=0.5, mislabelled=0)
    np.testing.assert_array_equal(made.y, made.latent_labels[made.memberships])
    distortion = made.X - made.latent_examples[made.memberships]
    np.testing.assert_allclose(distortion.mean(axis=0), 0, atol=0.02)
    assert np.square(distortion).sum(axis=1).mean() == pytest.approx(1.0 + 0.25, rel=0.03)
    spectrum = np.linalg.eigvalsh(np.cov(distortion.T))[::-1]
    assert spectrum[0] > 10 * spectrum[6], "strong in few directions"
    assert spectrum[-1] == pytest.approx(0.25 / 32, rel=0.15), "and equal in the rest"


def covariances_by_class(made):
    """The covariance of each class's distortion."""
    distortion = made.X - made.latent_examples[made.memberships]
    return np.array([np.cov(distortion[made.y == code].T) for code in np.unique(made.y)])


def overlap(one, other):
    """1 if two covariances have the same directions and strengths, 0 if no direction in common."""
    return np.sum(one * other) / np.linalg.norm(one) / np.linalg.norm(other)


def test_siblings_share_their_own_distortion_and_other_classes_do_not():
    made = make_image_like(
        40_000, 64, 10, 2, decay=0.0, distortion=1.0, shared_distortion=0.0, noise=0.1,
        mislabelled=0,
    )  # fmt: skip
    found = covariances_by_class(made)
    alike = np.array([[overlap(one, other) for other in found] for one in found])
    siblings = alike > 0.9
    assert np.all(siblings.sum(axis=1) == image_like.SIBLINGS)
    assert np.all(alike[~siblings] < 0.6)
    lengths = np.trace(found, axis1=1, axis2=2)
    np.testing.assert_allclose(lengths.mean(), 1.0 + 0.01, rtol=0.2)
    spectrum = np.linalg.eigvalsh(found[0])[::-1]
    assert spectrum[image_like.OWN_DIRECTIONS - 1] > 20 * spectrum[image_like.OWN_DIRECTIONS]


def test_a_shared_distortion_is_the_same_in_all_classes():
    made = make_image_like(40_000, 64, 10, 2, distortion=1.0, noise=0.1, mislabelled=0)
    found = covariances_by_class(made)
    assert min(overlap(one, other) for one in found for other in found) > 0.95


def test_no_metric_from_random_triplets_helps_if_the_distortion_differs():
    hard = {"decay": 0.2, "distortion": 2.0, "shared_distortion": 0.1, "noise": 1.2}
    kind = {"distortion": 0.42, "noise": 0.5}
    gains = []
    for parameters in (hard, kind):
        made = make_image_like(8_000, 32, 80, 2, **parameters)
        X, y, queries, labels = made.X[:6_000], made.y[:6_000], made.X[6_000:], made.y[6_000:]
        euclid = 1 - Euclidean().fit(X, y).score(queries, labels)
        learned = OASIS(psd=True, n_steps=30_000, aggressiveness=0.1, random_state=0).fit(X, y)
        gains.append((1 - learned.score(queries, labels)) / euclid)
    assert gains[0] > 0.95
    assert gains[1] < 0.85


def test_latents_of_a_class_have_unequal_sizes_and_classes_equal_ones():
    made = make_image_like(5_000, 16, 10, 6, mislabelled=0)
    assert np.bincount(made.y).tolist() == [500] * 10
    sizes = np.bincount(made.memberships, minlength=60).reshape(10, 6)
    assert (sizes.max(axis=1) > 1.5 * sizes.min(axis=1)).mean() > 0.7


def test_classes_of_a_group_are_similar():
    latents = make_image_like(1000, 64, 100, 1).latent_examples
    squared = np.square(latents[:, None] - latents[None]).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    others = np.where(np.isfinite(squared), squared, np.nan)
    assert np.nanmean(squared.min(axis=1)) < 0.85 * np.nanmean(others)


def test_the_share_of_wrong_labels_is_about_right():
    made = make_image_like(20_000, 8, 10, 2, mislabelled=0.1)
    wrong = np.mean(made.y != made.latent_labels[made.memberships])
    assert wrong == pytest.approx(0.09, abs=0.01)


@pytest.mark.parametrize("shared_distortion", [0.3, 1.0])
def test_rows_on_disk_equal_those_in_memory(tmp_path, monkeypatch, shared_distortion):
    monkeypatch.setattr(image_like, "CHUNK_ROWS", 100)
    shared = {"shared_distortion": shared_distortion, "random_state": 7}
    inside = make_image_like(333, 8, 3, 2, **shared)
    path = tmp_path / "rows.npy"
    outside = make_image_like(333, 8, 3, 2, **shared, out=path)
    np.testing.assert_array_equal(outside.X, inside.X)
    np.testing.assert_array_equal(outside.y, inside.y)
    np.testing.assert_array_equal(np.load(path), inside.X)
    assert isinstance(outside.X, np.memmap)
    assert list(tmp_path.iterdir()) == [path]
    assert not np.array_equal(make_image_like(333, 8, 3, 2, random_state=8).X, inside.X)


def test_an_interrupted_file_is_not_left_behind(tmp_path, monkeypatch):
    def interrupted(*arguments):
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(image_like, "_chunks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_image_like(100, 8, 3, 2, out=tmp_path / "rows.npy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1, got 0"),
        ({"n_samples": 3, "n_classes": 5}, "n_samples=3 is less than n_classes=5"),
        ({"shared_distortion": 1.5}, "shared_distortion must be at least 0 and at most 1, got 1.5"),
        ({"decay": -1}, "decay must be at least 0, got -1"),
        ({"mislabelled": 1.5}, "mislabelled must be at least 0 and at most 1, got 1.5"),
    ],
)
def test_bad_sizes_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_image_like(**wrong)


def test_the_preset_has_the_size_of_imagenet():
    assert IMAGENET["n_samples"] - image_like.IMAGENET_TEST_ROWS == 1_281_167
