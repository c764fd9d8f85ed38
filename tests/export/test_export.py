"""Exports give the same results as the model, on the digits and on hard cases."""

import os
import pickle
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pandas
import pytest
from helpers import make_blobs
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML
from latentmetric.core.votes import VOTES
from latentmetric.export import to_faiss, to_onnx, to_sklearn
from latentmetric.validation.parameters import OneOf

FEW = {"max_iter": 2, "n_steps": 1000, "random_state": 0}

MODELS = [
    MaPML(**FEW),
    MaPML(reference="original", n_components=10, **FEW),
    LMNN(max_iter=20),
    OASIS(psd=False, n_steps=1000, random_state=0),
    OASIS(n_steps=1000, random_state=0, psd=True),
    HRSGD(n_steps=1000, random_state=0),
]
"""Without Euclidean: the digits are integers, so its neighbours tie."""

WEIGHTS = ["uniform", "distance", "kernel"]
OUTPUTS = ["label", "probabilities", "neighbors", "distances"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, random_state=0)


@pytest.fixture(
    scope="module",
    params=[(model, dtype) for model in MODELS for dtype in (np.float32, np.float64)],
    ids=lambda param: f"{type(param[0]).__name__}{MODELS.index(param[0])} {param[1].__name__}",
)
def fitted_with_queries(request, digits):
    model, dtype = request.param
    X_train, X_test, y_train, _ = digits
    names = np.array([f"digit {number}" for number in range(10)])
    return clone(model).fit(X_train.astype(dtype), names[y_train]), X_test.astype(dtype)


def with_parameters(model, **parameters):
    """A copy of a fitted model with other parameters."""
    return pickle.loads(pickle.dumps(model)).set_params(**parameters)


def weighs_without_distances(model):
    return isinstance(model, OASIS) and not model.psd and model.weights != "uniform"


def run(path, X, outputs=OUTPUTS):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    return session.run(outputs, {"features": X})


@pytest.mark.parametrize("weights", WEIGHTS)
def test_onnx_agrees_with_the_model(tmp_path, fitted_with_queries, weights):
    model, X = fitted_with_queries
    model = with_parameters(model, weights=weights)
    if weighs_without_distances(model):
        with pytest.raises(ValueError, match="weighs by distance"):
            to_onnx(model, tmp_path / "model.onnx")
        return
    to_onnx(model, tmp_path / "model.onnx")
    labels, shares, neighbors, distances = run(tmp_path / "model.onnx", X)
    np.testing.assert_array_equal(labels, model.predict(X))
    expected_distances, expected_neighbors = model.kneighbors(X)
    np.testing.assert_array_equal(neighbors, expected_neighbors)
    precise = 1e-12 if X.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(distances, expected_distances, rtol=precise, atol=precise)
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=precise)
    assert distances.dtype == expected_distances.dtype


def test_onnx_takes_batches_of_any_size(tmp_path, fitted_with_queries):
    model, X = fitted_with_queries
    to_onnx(model, tmp_path / "model.onnx")
    for n_rows in (1, 7):
        labels, shares, *_ = run(tmp_path / "model.onnx", X[:n_rows])
        np.testing.assert_array_equal(labels, model.predict(X[:n_rows]))
        assert shares.shape == (n_rows, 10)


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (np.array([3, 1, 200], dtype=np.uint8), np.int64),
        (np.array([0, 1, 2**63 + 5], dtype=np.uint64), np.uint64),
        (np.array([False, True, True]), np.bool_),
        (np.array([0.0, 1.0, 2.0], dtype=np.float32), np.float32),
        (np.array(["é", "日本", "z"], dtype=object), object),
    ],
)
def test_onnx_supports_labels_of_every_kind(tmp_path, labels, dtype):
    X, y = make_blobs()
    model = MaPML(**FEW).fit(X, labels[y])
    to_onnx(model, tmp_path / "model.onnx")
    (found,) = run(tmp_path / "model.onnx", X, ["label"])
    np.testing.assert_array_equal(found, model.predict(X))
    assert found.dtype == dtype


@pytest.mark.parametrize("weights", WEIGHTS)
def test_onnx_agrees_with_the_model_on_ties_and_exact_matches(tmp_path, weights):
    """Rows that are references themselves, twice, under two labels; few references; T = 0."""
    X = np.array([[0.0], [0.0], [1.0], [1.0], [4.0], [9.0]])
    y = np.array(["b", "a", "b", "b", "c", "a"])
    for rows in (X, np.zeros_like(X)):
        for n_neighbors in (1, 2, 4, 30):
            model = Euclidean(n_neighbors=n_neighbors, weights=weights).fit(rows, y)
            to_onnx(model, tmp_path / "model.onnx")
            labels, shares, neighbors, _ = run(tmp_path / "model.onnx", X)
            np.testing.assert_array_equal(labels, model.predict(X))
            np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-12)
            expected = model.kneighbors(X, min(n_neighbors, len(X)))[1]
            np.testing.assert_array_equal(neighbors, expected)


