"""Exports of pipelines give the same results as the pipeline."""

import os
import pickle
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from pipelines import OF_FRAMES, OF_GAPS, OF_NUMBERS, make_frame, make_numbers, model, with_gaps
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from latentmetric.export import to_faiss, to_onnx, to_sklearn


def fitted(name, dtype=np.float64):
    X, y = make_numbers()
    X = (with_gaps(X) if name in OF_GAPS else X).astype(dtype)
    steps = [
        step if isinstance(step, str) else clone(step) for step in (OF_NUMBERS | OF_GAPS)[name]
    ]
    return make_pipeline(*steps, model()).fit(X, y), X


def run(path, X, *outputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options).run(outputs, {"features": X})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OF_NUMBERS | OF_GAPS)
def test_onnx_agrees_with_the_pipeline(tmp_path, name, dtype):
    pipeline, X = fitted(name, dtype)
    to_onnx(pipeline, tmp_path / "model.onnx")
    features = X.astype(pipeline[-1].model_.dtype)
    labels, shares = run(tmp_path / "model.onnx", features, "label", "probabilities")
    np.testing.assert_allclose(
        shares, pipeline.predict_proba(X), atol=1e-10 if dtype == np.float64 else 1e-3
    )
    assert (labels == pipeline.predict(X)).mean() >= (1 if dtype == np.float64 else 0.99)


def test_unknown_categories_are_zeros_in_onnx(tmp_path):
    X, y = make_numbers()
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("codes", encoder, [6])], remainder="passthrough")
    pipeline = make_pipeline(columns, model()).fit(X, y)
    to_onnx(pipeline, tmp_path / "model.onnx")
    X[:, 6] = 77
    (shares,) = run(tmp_path / "model.onnx", X, "probabilities")
    np.testing.assert_allclose(shares, pipeline.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("name", ["columns", "whitened", "indicated"])
def test_faiss_finds_the_neighbours_of_the_pipeline(name):
    pipeline, X = fitted(name)
    exported = to_faiss(pipeline)
    distances, indices = exported.search(X, k=2)
    expected = pipeline[-1].kneighbors(pipeline[:-1].transform(X), 2)
    np.testing.assert_array_equal(indices, expected[1])
    np.testing.assert_allclose(distances, expected[0])
    assert exported.queries(X).shape == (len(X), exported.index.d)


@pytest.mark.parametrize("name", OF_NUMBERS | OF_GAPS)
def test_scikit_learn_alone_predicts_the_same(name):
    pipeline, X = fitted(name)
    exported = to_sklearn(pipeline)
    np.testing.assert_array_equal(exported.predict(X), pipeline.predict(X))
    assert exported[0] is not pipeline[0] or isinstance(exported[0], str)


def test_scikit_learn_takes_frames_and_words_without_this_package(tmp_path):
    frame, y = make_frame()
    pipeline = make_pipeline(OF_FRAMES["named"], model()).fit(frame, y)
    (tmp_path / "model").write_bytes(pickle.dumps(to_sklearn(pipeline)))
    frame.to_pickle(tmp_path / "frame")
    program = (
        "import pickle, sys, pandas\n"
        "sys.modules['latentmetric'] = None\n"
        "model = pickle.load(open(sys.argv[1] + '/model', 'rb'))\n"
        "print(*model.predict(pandas.read_pickle(sys.argv[1] + '/frame')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True,
                          text=True, check=True, env=os.environ)  # fmt: skip
    assert done.stdout.split() == [str(label) for label in pipeline.predict(frame)]


def test_steps_may_have_the_names_of_the_export():
    X, y = make_numbers()
    steps = [("centre", StandardScaler()), ("vote", StandardScaler()), ("mapml", model())]
    pipeline = Pipeline(steps).fit(X, y)
    exported = to_sklearn(pipeline)
    assert len(dict(exported.steps)) == 5
    np.testing.assert_array_equal(exported.predict(X), pipeline.predict(X))


def test_what_cannot_be_exported_is_refused_by_name(tmp_path):
    frame, y = make_frame()
    words = make_pipeline(OF_FRAMES["named"], model()).fit(frame, y)
    with pytest.raises(ValueError, match="the feature 'color' holds words"):
        to_onnx(words, tmp_path / "model.onnx")
    X, y = make_numbers()
    for encoder, message in (
        (OneHotEncoder(handle_unknown="infrequent_if_exist"), "handle_unknown='infrequent_if_ex"),
        (OneHotEncoder(), "NaN among the categories of feature 0"),
    ):
        X[0, 6] = np.nan if "NaN" in message else 1
        columns = ColumnTransformer([("codes", encoder, [6])], remainder="passthrough")
        pipeline = make_pipeline(columns, model()).fit(X, y)
        with pytest.raises(ValueError, match=message):
            to_onnx(pipeline, tmp_path / "model.onnx")
    X, y = make_numbers()
    other = make_pipeline(PolynomialFeatures(), model()).fit(X, y)
    for export in (to_faiss, to_sklearn, lambda model: to_onnx(model, tmp_path / "model.onnx")):
        with pytest.raises(TypeError, match=r"'polynomialfeatures' is a sklearn.*Polynomial"):
            export(other)
    assert not list(tmp_path.iterdir())
