"""Inner products of what the adapter stores and sends rank as the model's ``kneighbors`` does."""

import numpy as np
import pytest
from hard_cases import hard_cases
from helpers import make_blobs
from pipelines import make_frame
from pipelines import model as quick_model
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from latentmetric import LMNN, OASIS, Euclidean, MaPML
from latentmetric.export import to_query_adapter

MODELS = {
    "all directions": quick_model(),
    "two directions": MaPML(n_components=2, max_iter=1, random_state=0),
    "LMNN": LMNN(max_iter=2),
    "OASIS": OASIS(psd=True, n_steps=200, random_state=0),
}


def searched(adapter, X, Z, k):
    """Scores and indices of the k largest inner products, as a database computes them."""
    scores = adapter.query(X) @ adapter.stored(Z).T
    assert scores.dtype == np.float32
    indices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, indices, axis=1), indices


def assert_finds_neighbors(model, X, Z, k=10):
    """What is found is as near as what ``kneighbors`` finds among the same rows."""
    adapter = to_query_adapter(model)
    scores, indices = searched(adapter, X, Z, k)
    expected = model.set_references(Z, np.resize(model.classes_, len(Z))).kneighbors(X, k)[0] ** 2
    differences = model.transform(X)[:, None] - model.transform(Z)[indices]
    rounding = 2e-6 * np.mean(model.transform(Z) ** 2) * len(model.components_)
    for found in (np.sum(differences**2, axis=2), adapter.squared_distances(scores, X)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=rounding)
    return indices


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_finds_the_neighbours_of_the_model(name, dtype):
    X, y = make_blobs(400)
    X = X.astype(dtype) + 5
    model = MODELS[name].fit(X[:200], y[:200])
    indices = assert_finds_neighbors(model, X[300:], X[:300])
    np.testing.assert_array_equal(indices, model.kneighbors(X[300:], 10)[1])
    plain = Euclidean().fit(X[:300], y[:300]).kneighbors(X[300:], 10)[1]
    assert np.mean(indices == plain) < 0.9, "the metric makes a difference"


def test_formula_in_the_documentation_builds_the_same_vectors():
    X, y = make_blobs(60)
    model = quick_model().fit(X, y)
    adapter = to_query_adapter(model)
    metric, c, w = model.get_mahalanobis_matrix(), X.mean(axis=0), adapter.weight
    numbers = [-(z - c) @ metric @ (z - c) / w for z in X]
    queries = [np.append(2 * metric @ (q - c), w) for q in X]
    np.testing.assert_allclose(adapter.stored(X), np.column_stack((X, numbers)), rtol=1e-5)
    np.testing.assert_allclose(adapter.query(X), queries, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(adapter.matrix, metric)
    np.testing.assert_allclose(adapter.centre, c)


def test_stores_rows_as_they_are_and_a_number_that_is_small_beside_them():
    X, y = make_blobs()
    for factor in (1e-9, 1, 1e9):
        rows = (factor * X).astype(np.float32)
        stored = to_query_adapter(quick_model().fit(rows, y)).stored(rows)
        assert stored.dtype == np.float32
        np.testing.assert_array_equal(stored[:, :-1], rows)
        share = np.mean(-stored[:, -1]) / np.mean(np.linalg.norm(rows, axis=1))
        assert 1 / 100 < share < 1 / 8


def test_columns_of_very_different_units_keep_their_neighbours():
    X, y = make_blobs(300)
    X *= [1e-6, 1e6, 1, 1e3, 1e-3, 1]
    assert_finds_neighbors(quick_model().set_params(start="standardized").fit(X, y), X[:50], X)


CASES = list(hard_cases())

REFUSED = {
    "tiny spread far out": "store model.transform",
    "all features constant": "store model.transform",
    "huge numbers": r"spread of 1e\+30",
    "tiny numbers": "spread of 1e-30",
}


@pytest.mark.parametrize(("name", "X", "y"), CASES, ids=[case[0] for case in CASES])
def test_hard_cases_are_searched_or_refused(name, X, y):
    model = quick_model().fit(X, y)
    if name in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[name]):
            to_query_adapter(model).stored(X)
    else:
        assert_finds_neighbors(model, X, X, k=min(5, len(X)))


def test_a_single_row_is_stored_whether_at_the_centre_or_far_away():
    X, y = make_blobs()
    adapter = to_query_adapter(quick_model().fit(X + 100, y))
    for row in (X.mean(axis=0) + 100, X[0] + 1e4):
        assert np.isfinite(adapter.stored([row])).all()
    with pytest.raises(ValueError, match="float32, which cannot hold 1e\\+39"):
        adapter.stored([X[0] + 1e39])


def test_rows_of_a_pipeline_pass_its_steps():
    frame, y = make_frame()
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "weight"]),
            ("words", OneHotEncoder(sparse_output=False), ["color"]),
        ]
    )
    pipeline = make_pipeline(columns, quick_model()).fit(frame, y)
    adapter = to_query_adapter(pipeline)
    rows = pipeline[:-1].transform(frame)
    np.testing.assert_array_equal(adapter.stored(frame)[:, :-1], rows.astype(np.float32))
    scores, _ = searched(adapter, frame, frame, 3)
    expected, _ = pipeline[-1].set_references(rows, y).kneighbors(rows, 3)
    np.testing.assert_allclose(
        np.sqrt(adapter.squared_distances(scores, frame)), expected, atol=5e-3
    )


def test_refuses_what_has_no_metric_and_wrong_rows_and_scores():
    X, y = make_blobs(60)
    with pytest.raises(NotFittedError):
        to_query_adapter(MaPML())
    with pytest.raises(TypeError, match="a fitted model of latentmetric is needed"):
        to_query_adapter(object())
    with pytest.raises(TypeError, match="OASIS has learned a similarity"):
        to_query_adapter(OASIS(psd=False, n_steps=100, random_state=0).fit(X, y))
    adapter = to_query_adapter(Euclidean().fit(X, y))
    with pytest.raises(ValueError, match="X has 5 features, but Euclidean is expecting 6"):
        adapter.query(X[:, :5])
    with pytest.raises(ValueError, match=r"must be of shape \(60, n_neighbors\).*got \(3,\)"):
        adapter.squared_distances([1, 2, 3], X)
