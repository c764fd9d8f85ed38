import image_like
import numpy as np
import pytest
from image_like import make_image_like


def test_a_row_is_its_latent_example_and_distortion_of_mean_zero():
    made = make_image_like(20_000, 32, 4, 3, distortion=1.0, noise=0.5, mislabelled=0)
    np.testing.assert_array_equal(made.y, made.latent_labels[made.memberships])
    distortion = made.X - made.latent_examples[made.memberships]
    np.testing.assert_allclose(distortion.mean(axis=0), 0, atol=0.02)
    assert np.square(distortion).sum(axis=1).mean() == pytest.approx(1.0 + 0.25, rel=0.03)
    spectrum = np.linalg.eigvalsh(np.cov(distortion.T))[::-1]
    assert spectrum[0] > 10 * spectrum[6], "strong in few directions"
    assert spectrum[-1] == pytest.approx(0.25 / 32, rel=0.15), "and equal in the rest"


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_siblings_share_their_own_distortion_and_all_classes_the_rest(shared):
    """Two covariances overlap by 1 if they are alike, by 0 if they have no direction in common."""
    made = make_image_like(
        40_000, 64, 10, 2, decay=0.0, distortion=1.0, shared_distortion=shared, noise=0.1,
        mislabelled=0,
    )  # fmt: skip
    distortion = made.X - made.latent_examples[made.memberships]
    found = np.array([np.cov(distortion[made.y == code].T) for code in range(10)])
    found /= np.linalg.norm(found, axis=(1, 2), keepdims=True)
    overlap = np.einsum("aij,bij->ab", found, found)
    siblings = overlap > 0.9
    assert np.all(siblings.sum(axis=1) == (10 if shared else image_like.SIBLINGS))
    assert np.all(overlap[~siblings] < 0.6)


def test_classes_are_of_equal_size_latents_are_not_and_some_labels_are_wrong():
    made = make_image_like(5_000, 16, 10, 6, mislabelled=0.1)
    true = made.latent_labels[made.memberships]
    assert np.bincount(true).tolist() == [500] * 10
    sizes = np.bincount(made.memberships, minlength=60).reshape(10, 6)
    assert (sizes.max(axis=1) > 1.5 * sizes.min(axis=1)).mean() > 0.7
    assert np.mean(made.y != true) == pytest.approx(0.09, abs=0.01)


def test_classes_of_a_group_are_similar():
    latents = make_image_like(1000, 64, 100, 1).latent_examples
    squared = np.square(latents[:, None] - latents[None]).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    others = np.where(np.isfinite(squared), squared, np.nan)
    assert np.nanmean(squared.min(axis=1)) < 0.85 * np.nanmean(others)


def test_rows_on_disk_equal_those_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(image_like, "CHUNK_ROWS", 100)
    shared = {"shared_distortion": 0.3, "random_state": 7}
    inside = make_image_like(333, 8, 3, 2, **shared)
    path = tmp_path / "rows.npy"
    outside = make_image_like(333, 8, 3, 2, **shared, out=path)
    np.testing.assert_array_equal(outside.X, inside.X)
    np.testing.assert_array_equal(outside.y, inside.y)
    np.testing.assert_array_equal(np.load(path), inside.X)
    assert isinstance(outside.X, np.memmap)
    assert list(tmp_path.iterdir()) == [path]
    assert not np.array_equal(make_image_like(333, 8, 3, 2, random_state=8).X, inside.X)
