"""A loaded pipeline answers as the saved one, bit for bit; what a file cannot hold is refused."""

import warnings

import numpy as np
import pytest
from pipelines import OF_FRAMES, OF_GAPS, OF_NUMBERS, make_frame, make_numbers, model, with_gaps
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

from latentmetric import Euclidean, ModelFileError, load, save


def saved(pipeline, folder):
    save(pipeline, folder / "model")
    return load(folder / "model")


def assert_same_answers(one, other, X):
    for method in ("predict", "predict_proba", "transform"):
        found, expected = getattr(other, method)(X), getattr(one, method)(X)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes(), method


def state(step):
    """The names of what a step holds; some are only kept for the fit itself."""
    return set(vars(step)) - {"_fit_svd_solver"}


@pytest.mark.parametrize("name", OF_NUMBERS | OF_GAPS)
def test_steps_of_numbers_come_back_to_the_last_bit(tmp_path, name):
    X, y = make_numbers()
    X = with_gaps(X) if name in OF_GAPS else X
    X = X.astype(np.float32 if len(name) % 2 else np.float64)
    steps = [
        step if isinstance(step, str) else clone(step) for step in (OF_NUMBERS | OF_GAPS)[name]
    ]
    pipeline = make_pipeline(*steps, model()).fit(X, y)
    loaded = saved(pipeline, tmp_path)
    assert type(loaded) is Pipeline
    assert_same_answers(pipeline, loaded, X)
    assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]
    for (_, one), (_, other) in zip(pipeline.steps[:-1], loaded.steps[:-1], strict=True):
        assert type(one) is type(other)
        if not isinstance(one, str):
            assert state(one) == state(other)
            assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()


@pytest.mark.parametrize("name", OF_FRAMES)
def test_steps_of_frames_come_back_to_the_last_bit(tmp_path, name):
    frame, y = make_frame()
    pipeline = make_pipeline(OF_FRAMES[name], model()).fit(frame, y)
    loaded = saved(pipeline, tmp_path)
    turned = make_frame(60, seed=1)[0].iloc[:, ::-1]
    assert_same_answers(pipeline, loaded, turned[frame.columns])
    assert_same_answers(pipeline, loaded, turned.assign(more=1))  # columns are found by name
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    one, other = pipeline[0], loaded[0]
    assert state(one) == state(other)
    assert one.output_indices_ == other.output_indices_
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()


def test_a_loaded_pipeline_can_be_fitted_again(tmp_path):
    for steps, (X, y) in ((OF_NUMBERS["columns"], make_numbers()),
                          ([OF_FRAMES["chosen by type"]], make_frame())):  # fmt: skip
        pipeline = make_pipeline(*map(clone, steps), model()).fit(X, y)
        again = clone(saved(pipeline, tmp_path)).fit(X, y)
        assert_same_answers(pipeline, again, X)


def test_parameters_come_back(tmp_path):
    X, y = make_numbers()
    scaler = StandardScaler(with_mean=False)
    encoder = OneHotEncoder(dtype=np.float32, drop=[9.0], categories=[[1.0, 2.0, 5.0, 9.0]])
    columns = ColumnTransformer(
        [("a", encoder, [6])], remainder=scaler, n_jobs=1, sparse_threshold=0
    )
    loaded = saved(make_pipeline(columns, model()).fit(X, y), tmp_path)
    assert loaded[0].sparse_threshold == 0
    assert loaded[0].remainder.with_mean is False
    inner = loaded[0].transformers[0][1]
    assert (inner.dtype, inner.drop, inner.categories) == (
        np.float32,
        [9.0],
        [[1.0, 2.0, 5.0, 9.0]],
    )
    assert loaded[0].n_jobs is None


def test_an_estimator_alone_in_a_pipeline(tmp_path):
    X, y = make_numbers()
    pipeline = Pipeline([("only", Euclidean())]).fit(X, y)
    loaded = saved(pipeline, tmp_path)
    assert_same_answers(pipeline, loaded, X)
    assert [name for name, _ in loaded.steps] == ["only"]


