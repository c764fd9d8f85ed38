"""A loaded pipeline answers as the saved one, bit for bit; what a file cannot hold is refused."""

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import CODE_EVENTS, NEW_CHECKSUM, OLD_CHECKSUM, Opened
from pipelines import OF_FRAMES, OF_GAPS, OF_NUMBERS, make_frame, make_numbers, model, with_gaps
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

import latentmetric
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OF_NUMBERS | OF_GAPS)
def test_steps_of_numbers_come_back_to_the_last_bit(tmp_path, name, dtype):
    X, y = make_numbers()
    X = (with_gaps(X) if name in OF_GAPS else X).astype(dtype)
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


def test_a_step_that_is_not_fitted_is_refused(tmp_path):
    X, y = make_numbers()
    with pytest.raises(NotFittedError):
        save(Pipeline([("a", StandardScaler()), ("b", model().fit(X, y))]), tmp_path / "model")


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
    with pytest.raises(TypeError, match=r"the pipeline: a model file cannot hold .* memory="):
        save(cached, tmp_path / "model")
    save(make_pipeline(StandardScaler(), model()).fit(X, y), tmp_path / "model")
    opened = Opened.of((tmp_path / "model").read_bytes())
    opened.document["parameters"]["memory"] = "cache"
    with pytest.raises(ModelFileError, match="Pipeline has no parameter 'memory' that a file may"):
        load_bytes(tmp_path, opened.closed())


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
        np.array(["a", "b", np.nan], dtype=object),
        np.array(["a", "b", None], dtype=object),
        np.array([1, 2, 3]),
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


