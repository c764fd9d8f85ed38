import numpy as np
import pytest

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


def test_rows_on_disk_equal_those_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(image_like, "CHUNK_ROWS", 100)
    inside = make_image_like(333, 8, 3, 2, random_state=7)
    path = tmp_path / "rows.npy"
    outside = make_image_like(333, 8, 3, 2, random_state=7, out=path)
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
        ({"mislabelled": 1.5}, "mislabelled must be at least 0 and at most 1, got 1.5"),
    ],
)
def test_bad_sizes_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_image_like(**wrong)


def test_the_preset_has_the_size_of_imagenet():
    assert IMAGENET["n_samples"] - image_like.IMAGENET_TEST_ROWS == 1_281_167
