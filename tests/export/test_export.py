"""Exports give the same results as the model, on the digits and on hard cases."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace

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
from latentmetric.export import to_faiss, to_onnx, to_sklearn

FEW = {"max_iter": 2, "n_steps": 1000, "random_state": 0}

MODELS = {
    "MaPML, float64": MaPML(weights="kernel", n_neighbors=1, **FEW),
    "MaPML, float32": MaPML(0.1, n_neighbors=40, **FEW),
    "own bandwidths, float64": MaPML(0.1, bandwidth="latent", **FEW),
    "bandwidths of classes, float32": MaPML(5, bandwidth="class", n_components=10, **FEW),
    "MaPML-O, float32": MaPML(reference="original", n_components=10, weights="distance", **FEW),
    "LMNN, float64": LMNN(max_iter=5, weights="distance", n_neighbors=4),
    "OASIS, float32": OASIS(psd=False, n_steps=1000, random_state=0),
    "OASIS, float64": OASIS(psd=False, n_steps=1000, n_neighbors=1, random_state=0),
    "HRSGD, float32": HRSGD(n_steps=1000, weights="kernel", random_state=0),
}
"""Without Euclidean: the digits are integers, so its neighbours tie."""

WEIGHTS = ["uniform", "distance", "kernel"]
OUTPUTS = ["label", "probabilities", "neighbors", "distances", "score"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, random_state=0)


@pytest.fixture(scope="module", params=MODELS)
def fitted_with_queries(request, digits):
    model, dtype = MODELS[request.param], request.param.split(", ")[1]
    X_train, X_test, y_train, _ = digits
    names = np.array([f"digit {number}" for number in range(10)])
    return clone(model).fit(X_train.astype(dtype), names[y_train]), X_test[:200].astype(dtype)


def run(path, X, outputs=OUTPUTS):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    return session.run(outputs, {"features": X})


def test_onnx_agrees_with_the_model(tmp_path, fitted_with_queries):
    model, X = fitted_with_queries
    to_onnx(model, tmp_path / "model.onnx")
    labels, shares, neighbors, distances, scores = run(tmp_path / "model.onnx", X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(scores, model.score_samples(X), rtol=2e-4, atol=2e-4)
    expected_distances, expected_neighbors = model.kneighbors(X)
    precise = 1e-12 if X.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(distances, expected_distances, rtol=precise, atol=precise)
    # Neighbours at the same distance, within rounding, may change places.
    apart = np.diff(expected_distances, axis=1, prepend=-np.inf, append=np.inf)
    close = precise * np.abs(expected_distances)
    alone = (apart[:, :-1] > close) & (apart[:, 1:] > close)
    np.testing.assert_array_equal(neighbors[alone], expected_neighbors[alone])
    assert alone.mean() > 0.9
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=precise)
    assert distances.dtype == expected_distances.dtype
    one, shares_of_one, *_ = run(tmp_path / "model.onnx", X[:1])
    assert (one[0], shares_of_one.shape) == (labels[0], (1, 10))


@pytest.mark.parametrize("n_voters", [20, 50])
def test_exports_agree_where_not_all_references_with_bandwidths_vote(
    tmp_path, monkeypatch, n_voters
):
    monkeypatch.setattr("latentmetric.core.votes.ALL_VOTE", n_voters)
    X, y = make_blobs(300)
    model = MaPML(0.3, bandwidth="latent", random_state=0).fit(X, y)
    queries = 2 * make_blobs(100, seed=1)[0]
    expected = model.predict_proba(queries)
    to_onnx(model, tmp_path / "model.onnx")
    (shares,) = run(tmp_path / "model.onnx", queries, ["probabilities"])
    np.testing.assert_allclose(shares, expected, rtol=1e-9, atol=1e-12)
    monkeypatch.undo()
    assert np.abs(model.predict_proba(queries) - expected).max() > 1e-6, "so few make a difference"


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
    model = Euclidean().fit(X, labels[y])
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
        for n_neighbors in (2, 30):
            model = Euclidean(n_neighbors=n_neighbors, weights=weights).fit(rows, y)
            to_onnx(model, tmp_path / "model.onnx")
            labels, shares, neighbors, *_ = run(tmp_path / "model.onnx", X)
            np.testing.assert_array_equal(labels, model.predict(X))
            np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-12)
            expected = model.kneighbors(X, min(n_neighbors, len(X)))[1]
            np.testing.assert_array_equal(neighbors, expected)
            assert to_sklearn(model).predict(X[:1]) in model.classes_


def test_exports_of_float32_tell_rows_apart_in_groups_that_are_far_from_each_other(tmp_path, rng):
    X = rng.standard_normal((2400, 5))
    X[::2, 0] += 1e5
    X, y = X.astype(np.float32), X[:, 1] + rng.standard_normal(2400) / 5 > 0
    model, queries = Euclidean(5).fit(X[:2000], y[:2000]), X[2000:]
    to_onnx(model, tmp_path / "model.onnx")
    expected, nearest = model.predict(queries), model.kneighbors(queries, 1)[1]
    np.testing.assert_array_equal(run(tmp_path / "model.onnx", queries, ["label"])[0], expected)
    np.testing.assert_array_equal(to_sklearn(model).predict(queries), expected)
    np.testing.assert_array_equal(to_faiss(model).search(queries, 1)[1], nearest)
    far = HRSGD(n_steps=200, random_state=0, n_neighbors=1).fit(X[:2000] + 1e6, y[:2000])
    to_onnx(far, tmp_path / "model.onnx")
    expected, nearest = far.kneighbors(queries + 1e6)
    for found in (
        run(tmp_path / "model.onnx", queries + 1e6, ["distances", "neighbors"]),
        to_faiss(far).search(queries + 1e6, 1),
    ):
        np.testing.assert_array_equal(found[1], nearest)
        np.testing.assert_allclose(found[0], expected, rtol=1e-4)


def test_onnx_uses_only_standard_operators_and_no_unused_constants(tmp_path):
    X, y = make_blobs()
    for weights in WEIGHTS:
        to_onnx(Euclidean(weights=weights).fit(X, y), tmp_path / "model.onnx")
        model = onnx.load(tmp_path / "model.onnx")
        assert [(one.domain, one.version) for one in model.opset_import] == [("", 18)]
        assert {node.domain for node in model.graph.node} == {""}
        used = {name for node in model.graph.node for name in node.input}
        assert {constant.name for constant in model.graph.initializer} <= used
        assert [value.name for value in model.graph.output] == OUTPUTS


def test_onnx_refuses_labels_without_an_onnx_type(tmp_path):
    X, y = make_blobs()
    surrogates = np.array(["a", "b", "\ud800"], dtype=object)[y]
    with pytest.raises(ValueError, match="utf-8"):
        to_onnx(Euclidean().fit(X, surrogates), tmp_path / "model.onnx")
    with pytest.raises(TypeError, match="datetime64"):
        to_onnx(Euclidean().fit(X, y.astype("M8[D]")), tmp_path / "model.onnx")
    assert os.listdir(tmp_path) == []


def test_faiss_finds_the_neighbours_of_the_model(fitted_with_queries):
    model, X = fitted_with_queries
    exported = to_faiss(model)
    for k in (1, 40):
        distances, indices = exported.search(X, k)
        expected_distances, expected = model.kneighbors(X, k)
        # Where neighbours differ they tie within rounding: the distances are the same.
        assert np.mean(indices != expected) < 1e-3
        np.testing.assert_allclose(distances, expected_distances, rtol=1e-5, atol=1e-5)
        assert distances.dtype == expected_distances.dtype
    _, indices = exported.index.search(exported.queries(X), 1)
    np.testing.assert_array_equal(indices, model.kneighbors(X, 1)[1])
    labels = model.classes_[model.model_.codes]
    np.testing.assert_array_equal(exported.labels, labels)


def test_faiss_refuses_wrong_queries():
    exported = to_faiss(Euclidean().fit(*make_blobs(60)))
    with pytest.raises(ValueError, match="X has 5 features, but Euclidean is expecting 6"):
        exported.search(np.zeros((2, 5)), 1)
    for k in (0, 61):
        with pytest.raises(ValueError, match=f"k must be at least 1 and at most 60, got {k}"):
            exported.search(np.zeros((2, 6)), k)


def test_scikit_learn_predicts_as_the_model(fitted_with_queries):
    model, X = fitted_with_queries
    exported, n_neighbors = to_sklearn(model), model.n_neighbors
    np.testing.assert_array_equal(exported.predict(X), model.predict(X))
    precise = 1e-5 + 2.0 ** (n_neighbors - 46)
    reach = model.kneighbors(X, n_neighbors + 1)[0][:, -2:]
    clear = reach[:, 1] > reach[:, 0] * (1 + 1e-5)  # which neighbour is the last, is not rounding
    assert np.mean(clear) > 0.98
    shares, found = model.predict_proba(X[clear]), exported.predict_proba(X[clear])
    if model.weights == "kernel":
        precise = 1e-10 if X.dtype == np.float64 else 1e-5
        if len(model.model_.references) > 1024:  # some class has no vote, only what is set aside
            shares -= shares.min(axis=1, keepdims=True)
            shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, shares, rtol=0, atol=precise)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scikit_learn_has_the_probabilities_of_bandwidths_far_apart(n_classes):
    """In many dimensions, densities of so different widths would overflow; also of 2 references."""
    X, y = make_blobs(60, n_classes, n_features=400)
    model = MaPML(1, bandwidth="latent", random_state=0).fit(X, y)
    scales = np.linspace(-3, 3, n_classes)
    model.model_ = replace(model.model_, log_scales=scales, log_weights=scales[::-1].copy())
    shares = model.predict_proba(X)
    assert 0 < shares.min() < 1e-3
    np.testing.assert_allclose(to_sklearn(model).predict_proba(X), shares, rtol=1e-6)


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


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["uniform", "kernel"])
def test_scikit_learn_runs_without_this_package(tmp_path, digits, weights):
    X_train, X_test, y_train, _ = digits
    model = MaPML(**FEW, weights=weights, bandwidth="latent").fit(X_train, y_train)
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
    exported = to_sklearn(Euclidean().fit(frame, y))
    exported.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        exported.predict(frame[list("bacdef")])
    with pytest.raises(ValueError, match="5 features"):
        to_sklearn(Euclidean().fit(X, y)).predict(X[:, :5])


@pytest.mark.parametrize("export", [to_faiss, to_sklearn, lambda model: to_onnx(model, "unused")])
def test_exports_refuse_unfitted_models_other_objects_and_votes_without_distances(export):
    with pytest.raises(NotFittedError):
        export(MaPML())
    with pytest.raises(TypeError, match="pass its last step"):
        export(object())
    similar = OASIS(psd=False, n_steps=100, weights="kernel", random_state=0)
    with pytest.raises(ValueError, match="weighs by distance"):
        export(
            similar.set_params(weights="uniform").fit(*make_blobs(60)).set_params(weights="kernel")
        )


@pytest.mark.parametrize(("package", "export"), [("faiss", to_faiss), ("onnx", to_onnx)])
def test_a_missing_package_names_the_extra(monkeypatch, tmp_path, package, export):
    monkeypatch.setitem(sys.modules, package, None)
    model = Euclidean().fit(*make_blobs())
    arguments = (model,) if package == "faiss" else (model, tmp_path / "model.onnx")
    with pytest.raises(ImportError, match=f"pip install {package}"):
        export(*arguments)