def load_bytes(folder, content):
    (folder / "changed").write_bytes(content)
    return load(folder / "changed")


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Files of a pipeline of numbers and of one with words."""
    path = tmp_path_factory.mktemp("contents") / "model"
    found = []
    for steps, (X, y) in (
        ([SimpleImputer(add_indicator=True), StandardScaler(), PCA(3)], make_numbers()),
        (OF_NUMBERS["columns"], make_numbers()),
        ([OF_FRAMES["chosen by type"]], make_frame()),
    ):
        save(make_pipeline(*map(clone, steps), model()).fit(X, y), path)
        found.append(path.read_bytes())
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("steps"), "the steps are not a list"),
        (lambda d: d.pop("model"), "no model"),
        (lambda d: d.pop("name"), "the name of the last step"),
        (lambda d: d.update(name="pca"), "the name of the last step"),
        (lambda d: d["steps"][1].__setitem__(0, "pca"), "occurs twice"),
        (lambda d: d["steps"][1].__setitem__(1, "drop"), "only columns can be dropped"),
        (lambda d: d["steps"][1][1].update(kind="Popen"), "'standardscaler' is not one of Stand"),
        (lambda d: d["steps"][1][1].update(n_features=5), "takes 5 features, but 8 come to it"),
        (lambda d: d["steps"].pop(), "'step_4_components' is not part of"),
        (lambda d: d["steps"][1][1]["found"].update(scale_=None), "no scale_, but with_std"),
        (lambda d: d["steps"][1][1]["found"].update(scale_=2.0), "scale_ .* not of the kind"),
        (lambda d: d["steps"][1][1]["found"].pop("mean_"), "does not have mean_"),
        (lambda d: d["steps"][1][1]["parameters"].update(with_mean="yes"), "not valid"),
        (lambda d: d["steps"][1][1]["parameters"].update(__class__=1), "no parameter '__class__'"),
        (lambda d: d["steps"][1][1].update(output="os"), "of no known kind"),
        (lambda d: d["steps"][0][1].update(fitted_to="datetime64"), "an unknown dtype"),
        (lambda d: d["steps"][0][1].update(indicated=[99]), "not numbers below 8"),
        (lambda d: d["steps"][0][1].update(indicated=None), "does not say which missing"),
        (lambda d: d["model"].update(estimator="Pipeline"), "'Pipeline' is not one of MaPML"),
    ],
)
def test_a_forged_pipeline_is_refused(tmp_path, contents, change, message):
    opened = Opened.of(contents[0])
    change(opened.document)
    with pytest.raises(ModelFileError, match=message):
        load_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(remainder="all"), "what becomes of other columns"),
        (lambda d: d.update(parts=[]), "holds no parts"),
        (lambda d: d["parts"][0].__setitem__(2, [99]), "not among its 4 features"),
        (lambda d: d["parts"][0].__setitem__(2, ["none"]), "not among its 4 features"),
        (lambda d: d["parts"][0].__setitem__(2, {"slice": [0, "1", 2]}), "are not a slice"),
        (lambda d: d["parts"][0].__setitem__(2, {"slice": [0, 9, 0]}), "slice step cannot be zero"),
        (lambda d: d["parts"][0].__setitem__(2, []), "has no columns, but is not dropped"),
        (lambda d: d["parts"][2].__setitem__(2, ["size"]), "what becomes of all columns"),
        (lambda d: d["parts"][2][1].update(infrequent=[[0, 1, 2, 3]]), "is infrequent"),
        (lambda d: d["parts"][2][1].update(categories=[]), "categories for 1 features"),
    ],
)
def test_forged_columns_are_refused(tmp_path, contents, change, message):
    opened = Opened.of(contents[2])
    change(opened.document["steps"][0][1])
    with pytest.raises(ModelFileError, match=message):
        load_bytes(tmp_path, opened.closed())


def test_steps_must_give_what_the_model_takes(tmp_path):
    X, y = make_numbers()
    save(make_pipeline(StandardScaler(), Normalizer(), model()).fit(X, y), tmp_path / "model")
    opened = Opened.of((tmp_path / "model").read_bytes())
    opened.document["steps"] = [["a", opened.document["steps"][1][1] | {"n_features": 5}]]
    names = [name for name in opened.arrays if name.startswith("step_")]
    at = len(opened.data)
    for name in names:
        entry = opened.arrays.pop(name)
        del opened.document["checksums"][name]
        at = min(at, entry["data_offsets"][0])
    del opened.data[at:]  # arrays are stored by name, and these come last
    with pytest.raises(ModelFileError, match="give 5 features, but the model takes 8"):
        load_bytes(tmp_path, opened.closed())


def test_an_encoder_cannot_ask_for_much_memory(tmp_path, contents):
    opened = Opened.of(contents[2])
    step = opened.document["steps"][0][1]["parts"][2][1]
    step.update(n_features=60_000, infrequent=None, feature_names=None)
    step["categories"] = [{"dtype": "bool", "values": [False]}] * 60_000
    step["categories"][0] = {"dtype": "object", "values": list(range(100_000))}
    opened.document["steps"] = [["a", step]]
    with pytest.raises(ModelFileError, match="60000 features and up to 100000 categories"):
        load_bytes(tmp_path, opened.closed())


@settings(max_examples=120)
@given(
    which=st.integers(0, 2),
    mutate=st.sampled_from(OLD_CHECKSUM + NEW_CHECKSUM),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_changed_file_is_a_pipeline_or_is_refused(
    tmp_path_factory, contents, which, mutate, seed
):
    changed = mutate(contents[which], np.random.default_rng(seed))
    try:
        loaded = load_bytes(tmp_path_factory.getbasetemp(), changed)
    except ModelFileError:
        return
    if mutate in OLD_CHECKSUM:
        X = make_frame()[0] if which == 2 else make_numbers()[0]
        original = load_bytes(tmp_path_factory.getbasetemp(), contents[which])
        assert_same_answers(original, loaded, X)


def test_loading_runs_no_code_of_the_file(tmp_path, contents):
    events = []
    load_bytes(tmp_path, contents[2])  # imports what is imported on first use
    watching = [True]

    def watch(event, arguments):
        if watching[0] and event in CODE_EVENTS:
            events.append(event)

    sys.addaudithook(watch)
    try:
        load_bytes(tmp_path, contents[2])
    finally:
        watching[0] = False
    assert not events


def test_the_file_says_what_it_holds(tmp_path, contents):
    document = Opened.of(contents[0]).document
    assert document["estimator"] == "Pipeline"  # a library that knows no steps refuses it
    assert document["model"]["estimator"] == "MaPML"
    assert document["format_version"] == latentmetric.persistence.model_file.FORMAT_VERSION