def test_other_steps_are_refused_by_name(tmp_path):
    X, y = make_numbers()
    pipeline = make_pipeline(StandardScaler(), QuantileTransformer(n_quantiles=5), model()).fit(
        X, y
    )
    with pytest.raises(TypeError, match=r"'quantiletransformer' is a sklearn.*may only have Stand"):
        save(pipeline, tmp_path / "model")
    nested = ColumnTransformer([("logs", FunctionTransformer(np.log1p), [0])])
    with pytest.raises(TypeError, match=r"'columntransformer/logs' is a .*FunctionTransformer"):
        save(make_pipeline(nested, model()).fit(abs(X), y), tmp_path / "model")
    with pytest.raises(TypeError, match=r"ends in 'logisticregression'.*must end in one of MaPML"):
        save(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), tmp_path / "model")

    class Scaler(StandardScaler):
        pass

    with pytest.raises(TypeError, match="the step 'scaler' is a "):
        save(make_pipeline(Scaler(), model()).fit(X, y), tmp_path / "model")
    with pytest.raises(NotFittedError):
        save(make_pipeline(StandardScaler(), model()), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (SimpleImputer(strategy=np.max), "the step 'simpleimputer': its parameter strategy"),
        (OneHotEncoder(feature_name_combiner=lambda a, b: a, handle_unknown="ignore",
                       sparse_output=False), "its parameter feature_name_combiner"),
    ],
)  # fmt: skip
def test_options_that_a_file_cannot_hold_are_refused_by_name(tmp_path, step, message):
    X, y = make_numbers()
    with pytest.raises(TypeError, match=message):
        save(make_pipeline(step, model()).fit(X, y), tmp_path / "model")


def test_a_cache_is_refused(tmp_path):
    """A file that could name a cache could have pickles in it opened."""
    X, y = make_numbers()
    cached = make_pipeline(StandardScaler(), model(), memory=str(tmp_path / "cache")).fit(X, y)
    with pytest.raises(TypeError, match=r"the pipeline: its parameter memory: .* cannot hold"):
        save(cached, tmp_path / "model")


def test_categories_that_are_neither_numbers_nor_words_are_refused(tmp_path):
    X = np.array([[b"a", 1.0], [b"b", 2.0]] * 20, dtype=object)
    columns = ColumnTransformer([("a", OneHotEncoder(sparse_output=False), [0])])
    pipeline = make_pipeline(columns, model()).fit(X, [0, 1] * 20)
    with pytest.raises(TypeError, match="'columntransformer/a': a model file cannot hold b'a'"):
        save(pipeline, tmp_path / "model")


def test_an_encoder_of_rare_categories_alone_is_refused(tmp_path):
    X, y = make_numbers()
    encoder = OneHotEncoder(min_frequency=1000, sparse_output=False)
    columns = ColumnTransformer([("a", encoder, [6])], remainder="passthrough")
    with pytest.raises(ModelFileError, match="every category of feature 0 is infrequent"):
        save(make_pipeline(columns, model()).fit(X, y), tmp_path / "model")


@pytest.mark.parametrize(
    "known",
    [
        np.array(["a", "é日\n", "zz"]),
        np.array(["a", "b", None], dtype=object),
        np.array([1, 2, 3], dtype=np.int8),
        np.array([0.5, 1.5, np.nan]),
        np.array([False, True, True]),
    ],
    ids=lambda known: f"{known.dtype}{known[-1]}",
)
def test_categories_of_every_kind_come_back(tmp_path, known):
    X = known[np.arange(60) % 3][:, None]
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    pipeline = make_pipeline(encoder, Euclidean(n_neighbors=1)).fit(X, np.arange(60) % 3 > 0)
    loaded = saved(pipeline, tmp_path)
    assert_same_answers(pipeline, loaded, X)
    (found,), (expected,) = loaded[0].categories_, pipeline[0].categories_
    assert (found.dtype, list(map(repr, found))) == (expected.dtype, list(map(repr, expected)))


def test_an_imputer_that_leaves_a_column_out(tmp_path):
    X, y = make_numbers()
    X[:, 2] = np.nan
    X[::2, 1] = np.nan
    for step in (SimpleImputer(), SimpleImputer(add_indicator=True),
                 SimpleImputer(keep_empty_features=True)):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline = make_pipeline(step, model()).fit(X, y)
            assert_same_answers(pipeline, saved(pipeline, tmp_path), X)
