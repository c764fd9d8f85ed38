import sys
from copy import copy

import numpy as np
import pytest
from matplotlib import pyplot
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import confusion_matrix

from latentmetric import OASIS, Euclidean, MaPML
from latentmetric.viz import plot_convergence, plot_errors_by_class, plot_latents, plot_spectrum


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
    assert ax.get_xticks().tolist() == list(range(7))


def line_called(name, ax):
    return next(line for line in ax.lines if line.get_label() == name)


def test_the_curve_shows_the_leave_one_out_error_and_loss(fitted):
    _, X, y = fitted
    model = MaPML(max_iter=2, n_steps=500, refine=1, random_state=0).fit(X, y)
    ax = plot_convergence(model, quantity="loss")
    assert ax.lines[0].get_ydata().tolist() == [r["loss"] for r in model.history_]
    assert ax.get_ylabel() == "loss"
    twin = next(other for other in ax.figure.axes if other is not ax)
    assert twin.get_ylabel() == "leave-one-out error, %"
    errors = [100 * r["loo_error"] for r in model.history_]
    np.testing.assert_allclose(twin.lines[0].get_ydata(), errors)


def test_without_refinement_nothing_marks_it(fitted):
    _, X, y = fitted
    ax = plot_convergence(MaPML.as_published(max_iter=2, n_steps=500).fit(X, y))
    assert [line.get_label() for line in ax.lines] == ["objective", "kept"]
    assert len(ax.figure.axes) == 1


def test_a_model_without_objective_has_no_curve(fitted):
    _, X, y = fitted
    with pytest.raises(ValueError, match="Euclidean records no objective"):
        plot_convergence(Euclidean().fit(X, y))
    with pytest.raises(ValueError, match="MaPML records no loss"):
        plot_convergence(MaPML.as_published(max_iter=0).fit(X, y), quantity="loss")


def test_the_spectrum_has_the_eigenvalues_of_the_metric(fitted):
    model, _, _ = fitted
    ax = plot_spectrum(model)
    values = np.linalg.eigvalsh(model.get_mahalanobis_matrix())[::-1]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), values, rtol=1e-6)


def test_a_similarity_has_no_spectrum(fitted):
    _, X, y = fitted
    with pytest.raises(ValueError, match="psd=True"):
        plot_spectrum(OASIS(psd=False, n_steps=50, random_state=0).fit(X, y))


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


def test_at_most_n_classes_are_drawn(fitted):
    model, X, y = fitted
    assert len(plot_errors_by_class(model, X, y, n_classes=2).patches) == 2


def test_unknown_labels_and_wrong_lengths_are_refused(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match=r"'z'; it knows 3 classes"):
        plot_errors_by_class(model, X, np.where(y == "_a", "z", y))
    with pytest.raises(ValueError, match="X has 240 rows, y has 10"):
        plot_errors_by_class(model, X, y[:10])
    with pytest.raises(ValueError, match="X has 240 rows, y has 10"):
        plot_latents(model, X, y[:10])
    with pytest.raises(ValueError, match="belong together"):
        plot_latents(model, X)


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


def test_plots_are_drawn_on_given_axes(fitted):
    model, X, y = fitted
    for draw in (
        lambda ax: plot_convergence(model, ax),
        lambda ax: plot_spectrum(model, ax),
        lambda ax: plot_latents(model, ax=ax),
        lambda ax: plot_errors_by_class(model, X, y, ax=ax),
    ):
        _, ax = pyplot.subplots()
        assert draw(ax=ax) is ax
        assert ax.has_data()


def test_without_matplotlib_the_error_names_the_extra(fitted, monkeypatch):
    model, _, _ = fitted
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"latentmetric\[plot\]"):
        plot_spectrum(model)


def test_a_metric_of_zeros_has_an_empty_spectrum(fitted):
    model = copy(fitted[0])
    model.components_ = np.zeros_like(model.components_)
    ax = plot_spectrum(model)
    assert ax.get_title() == f"rank 0 of {model.n_features_in_}, effective rank 0"
