"""The comparison of routers, on blobs: what is chosen, measured and reported."""

import numpy as np
import pytest
import router
from data import Split
from helpers import make_blobs

from latentmetric import MaPML

QUICK = ("MaPML", "logistic regression", "SetFit's head", "SVC", "cosine k-NN", "nearest centroid")


@pytest.fixture
def part(monkeypatch):
    """Four known classes of five; the model is quick."""
    monkeypatch.setattr(router, "MaPML", lambda **given: MaPML(max_iter=1, refine=0, **given))
    monkeypatch.setattr(router, "N_NEW_INTENTS", 1)
    monkeypatch.setattr(router, "REPEATS", 1)
    X, y = make_blobs(600, 5)
    known = y != y.max()
    fit, val, test = (np.flatnonzero(known)[start::3] for start in range(3))
    return router.Part(X[fit], y[fit], X[val], y[val], X[test], y[test], X[~known])


@pytest.mark.filterwarnings("ignore:a share of")  # so few rows give no exact threshold
@pytest.mark.parametrize("method", QUICK)
def test_labels_and_scores_are_those_of_the_model(method, part):
    kind = router.METHODS[method]
    fitted = kind(0, **kind.grid[0]).fit(part)
    labels, scores = fitted.answer(part.X_test)
    np.testing.assert_array_equal(labels, fitted.model.predict(part.X_test))
    assert scores.shape == labels.shape
    assert fitted.n_bytes() > 0


def test_parameters_are_chosen_on_validation_rows(part, monkeypatch):
    kind = router.METHODS["cosine k-NN"]
    monkeypatch.setattr(kind, "grid", ({"n_neighbors": len(part.X)}, {"n_neighbors": 1}))
    assert router.choose(kind, part, 0) == {"n_neighbors": 1}


@pytest.mark.filterwarnings("ignore:a share of")
def test_figures_are_reported(part, monkeypatch):
    monkeypatch.setattr(router, "parts", lambda name, method: [(0, part), (1, part)])
    cells = {name: {"MaPML": router.cell(name, "MaPML")} for name in router.SETS}
    found = cells["clinc150"]["MaPML"]
    assert len(found["error"]) == 2
    assert 0 <= found["error"][0] < 50
    assert found["fpr95"][0] <= 100
    assert "MaPML" in router.report(cells)


def test_unknown_classes_of_a_draw_are_in_no_other_rows(monkeypatch):
    y = np.repeat(np.arange(10), 20)
    X = np.arange(200.0)[:, None]
    split = Split("rows", X, y, X, y)
    monkeypatch.setattr(router, "load_benchmark", lambda name: split)
    drawn = router.banking77(0)
    label_of = dict(zip(X[:, 0], y, strict=True))
    unknown = {label_of[row] for row in drawn.unknown[:, 0]}
    assert len(unknown) == 2
    assert unknown.isdisjoint([*drawn.y, *drawn.y_val, *drawn.y_test])
    assert set(drawn.X[:, 0]).isdisjoint(drawn.X_val[:, 0])


def test_semantic_router_gets_the_same_rows(part):
    pytest.importorskip("semantic_router")
    fitted = router.SemanticRouter(0, aggregation="max").fit(part)
    labels, scores = fitted.answer(fitted.queries(part.X[:20]))
    np.testing.assert_array_equal(labels, part.y[:20])
    np.testing.assert_allclose(scores, 1, atol=1e-6)
