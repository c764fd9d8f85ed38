import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix

from latentmetric import OASIS, Euclidean, MaPML
from latentmetric.viz import (
    plot_convergence,
    plot_errors_by_class,
    plot_latent_examples,
    plot_latents,
    plot_spectrum,
)


@pytest.fixture(autouse=True)
def _no_window(monkeypatch):
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def fitted():
    generator = np.random.default_rng(0)
    y = np.repeat(["_a", r"$\b$", "c_$"], 80)
    X = generator.standard_normal((240, 5))
    X[:, :2] += np.repeat([[0, 0], [3, 0], [0, 3]], 80, axis=0)
    model = MaPML(max_iter=3, n_steps=500, early_stopping=True, random_state=0)
    return model.fit(X, y), X, y


def test_the_curve_shows_the_history(fitted):
    model, _, _ = fitted
    ax = plot_convergence(model)
    objective = ax.lines[0]
    assert objective.get_ydata().tolist() == [r["objective"] for r in model.history_[:4]]
    errors = [r["validation_error"] for r in model.history_]
    twin = next(other for other in ax.figure.axes if other is not ax)
    np.testing.assert_allclose(twin.lines[0].get_ydata(), 100 * np.array(errors))
    assert line_called("kept", ax).get_xdata()[0] == model.best_iter_
    assert line_called("refinement begins", ax).get_xdata()[0] == 3.5
    assert ax.get_xticks().tolist() == list(range(5))


def line_called(name, ax):
    return next(line for line in ax.lines if line.get_label() == name)


def test_another_quantity_and_a_fit_without_refinement_are_drawn(fitted):
    _, X, y = fitted
    model = MaPML(max_iter=1, n_steps=200, refine=1, random_state=0).fit(X, y)
    _, given = pyplot.subplots()
    ax = plot_convergence(model, given, quantity="loss")
    assert ax is given
    assert ax.lines[0].get_ydata().tolist() == [r["loss"] for r in model.history_]
    twin = next(other for other in ax.figure.axes if other is not ax)
    assert (ax.get_ylabel(), twin.get_ylabel()) == ("loss", "leave-one-out error, %")
    ax = plot_convergence(MaPML.as_published(max_iter=2, n_steps=200).fit(X, y))
    assert [line.get_label() for line in ax.lines] == ["objective", "kept"]
    values = np.linalg.eigvalsh(model.get_mahalanobis_matrix())[::-1]
    np.testing.assert_allclose(plot_spectrum(model).lines[0].get_ydata(), values, rtol=1e-6)


def test_what_cannot_be_drawn_is_refused(fitted, monkeypatch):
    model, X, y = fitted
    with pytest.raises(ValueError, match="Euclidean records no objective"):
        plot_convergence(Euclidean().fit(X, y))
    with pytest.raises(ValueError, match="psd=True"):
        plot_spectrum(OASIS(psd=False, n_steps=50, random_state=0).fit(X, y))
    with pytest.raises(ValueError, match=r"'z'; it knows 3 classes"):
        plot_errors_by_class(model, X, np.where(y == "_a", "z", y))
    with pytest.raises(ValueError, match="belong together"):
        plot_latents(model, X)
    with pytest.raises(ValueError, match="7 pixels, but the model has 5"):
        plot_latent_examples(model, X, y, (7, 1))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install .*matplotlib"):
        plot_spectrum(model)


def test_errors_by_class_agree_with_the_confusion_matrix(fitted):
    model, X, y = fitted
    ax = plot_errors_by_class(model, X, y)
    matrix = confusion_matrix(y, model.predict(X))
    shares = dict(
        zip(model.classes_, 100 * (1 - np.diag(matrix) / matrix.sum(axis=1)), strict=True)
    )
    drawn = [bar.get_width() for bar in ax.patches]
    names = [text.get_text() for text in ax.get_yticklabels()]
    np.testing.assert_allclose(drawn, [shares[name] for name in names])
    assert drawn == sorted(drawn)
    ax.figure.canvas.draw()  # a label with a dollar sign is text, not mathematics
    assert len(plot_errors_by_class(model, X, y, n_classes=2).patches) == 2


def test_the_map_is_a_projection_of_the_learned_space(fitted):
    model, X, y = fitted
    ax = plot_latents(model, X, y)
    rows, latents = ax.collections[:3], ax.collections[3:]
    assert [len(points.get_offsets()) for points in rows] == [80, 80, 80]
    drawn = np.concatenate([points.get_offsets() for points in latents])
    learned = pdist(model.transform(model.latent_examples_)) / model.model_.coordinates.scale
    assert np.all(pdist(drawn) <= learned * (1 + 1e-6))
    own = [np.mean(cdist(points.get_offsets(), points.get_offsets())) for points in latents]
    assert max(own) < np.mean(cdist(drawn, drawn))
    ax.figure.canvas.draw()
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == model.classes_.tolist()


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return MaPML(n_steps=100, max_iter=1, random_state=0).fit(X, y), X, y


def test_each_latent_is_framed_and_drawn_beside_rows_of_its_class(digits):
    model, X, y = digits
    shape = {"n_originals": 4, "latents_per_class": 2, "columns": 1}
    figure = plot_latent_examples(model, X, y, (8, 8), **shape)
    drawn = [axis for axis in figure.axes if axis.images]
    images = [16 * np.asarray(axis.images[0].get_array()).ravel() for axis in drawn]
    assert [axis.axison for axis in drawn] == [True, False, False, False, False] * 20
    for index, label in enumerate(np.repeat(range(10), 2)):
        latent, *originals = images[5 * index : 5 * index + 5]
        nearest = cdist([latent], model.latent_examples_).ravel()
        assert nearest.min() < 1e-5
        assert model.latent_labels_[nearest.argmin()] == label
        assert (y[cdist(originals, X).argmin(axis=1)] == label).all()


def test_colour_images_data_frames_and_missing_classes_are_drawn(digits):
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.integers(0, 256, (60, 12)).astype(float)).rename(columns=str)
    y = np.arange(60) % 3
    model = MaPML(n_steps=10, max_iter=1).set_output(transform="pandas").fit(X, y)
    figure = plot_latent_examples(model, X[y != 1], y[y != 1], (2, 2, 3))
    shown = [np.asarray(axis.images[0].get_array()) for axis in figure.axes if axis.images]
    assert len(shown) == 2 * 6
    assert all(image.min() >= 0 and 0.2 < image.max() <= 1 for image in shown)
