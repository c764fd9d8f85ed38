"""Exports of pipelines give the same results as the pipeline."""

import numpy as np
import onnxruntime
import pytest
from pipelines import OF_FRAMES, OF_GAPS, OF_NUMBERS, make_frame, make_numbers, model, with_gaps
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, PolynomialFeatures, StandardScaler

from latentmetric.export import to_faiss, to_onnx, to_sklearn

CONVERTED = sorted({*OF_NUMBERS, *OF_GAPS} - {"columns", "one hot, svd"})
"""skl2onnx knows neither infrequent categories nor fractions as categories."""


def fitted(name, dtype=np.float64):
    X, y = make_numbers()
    X = (with_gaps(X) if name in OF_GAPS else X).astype(dtype)
    steps = [
        step if isinstance(step, str) else clone(step) for step in (OF_NUMBERS | OF_GAPS)[name]
    ]
    return make_pipeline(*steps, model()).fit(X, y), X


def run(path, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    return session.run(["label", "probabilities"], inputs)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, np.float64) for name in CONVERTED]
    + [(name, np.float32) for name in ("l2", "whitened", "indicated")],
)
def test_onnx_agrees_with_the_pipeline(tmp_path, name, dtype):
    pipeline, X = fitted(name, dtype)
    to_onnx(pipeline, tmp_path / "model.onnx")
    features = X.astype(pipeline[-1].model_.dtype)
    labels, shares = run(tmp_path / "model.onnx", {"features": features})
    np.testing.assert_allclose(
        shares, pipeline.predict_proba(X), atol=1e-10 if dtype == np.float64 else 1e-3
    )
    assert (labels == pipeline.predict(X)).mean() >= (1 if dtype == np.float64 else 0.99)


def test_onnx_takes_columns_by_index_mask_and_slice_and_ignores_unknown_categories(tmp_path):
    X, y = make_numbers()
    X[::7, 2], X[:, 4] = np.nan, np.nan
    columns = ColumnTransformer(
        [
            ("scaled", StandardScaler(), [0, -8, 1]),
            ("nested", make_pipeline("passthrough", SimpleImputer(), PCA(2)), slice(1, 4)),
            ("empty", SimpleImputer(keep_empty_features=True, add_indicator=True), [2, 4]),
            ("masked", "passthrough", [False] * 5 + [True] + [False] * 2),
            ("none", StandardScaler(), []),
            ("codes", OneHotEncoder(drop="if_binary", handle_unknown="ignore"), [6, 7]),
        ],
        transformer_weights={"codes": 0.5, "masked": 3},
    )
    pipeline = make_pipeline(columns, model()).fit(X, y)
    to_onnx(pipeline, tmp_path / "model.onnx")
    X[:9, 6] = 77
    found = run(tmp_path / "model.onnx", {"features": X})[1]
    with pytest.warns(UserWarning, match="unknown categories"):
        np.testing.assert_allclose(found, pipeline.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize(
    "steps",
    [
        ["passthrough"],
        [OneHotEncoder(sparse_output=False)],  # whose graph gives float32 to a model in float64
        [Normalizer()],
        [SimpleImputer(missing_values=1, strategy="constant", fill_value=7),
         ColumnTransformer([("codes", OneHotEncoder(), [-1]), ("scaled", StandardScaler(), [0])])],
    ],
)  # fmt: skip
def test_onnx_takes_codes_and_rows_of_zeros(tmp_path, steps):
    X, y = make_numbers()
    X = X[:, 6:] * (np.arange(len(X)) % 5 > 0)[:, None]
    pipeline = make_pipeline(*steps, model()).fit(X, y)
    to_onnx(pipeline, tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", {"features": X})[1]
    np.testing.assert_allclose(found, pipeline.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("name", ["named", "a slice of names beside a number", "frames inside"])
def test_onnx_takes_words_one_input_a_column(tmp_path, name):
    frame, y = make_frame()
    pipeline = make_pipeline(OF_FRAMES[name], model()).fit(frame, y)
    to_onnx(pipeline, tmp_path / "model.onnx")
    columns = {name: frame[[name]].to_numpy(dtype=float) for name in ("size", "weight", "grade")}
    labels, shares = run(
        tmp_path / "model.onnx", columns | {"color": frame[["color"]].to_numpy(dtype=object)}
    )
    np.testing.assert_array_equal(labels, pipeline.predict(frame))
    np.testing.assert_allclose(shares, pipeline.predict_proba(frame), atol=1e-10)


@pytest.mark.parametrize("name", ["columns", "indicated"])
def test_faiss_finds_the_neighbours_of_the_pipeline(name):
    pipeline, X = fitted(name)
    exported = to_faiss(pipeline)
    distances, indices = exported.search(X, k=2)
    expected = pipeline[-1].kneighbors(pipeline[:-1].transform(X), 2)
    np.testing.assert_array_equal(indices, expected[1])
    np.testing.assert_allclose(distances, expected[0])
    assert exported.queries(X).shape == (len(X), exported.index.d)


@pytest.mark.parametrize("name", ["columns of columns", "passthrough"])
def test_scikit_learn_alone_predicts_the_same(name):
    pipeline, X = fitted(name)
    exported = to_sklearn(pipeline)
    np.testing.assert_array_equal(exported.predict(X), pipeline.predict(X))
    assert exported[0] is not pipeline[0] or isinstance(exported[0], str)


def test_steps_may_have_the_names_of_the_export():
    X, y = make_numbers()
    steps = [("centre", StandardScaler()), ("vote", StandardScaler()), ("mapml", model())]
    pipeline = Pipeline(steps).fit(X, y)
    exported = to_sklearn(pipeline)
    assert len(dict(exported.steps)) == len(exported.steps) > 3
    np.testing.assert_array_equal(exported.predict(X), pipeline.predict(X))


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (OneHotEncoder(min_frequency=20), "a OneHotEncoder groups infrequent categories"),
        (OneHotEncoder(), "cannot convert float NaN"),
    ],
)
def test_what_skl2onnx_cannot_convert_is_refused_with_its_words(tmp_path, encoder, message):
    X, y = make_numbers()
    X[0, 6] = np.nan if "NaN" in message else 1
    columns = ColumnTransformer([("codes", encoder, [6])], remainder="passthrough")
    pipeline = make_pipeline(columns, model()).fit(X, y)
    with pytest.raises(ValueError, match=f"cannot be converted to ONNX: .*{message}"):
        to_onnx(pipeline, tmp_path / "model.onnx")
    frame, y = make_frame()
    encoder = OneHotEncoder(sparse_output=False)
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder, model())
    with pytest.raises(ValueError, match="a SimpleImputer fills in words"):
        to_onnx(words.fit(frame[["color"]], y), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_steps_that_are_not_known_are_refused_by_name(tmp_path):
    X, y = make_numbers()
    other = make_pipeline(PolynomialFeatures(), model()).fit(X, y)
    for export in (to_faiss, to_sklearn, lambda model: to_onnx(model, tmp_path / "model.onnx")):
        with pytest.raises(TypeError, match=r"'polynomialfeatures' is a sklearn.*Polynomial"):
            export(other)
