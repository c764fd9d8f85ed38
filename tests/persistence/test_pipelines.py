"""A loaded pipeline answers as the saved one, bit for bit; what a file cannot hold is refused."""

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
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

from latentmetric import Euclidean, load, save


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


NOTHING = {"nothing": []}


@pytest.mark.parametrize("name", OF_NUMBERS | OF_GAPS | NOTHING)
def test_steps_of_numbers_come_back_to_the_last_bit(tmp_path, name):
    X, y = make_numbers()
    X = with_gaps(X) if name in OF_GAPS else X
    X = X.astype(np.float32 if len(name) % 2 else np.float64)
    steps = (OF_NUMBERS | OF_GAPS | NOTHING)[name]
    pipeline = clone(make_pipeline(*steps, model())).fit(X, y)
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
    known = {"dtype": np.float32, "drop": [9.0], "categories": [[1.0, 2.0, 5.0, 9.0]]}
    columns = ColumnTransformer(
        [("a", OneHotEncoder(**known), [6])], remainder=StandardScaler(with_mean=False), n_jobs=1
    )
    step = saved(make_pipeline(columns, model()).fit(X, y), tmp_path)[0]
    assert step.remainder.with_mean is False
    assert step.n_jobs is None, "a file does not say how many threads to take"
    assert step.transformers[0][1].get_params().items() >= known.items()


class Scaler(StandardScaler):
    pass


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([QuantileTransformer(n_quantiles=5), model()], "'quantiletransformer' is a sklearn.*may"),
        ([ColumnTransformer([("logs", FunctionTransformer(abs), [0])]), model()],
         r"'columntransformer/logs' is a .*FunctionTransformer"),
        ([StandardScaler(), LogisticRegression()], "'logisticregression'.*must end in one of MaP"),
        ([Scaler(), model()], "the step 'scaler' is a "),
        ([SimpleImputer(strategy=np.max), model()], "'simpleimputer': its parameter strategy"),
        ([OneHotEncoder(feature_name_combiner=lambda a, b: a, handle_unknown="ignore",
                        sparse_output=False), model()], "its parameter feature_name_combiner"),
    ],
)  # fmt: skip
def test_what_a_file_cannot_hold_is_refused_by_name(tmp_path, steps, message):
    with pytest.raises(TypeError, match=message):
        save(make_pipeline(*steps).fit(*make_numbers()), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_cache_and_a_pipeline_without_a_fit_are_refused(tmp_path):
    """A file that could name a cache could have pickles in it opened."""
    cached = make_pipeline(StandardScaler(), model(), memory=str(tmp_path / "cache"))
    with pytest.raises(NotFittedError):
        save(cached, tmp_path / "model")
    with pytest.raises(TypeError, match=r"the pipeline: its parameter memory: .* cannot hold"):
        save(cached.fit(*make_numbers()), tmp_path / "model")


@pytest.mark.parametrize(
    "known",
    [
        np.array(["a", "é日\n", "zz"]),
        np.array(["a", "b", None], dtype=object),
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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", ["passthrough", StandardScaler(), MinMaxScaler()])
def test_an_imputer_that_leaves_a_column_out(tmp_path, first):
    X, y = make_numbers()
    X[:, 2] = X[::2, 1] = np.nan
    for parameters in ({"add_indicator": True}, {"keep_empty_features": True}):
        pipeline = make_pipeline(first, SimpleImputer(**parameters), model()).fit(X, y)
        assert_same_answers(pipeline, saved(pipeline, tmp_path), X)
