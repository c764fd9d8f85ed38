import sys

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from latentmetric import MaPML
from latentmetric.viz import plot_latent_examples


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return MaPML(n_steps=100, max_iter=1, random_state=0).fit(X, y), X, y


def images_of(figure):
    """(framed, pixels from 0 to 16) of every image, in the order of the axes."""
    drawn = [axis for axis in figure.axes if axis.images]
    return [(axis.axison, 16 * np.asarray(axis.images[0].get_array()).ravel()) for axis in drawn]


def test_each_latent_is_drawn_beside_rows_of_its_own_cluster(digits):
    model, X, y = digits
    figure = plot_latent_examples(
        model, X, y, (8, 8), n_originals=4, latents_per_class=2, columns=1
    )
    images = images_of(figure)
    assert len(images) == 10 * 2 * (1 + 4)
    labels = []
    for first in range(0, len(images), 5):
        strip = images[first : first + 5]
        assert [framed for framed, _ in strip] == [True, False, False, False, False]
        latent = int(np.argmin(cdist([strip[0][1]], model.latent_examples_)))
        np.testing.assert_allclose(strip[0][1], model.latent_examples_[latent], atol=1e-6)
        labels.append(int(model.latent_labels_[latent]))
        own = np.flatnonzero(model.latent_labels_ == labels[-1])
        for _, original in strip[1:]:
            row = int(np.argmin(cdist([original], X)))
            assert y[row] == labels[-1]
            to_latents = cdist(
                [X[row]],
                model.latent_examples_[own],
                "mahalanobis",
                VI=model.get_mahalanobis_matrix(),
            )
            assert own[np.argmin(to_latents)] == latent
    assert labels == [label for label in range(10) for _ in range(2)]


def test_colour_images_data_frames_and_missing_classes_are_drawn(digits):
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.integers(0, 256, (60, 12)).astype(float)).rename(columns=str)
    y = np.arange(60) % 3
    model = MaPML(n_steps=10, max_iter=1).set_output(transform="pandas").fit(X, y)
    figure = plot_latent_examples(model, X[y != 1], y[y != 1], (2, 2, 3))
    shown = [np.asarray(axis.images[0].get_array()) for axis in figure.axes if axis.images]
    assert len(shown) == 2 * 6
    assert all(image.min() >= 0 and 0.2 < image.max() <= 1 for image in shown)


def test_an_image_shape_that_does_not_fit_is_refused(digits):
    model, X, y = digits
    with pytest.raises(ValueError, match="63 pixels, but X has 64"):
        plot_latent_examples(model, X, y, (7, 9))


def test_without_matplotlib_the_error_names_the_extra(digits, monkeypatch):
    model, X, y = digits
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"latentmetric\[plot\]"):
        plot_latent_examples(model, X, y, (8, 8))
