import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from latentmetric import MaPML
from latentmetric.viz import plot_latent_examples


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return MaPML(n_steps=100, max_iter=1, random_state=0).fit(X, y), X, y


def test_each_latent_stands_beside_rows_of_its_own_class(digits):
    model, X, y = digits
    figure = plot_latent_examples(model, X, y, (8, 8), n_originals=4, latents_per_class=2)
    drawn = [axis for axis in figure.axes if axis.images]
    assert len(drawn) == 10 * 2 * (1 + 4)
    labels = []
    rows = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
    latents = {
        np.asarray(z).tobytes(): c
        for z, c in zip(model.latent_examples_, model.latent_labels_, strict=True)
    }
    for axis in drawn:
        image = np.asarray(axis.images[0].get_array()).ravel()
        if axis.axison:
            labels.append((latents[image.tobytes()], []))
    assert sorted(label for label, _ in labels) == sorted(list(range(10)) * 2)
    originals = [a for a in drawn if not a.axison]
    assert len({np.asarray(a.images[0].get_array()).tobytes() for a in originals}) == len(originals)
    assert all(np.asarray(a.images[0].get_array()).ravel().tobytes() in rows for a in originals)


def test_a_shape_that_does_not_fit_is_refused_with_both_numbers(digits):
    model, X, y = digits
    with pytest.raises(ValueError, match="63 pixels, but X has 64"):
        plot_latent_examples(model, X, y, (7, 9))


def test_without_matplotlib_it_names_the_extra(digits, monkeypatch):
    model, X, y = digits
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"latentmetric\[demo\]"):
        plot_latent_examples(model, X, y, (8, 8))