def test_onnx_keeps_its_precision_far_from_the_origin(tmp_path):
    X, y = make_blobs()
    model = MaPML(**FEW).fit(X + 1e6, y)
    to_onnx(model, tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", X + 1e6, ["label", "neighbors", "distances"])
    np.testing.assert_array_equal(found[0], model.predict(X + 1e6))
    np.testing.assert_array_equal(found[1], model.kneighbors(X + 1e6)[1])
    np.testing.assert_allclose(found[2], model.kneighbors(X + 1e6)[0], rtol=1e-10)


def test_exports_of_float32_keep_their_precision_far_from_the_origin(tmp_path):
    X, y = make_blobs()
    far = (X + 1e6).astype(np.float32)
    model = HRSGD(n_steps=200, random_state=0, n_neighbors=1).fit(far, y)
    queries = (X + np.random.default_rng(0).standard_normal(X.shape) / 5 + 1e6).astype(np.float32)
    distances, nearest = model.kneighbors(queries)
    to_onnx(model, tmp_path / "model.onnx")
    in_onnx = run(tmp_path / "model.onnx", queries, ["distances", "neighbors"])
    *maps, (_, voters) = to_sklearn(model).steps
    in_sklearn = voters.kneighbors(maps[1][1].transform(maps[0][1].transform(queries)))
    in_sklearn = in_sklearn[0] * model.model_.coordinates.scale, in_sklearn[1]
    for found in (in_onnx, in_sklearn, to_faiss(model).search(queries, 1)):
        np.testing.assert_array_equal(found[1], nearest)
        np.testing.assert_allclose(found[0], distances, rtol=1e-4)


@pytest.mark.parametrize("model", [Euclidean(1), Euclidean(5), HRSGD(n_steps=200, random_state=0)])
@pytest.mark.parametrize("gap", [1e4, 1e5])
def test_exports_of_float32_tell_rows_apart_in_groups_that_are_far_from_each_other(
    tmp_path, rng, model, gap
):
    X = rng.standard_normal((2400, 5))
    X[::2, 0] += gap
    X, y = X.astype(np.float32), X[:, 1] + rng.standard_normal(2400) / 5 > 0
    model, queries = model.fit(X[:2000], y[:2000]), X[2000:]
    to_onnx(model, tmp_path / "model.onnx")
    expected, nearest = model.predict(queries), model.kneighbors(queries, 1)[1]
    np.testing.assert_array_equal(run(tmp_path / "model.onnx", queries, ["label"])[0], expected)
    np.testing.assert_array_equal(to_sklearn(model).predict(queries), expected)
    np.testing.assert_array_equal(to_faiss(model).search(queries, 1)[1], nearest)


def test_onnx_uses_only_standard_operators_and_no_unused_constants(tmp_path):
    X, y = make_blobs()
    for weights in WEIGHTS:
        to_onnx(MaPML(weights=weights, **FEW).fit(X, y), tmp_path / "model.onnx")
        model = onnx.load(tmp_path / "model.onnx")
        assert [(one.domain, one.version) for one in model.opset_import] == [("", 18)]
        assert {node.domain for node in model.graph.node} == {""}
        used = {name for node in model.graph.node for name in node.input}
        assert {constant.name for constant in model.graph.initializer} <= used
        assert [value.name for value in model.graph.output] == OUTPUTS


def test_onnx_refuses_labels_without_an_onnx_type(tmp_path):
    X, y = make_blobs()
    surrogates = np.array(["a", "b", "\ud800"], dtype=object)[y]
    with pytest.raises(ValueError, match="UTF-8"):
        to_onnx(MaPML(**FEW).fit(X, surrogates), tmp_path / "model.onnx")
    with pytest.raises(TypeError, match="datetime64"):
        to_onnx(Euclidean().fit(X, y.astype("M8[D]")), tmp_path / "model.onnx")
    assert os.listdir(tmp_path) == []


def test_onnx_refuses_models_that_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("latentmetric.export.onnx_graph.MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="an ONNX file holds 1000"):
        to_onnx(Euclidean().fit(*make_blobs()), tmp_path / "model.onnx")


def test_faiss_finds_the_neighbours_of_the_model(fitted_with_queries):
    model, X = fitted_with_queries
    exported = to_faiss(model)
    for k in (1, 5, 40):
        distances, indices = exported.search(X, k)
        expected_distances, expected = model.kneighbors(X, k)
        # Where neighbours differ they tie within rounding: the distances are the same.
        assert np.mean(indices != expected) < 1e-3
        np.testing.assert_allclose(distances, expected_distances, rtol=1e-5, atol=1e-5)
        assert distances.dtype == expected_distances.dtype


def test_the_plain_faiss_index_finds_the_nearest_and_its_label(fitted_with_queries):
    model, X = fitted_with_queries
    exported = to_faiss(model)
    _, indices = exported.index.search(exported.queries(X), 1)
    nearest = model.kneighbors(X, 1)[1]
    np.testing.assert_array_equal(indices, nearest)
    voted = with_parameters(model, n_neighbors=1, weights="uniform").predict(X)
    np.testing.assert_array_equal(exported.labels[indices[:, 0]], voted)


def test_faiss_refuses_wrong_queries():
    exported = to_faiss(Euclidean().fit(*make_blobs(60)))
    with pytest.raises(ValueError, match=r"shape \(2, 5\), but the model was fitted with 6"):
        exported.search(np.zeros((2, 5)), 1)
    for k in (0, 61):
        with pytest.raises(ValueError, match=f"k is {k}, but must be from 1 to 60"):
            exported.search(np.zeros((2, 6)), k)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("n_neighbors", [1, 4, 40])
def test_scikit_learn_predicts_as_the_model(fitted_with_queries, weights, n_neighbors):
    model, X = fitted_with_queries
    model = with_parameters(model, weights=weights, n_neighbors=n_neighbors)
    if weighs_without_distances(model):
        with pytest.raises(ValueError, match="weighs by distance"):
            to_sklearn(model)
        return
    exported = to_sklearn(model)
    np.testing.assert_array_equal(exported.predict(X), model.predict(X))
    moved = 2.0 ** (n_neighbors - 46)
    reach = model.kneighbors(X, n_neighbors + 1)[0][:, -2:]
    clear = reach[:, 1] > reach[:, 0] * (1 + 1e-5)  # which neighbour is the last, is not rounding
    assert np.mean(clear) > 0.99
    shares = model.predict_proba(X[clear])
    np.testing.assert_allclose(exported.predict_proba(X[clear]), shares, rtol=0, atol=1e-5 + moved)


def test_scikit_learn_breaks_ties_as_the_model():
    X = np.array([[0.0], [1.0], [2.5], [4.5], [7.0], [8.0]])
    y = np.array(["c", "b", "a", "a", "b", "c"])
    queries = np.linspace(-1, 9, 101)[:, None] + 1e-3
    for n_neighbors in range(1, 7):
        model = Euclidean(n_neighbors=n_neighbors).fit(X, y)
        exported = to_sklearn(model)
        np.testing.assert_array_equal(exported.predict(queries), model.predict(queries))
    plain = exported.named_steps["vote"].set_params(weights="uniform")
    tied = plain.predict(model.model_.references.rows) != model.predict(X)
    assert tied.any(), "without the tie break this test could not fail"


@pytest.mark.parametrize("weights", WEIGHTS)
def test_scikit_learn_runs_without_this_package(tmp_path, digits, weights):
    X_train, X_test, y_train, _ = digits
    model = MaPML(**FEW, weights=weights).fit(X_train, y_train)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(to_sklearn(model)))
    np.save(tmp_path / "X.npy", X_test)
    script = (
        "import sys\n"
        "sys.modules['latentmetric'] = None\n"
        "import numpy, pickle\n"
        "model = pickle.load(open('model.pickle', 'rb'))\n"
        "numpy.save('labels.npy', model.predict(numpy.load('X.npy')))\n"
        "assert not any(name.startswith('latentmetric.') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), model.predict(X_test))


def test_scikit_learn_keeps_feature_names_and_counts():
    X, y = make_blobs()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    exported = to_sklearn(MaPML(**FEW).fit(frame, y))
    exported.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        exported.predict(frame[list("bacdef")])
    with pytest.raises(ValueError, match="5 features"):
        to_sklearn(MaPML(**FEW).fit(X, y)).predict(X[:, :5])


def test_scikit_learn_refuses_votes_that_it_does_not_have(monkeypatch):
    monkeypatch.setitem(VOTES, "cubic", VOTES["distance"])
    monkeypatch.setitem(Euclidean._parameter_rules, "weights", OneOf(("cubic",)))
    model = Euclidean(weights="cubic").fit(*make_blobs())
    with pytest.raises(ValueError, match="weights='cubic' has no equivalent"):
        to_sklearn(model)


def test_scikit_learn_votes_with_the_nearest_where_the_kernel_has_no_width():
    """All references are equal, so their spacing is 0."""
    X, y = np.ones((6, 2)), np.array([0, 0, 0, 0, 1, 1])
    model = Euclidean(weights="kernel").fit(X, y)
    assert model.model_.temperature == 0
    assert to_sklearn(model).predict([[3.0, 1.0]]) in model.classes_


@pytest.mark.parametrize("export", [to_faiss, to_sklearn, lambda model: to_onnx(model, "unused")])
def test_exports_refuse_unfitted_models_and_other_objects(export):
    with pytest.raises(NotFittedError):
        export(MaPML())
    with pytest.raises(TypeError, match="pass its last step"):
        export(object())


@pytest.mark.parametrize(("package", "export"), [("faiss", to_faiss), ("onnx", to_onnx)])
def test_a_missing_package_names_the_extra(monkeypatch, tmp_path, package, export):
    monkeypatch.setitem(sys.modules, package, None)
    model = Euclidean().fit(*make_blobs())
    arguments = (model,) if package == "faiss" else (model, tmp_path / "model.onnx")
    with pytest.raises(ImportError, match=rf"latentmetric\[{package}\]"):
        export(*arguments)
