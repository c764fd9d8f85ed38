"""A loaded model predicts as the saved one, bit for bit; a damaged file is refused."""

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest
from helpers import make_blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import CODE_EVENTS, NEW_CHECKSUM, OLD_CHECKSUM, Opened
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import latentmetric
from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML, ModelFileError, save

GOLDEN = Path(__file__).parent.parent / "golden" / "models"

FEW = {"max_iter": 2, "n_steps": 200, "random_state": 0}

MODELS = [
    MaPML(**FEW),
    MaPML(0.3, reference="original", weights="kernel", n_components=3, max_norm=2.0, **FEW),
    MaPML(5, early_stopping=True, weights="kernel", init="k-means++", **FEW),
    LMNN(max_iter=20, weights="distance"),
    OASIS(psd=False, n_steps=200, random_state=0),
    OASIS(n_steps=200, random_state=0, psd=True, weights="kernel"),
    HRSGD(n_steps=200, random_state=0, weights="distance"),
    Euclidean(n_neighbors=1),
]

LABELS = [
    np.array([-3, 0, 7]),
    np.array([1, 2, 200], dtype=np.uint8),
    np.array([0, 1, 2**63 + 5], dtype=np.uint64),
    np.array(["a", "b,[{", "é日\n"]),
    np.array(["a", "b", "c"], dtype="U50"),
    np.array(["a", "\ud800", "\x00c"], dtype=object),
    np.array([False, True, True]),
    np.array([0.0, 1.0, 2.0]),
    np.array([-1.0, 0.0, 1024.0], dtype=np.float16),
]

each_model = pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{type(model).__name__}{MODELS.index(model)}"
)


def fitted(model, dtype=np.float64, labels=None):
    X, y = make_blobs(150)
    y = y if labels is None else labels[y]
    return clone(model).fit(X.astype(dtype), y)


def answers(model, X):
    found = [model.predict(X), model.predict_proba(X), *model.kneighbors(X, 4)]
    if hasattr(model, "transform"):
        found += [model.transform(X), model.get_mahalanobis_matrix()]
    return found


def assert_same_answers(model, other, X):
    for one, another in zip(answers(model, X), answers(other, X), strict=True):
        assert one.dtype == another.dtype
        assert one.shape == another.shape
        assert (one == another).all() if one.dtype == object else one.tobytes() == another.tobytes()


def assert_same_attributes(model, other):
    assert vars(model).keys() == vars(other).keys()
    for name in ("classes_", "latent_examples_", "latent_labels_", "margins_", "similarity_"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(model, name), getattr(other, name), strict=True)
    for name in ("history_", "n_iter_", "best_iter_", "n_features_in_", "_temperature"):
        assert getattr(model, name, None) == getattr(other, name, None)
    assert model.get_params() == other.get_params()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_model
def test_round_trip_is_exact_to_the_last_bit(tmp_path, model, dtype):
    model = fitted(model, dtype)
    save(model, tmp_path / "model")
    loaded = latentmetric.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert_same_attributes(model, loaded)
    assert_same_answers(model, loaded, make_blobs(60, seed=1)[0].astype(dtype))


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(labels.dtype))
@pytest.mark.parametrize("model", [MODELS[0], MODELS[4]], ids=["MaPML", "OASIS"])
def test_labels_of_every_kind_come_back(tmp_path, model, labels):
    model = fitted(model, labels=labels)
    save(model, str(tmp_path / "model"))
    loaded = latentmetric.load(str(tmp_path / "model"))
    assert_same_attributes(model, loaded)
    assert_same_answers(model, loaded, make_blobs(60, seed=1)[0])


def test_a_loaded_model_can_be_used_like_the_fitted_one(tmp_path):
    """Set references, warm starts, clones and another save."""
    X, y = make_blobs(150)
    model = fitted(MaPML(warm_start=True, **FEW))
    save(model, tmp_path / "model")
    loaded = latentmetric.load(tmp_path / "model")
    assert_same_answers(model.fit(X, y), loaded.fit(X, y), X)
    assert_same_answers(
        model.set_references(X[:50], y[:50]), loaded.set_references(X[:50], y[:50]), X
    )
    save(loaded, tmp_path / "again")
    assert_same_answers(model, latentmetric.load(tmp_path / "again"), X)
    assert clone(loaded).get_params() == model.get_params()


def test_feature_names_come_back(tmp_path):
    X, y = make_blobs(150)
    frame = pandas.DataFrame(X, columns=[f"<b>é{number}" for number in range(X.shape[1])])
    model = MaPML(**FEW).fit(frame, y)
    save(model, tmp_path / "model")
    loaded = latentmetric.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    assert loaded.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    ("labels", "ratio"),
    [(LABELS[0], {-3: 1, 0: np.int64(2), np.int64(7): 3}), (LABELS[3], None), (LABELS[6], None)],
    ids=["numbers", "strings", "Booleans"],
)
def test_latent_examples_by_class_come_back(tmp_path, labels, ratio):
    ratio = ratio or dict.fromkeys(np.unique(labels).tolist(), 2)
    model = fitted(MaPML(ratio, **FEW), labels=labels)
    save(model, tmp_path / "model")
    loaded = latentmetric.load(tmp_path / "model")
    assert loaded.n_latents == ratio
    assert_same_answers(loaded, loaded.fit(*_data(labels)), make_blobs(60, seed=1)[0])


def _data(labels):
    X, y = make_blobs(150)
    return X, labels[y]


def test_a_random_state_that_is_not_a_seed_is_left_out_and_the_file_says_so(tmp_path):
    model = fitted(MaPML(max_iter=1, n_steps=50, random_state=np.random.RandomState(0)))
    save(model, tmp_path / "model")
    assert latentmetric.load(tmp_path / "model").random_state is None
    assert Opened.of((tmp_path / "model").read_bytes()).document["not_stored"] == ["random_state"]


def test_the_header_describes_the_model(tmp_path):
    model = fitted(MaPML(**FEW), labels=LABELS[3])
    save(model, tmp_path / "model")
    document = Opened.of((tmp_path / "model").read_bytes()).document
    assert document["format_version"] == 1
    assert document["estimator"] == "MaPML"
    assert document["versions"]["latentmetric"] == latentmetric.__version__
    assert document["parameters"]["n_steps"] == 200
    assert document["classes"]["values"] == LABELS[3].tolist()
    assert document["n_features"] == 6
    assert document["n_references"] == len(model.latent_examples_)
    assert [record["round"] for record in document["history"]] == [0, 1, 2, 3, 4, 5]
    assert [record.get("refinement") for record in document["history"][2:]] == [None, 1, 2, 3]
    assert document["history"][0]["start"] == model.history_[0]["start"]
    assert document["history"][0]["start_errors"] == model.history_[0]["start_errors"]


def test_the_history_of_a_start_comes_back(tmp_path):
    X, y = make_blobs()
    model = MaPML(n_steps=50, max_iter=1, refine=1, random_state=0).fit(X, y)
    assert {"start", "start_losses", "start_errors"} <= model.history_[0].keys()
    save(model, tmp_path / "model")
    assert latentmetric.load(tmp_path / "model").history_ == model.history_


def test_a_history_that_is_not_finite_comes_back(tmp_path):
    model = fitted(Euclidean())
    model.history_ = [{"round": 0, "objective": np.inf, "norm": -np.inf, "seconds": {}}]
    save(model, tmp_path / "model")
    assert latentmetric.load(tmp_path / "model").history_ == model.history_


class _Mine(MaPML):
    pass


def test_models_that_cannot_be_saved_are_reported_and_nothing_is_written(tmp_path):
    X, y = make_blobs(60)
    refused = [
        (Euclidean(), NotFittedError, "not fitted"),
        (_Mine(**FEW).fit(X, y), TypeError, "_Mine cannot be saved: a model file holds no code"),
        (
            GridSearchCV(Euclidean(), {"n_neighbors": [1]}, cv=2).fit(X, y),
            TypeError,
            r"GridSearchCV cannot .* or a Pipeline that ends in one; save its best_estimator_",
        ),
        (Euclidean().fit(X, y).set_params(n_neighbors=0), ValueError, "n_neighbors"),
        (MaPML(**FEW).fit(X, y).set_params(max_norm="x"), TypeError, "max_norm"),
        (MaPML(**FEW).fit(X, y).set_params(n_components=7), ValueError, "n_components"),
        (Euclidean().fit(X, y.astype("M8[D]")), TypeError, "labels that are integers, floats"),
    ]
    for model, kind, message in refused:
        with pytest.raises(kind, match=message):
            save(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals of POSIX")
def test_a_process_killed_while_it_writes_leaves_the_old_model(tmp_path):
    model = fitted(Euclidean())
    save(model, tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    script = (
        "import os, signal, sys, latentmetric\n"
        "from latentmetric.persistence import model_file\n"
        "model = latentmetric.load(sys.argv[1])\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "latentmetric.save(model.set_params(n_neighbors=1), sys.argv[1])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "model"], env=os.environ, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "model").read_bytes() == before
    assert latentmetric.load(tmp_path / "model").n_neighbors == 3


def test_loading_imports_compiles_and_executes_nothing():
    """An audit hook watches in a process of its own, because a hook cannot be removed."""
    script = (
        "import sys, latentmetric\n"
        "from latentmetric.registry import ESTIMATORS, estimator_class\n"
        "for name in ESTIMATORS: estimator_class(name)\n"
        "latentmetric.load(sys.argv[1])\n"
        "seen = []\n"
        "sys.addaudithook(lambda event, arguments: seen.append(event))\n"
        "for path in sys.argv[1:]: latentmetric.load(path)\n"
        "events, seen = seen, []\n"
        "assert events.count('open') == len(sys.argv) - 1, events\n"
        f"assert not set(events) & {CODE_EVENTS}, set(events)\n"
    )
    paths = sorted(GOLDEN.glob("*.safetensors"))
    subprocess.run([sys.executable, "-c", script, *paths], env=os.environ, check=True)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.safetensors")), ids=lambda path: path.stem)
def test_models_of_format_version_1_can_still_be_read(path):
    expected = np.load(GOLDEN / "expected.npz")
    model = latentmetric.load(path)
    queries = expected["queries"].astype(model.model_.references.rows.dtype)
    distances, neighbours = model.kneighbors(queries)
    np.testing.assert_array_equal(neighbours, expected[f"{path.stem} neighbours"])
    np.testing.assert_array_equal(
        model.predict(queries).astype(str), expected[f"{path.stem} labels"]
    )
    np.testing.assert_allclose(distances, expected[f"{path.stem} distances"], rtol=1e-4)
    np.testing.assert_allclose(
        model.predict_proba(queries), expected[f"{path.stem} shares"], rtol=1e-3, atol=1e-6
    )


def change(opened, *path, to):
    holder = opened.document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = to


DEEP = [[[[[[[[[[]]]]]]]]]]

WRONG_DOCUMENTS = [
    (("estimator",), "os.system", "is not one of"),
    (("estimator",), ["MaPML"], "is not one of"),
    (("estimator",), "Euclidean", "parameter.* unknown"),
    (("parameters",), [], "parameters"),
    (("parameters", "n_neighbors"), 0, "n_neighbors"),
    (("parameters", "n_neighbors"), [3], "n_neighbors"),
    (("parameters", "n_jobs"), 2**40, "n_jobs"),
    (("parameters", "metric_reg"), 10**400, "parameter"),
    (("parameters", "metric_reg"), "1", "metric_reg"),
    (("parameters", "n_latents"), {"by_class": [[0, 0]]}, "n_latents"),
    (("parameters", "n_latents"), {"by_class": [[DEEP, 1]]}, "n_latents"),
    (("parameters", "n_latents"), {"else": 1}, "n_latents"),
    (("parameters", "random_state"), -1, "random_state"),
    (("parameters", "random_state"), "cos", "random_state"),
    (("parameters", "n_components"), 7, "n_components"),
    (("parameters", "unknown"), 7, "unknown"),
    (("classes",), [0, 1, 2], "classes"),
    (("classes", "values"), [0, 1], "outside the 2 classes"),
    (("classes", "values"), [0], "at least two"),
    (("classes", "values"), [2, 1, 0], "ascending"),
    (("classes", "values"), [0, 1, 1], "ascending"),
    (("classes", "values"), [0, 1, True], "have dtype int64"),
    (("classes", "values"), [0, 1, "2"], "have dtype int64"),
    (("classes", "values"), [0, 1, 2**64], "out of the range of int64"),
    (("classes", "dtype"), "O", "unknown dtype"),
    (("classes", "dtype"), ["int64"], "unknown dtype"),
    (("classes",), {"dtype": "str", "values": ["a", "b", "c"]}, "width"),
    (("classes",), {"dtype": "str", "values": ["a", "b", "cd"], "width": 1}, "exactly in <U1"),
    (("classes",), {"dtype": "str", "values": ["a", "b", "c" * 2**23], "width": 2**23}, "too much"),
    (("classes",), {"dtype": "float16", "values": [0.0, 1.0, 1e9]}, "exactly in float16"),
    (("n_features",), 5, "shape"),
    (("n_features",), 6.0, "n_features"),
    (("feature_names",), ["a"], "1 feature names are given for 6"),
    (("feature_names",), [1] * 6, "strings"),
    (("columns",), ["kind"], "the columns are not names of label and id"),
    (("columns",), {"label": 1}, "the columns are not names of label and id"),
    (("columns",), {"weight": "w"}, "the columns are not names of label and id"),
    (("n_references",), 3, "shape"),
    (("n_references",), 0, "n_references"),
    (("scale",), 0, "scale"),
    (("scale",), -1.0, "scale"),
    (("scale",), None, "scale"),
    (("scale",), 10**400, "scale"),
    (("temperature",), 10**400, "temperature"),
    (("temperature",), -1, "temperature"),
    (("n_iter",), -1, "n_iter"),
    (("best_iter",), True, "best_iter"),
    (("history",), {}, "history"),
    (("history",), [3], "history"),
    (("history",), [{"round": DEEP}], "history"),
    (("history",), [{"round": "x"}], "history"),
    (("history",), [], "holds no round"),
    (("history",), [{"seconds": {}}], "round"),
    (("history",), [{"round": True, "seconds": {}}], "history"),
    (("history",), [{"round": 0.0, "seconds": {}}], "round"),
    (("history",), [{"round": -1, "seconds": {}}], "round"),
    (("history",), [{"round": 0}], "seconds"),
    (("history",), [{"round": 0, "seconds": 3}], "seconds"),
    (("history",), [{"round": 0, "seconds": {"metric": None}}], "not a number"),
    (("history",), [{"round": 0, "seconds": {"metric": "inf"}}], "seconds"),
    (("history",), [{"round": 0, "seconds": {}, "objective": {"a": 1}}], "not a number"),
    (("history",), [{"round": 0, "seconds": {}, "objective": None}], "not a number"),
    (("history",), [{"round": 0, "seconds": {}, "objective": "within"}], "not a number"),
    (("history",), [{"round": 0, "seconds": {}, "start": "nowhere"}], "not one of euclidean"),
    (("history",), [{"round": 0, "seconds": {}, "objective": 10**400}], "not a number"),
    (("history",), [{"round": 0, "seconds": {}, "objective": "low"}], "not a number"),
    (("history",), [{"round": 0, "seconds": {}, "start": 3}], "not one of euclidean"),
    (("history",), [{"round": 0, "seconds": {}, "start": {"a": 1}}], "not one of euclidean"),
    (("history",), [{"round": 0, "seconds": {}, "start": "\x1b[2J"}], "not one of euclidean"),
    (("history",), [{"round": 0, "seconds": {}, "start_losses": 3}], "start_losses"),
    (("history",), [{"round": 0, "seconds": {}, "start_errors": {"a": "b"}}], "not a number"),
    (("history",), [{"round": 0, "seconds": {}, "start_errors": {"a": {}}}], "not a number"),
    (("versions",), None, "versions"),
    (("versions",), ["1.0"], "versions"),
    (("versions",), {"numpy": 2}, "versions"),
]  # fmt: skip


@pytest.fixture(scope="module")
def mapml_content(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    save(fitted(MaPML(**FEW)), path)
    return path.read_bytes()


def load_bytes(folder, content):
    (folder / "changed").write_bytes(content)
    return latentmetric.load(folder / "changed")


@pytest.mark.parametrize(("path", "value", "message"), WRONG_DOCUMENTS)
def test_an_inconsistent_document_is_reported(tmp_path, mapml_content, path, value, message):
    opened = Opened.of(mapml_content)
    change(opened, *path, to=value)
    with pytest.raises(ModelFileError, match=f"changed: .*{message}"):
        load_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize("width", [1, 50, 2**16, 2**23, 2**26])
def test_labels_take_little_more_memory_than_they_need(tmp_path, mapml_content, width):
    """A file of a few bytes could ask for megabytes with each answer."""
    opened = Opened.of(mapml_content)
    change(opened, "classes", to={"dtype": "str", "values": ["a", "b", "c"], "width": width})
    model = load_bytes(tmp_path, opened.closed())
    assert model.classes_.dtype == f"U{min(width, 256)}"
    assert set(model.predict(make_blobs()[0]).tolist()) <= set("abc")
    save(model, tmp_path / "again")
    assert latentmetric.load(tmp_path / "again").classes_.dtype == model.classes_.dtype


def test_wide_labels_that_are_short_are_saved(tmp_path):
    labels = np.array(["a", "b"], dtype=f"U{2**24}")
    model = Euclidean(n_neighbors=1).fit([[0.0], [1.0]], ["a", "b"])
    model.classes_ = labels
    save(model, tmp_path / "model")
    assert latentmetric.load(tmp_path / "model").predict([[0.9]]).tolist() == ["b"]


@pytest.mark.parametrize(
    "key",
    ["estimator", "parameters", "classes", "n_features", "n_references", "scale", "temperature",
     "n_iter", "best_iter", "history", "format_version", "checksums", "transposed", "versions"],
)  # fmt: skip
def test_an_incomplete_document_is_reported(tmp_path, mapml_content, key):
    opened = Opened.of(mapml_content)
    del opened.document[key]
    with pytest.raises(ModelFileError):
        load_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("components", 0, np.nan, "not finite"),
        ("references", 3, np.inf, "not finite"),
        ("reference_norms", 0, -np.inf, "not finite"),
        ("centre", 0, np.nan, "not finite"),
        ("margins", 1, np.nan, "not finite"),
        ("latent_examples", 1, np.nan, "not finite"),
        ("reference_codes", 0, 3, "outside the 3 classes"),
        ("reference_codes", 0, -1, "outside the 3 classes"),
        ("latent_codes", 0, 2, "latent_codes are not in ascending order"),
        ("latent_counts", 0, np.inf, "not finite"),
        ("latent_counts", 0, -1.0, "latent_counts holds a number below 0"),
        ("score_quantiles", 0, np.nan, "not finite"),
    ],
)
def test_numbers_out_of_range_are_reported(tmp_path, mapml_content, name, at, value, message):
    opened = Opened.of(mapml_content)
    opened.array(name)[at] = value
    opened.update_checksums()
    with pytest.raises(ModelFileError, match=message):
        load_bytes(tmp_path, opened.closed())


def test_arrays_of_another_estimator_are_reported(tmp_path, mapml_content):
    opened = Opened.of(mapml_content)
    opened.document |= {"estimator": "Euclidean", "parameters": {}}
    with pytest.raises(ModelFileError, match="is not part of this estimator"):
        load_bytes(tmp_path, opened.closed())
    opened.document["estimator"] = "OASIS"
    with pytest.raises(ModelFileError, match="'similarity' is missing"):
        load_bytes(tmp_path, opened.closed())


def test_weights_that_need_a_metric_are_refused_without_one(tmp_path):
    save(fitted(OASIS(psd=False, n_steps=10)), tmp_path / "model")
    opened = Opened.of((tmp_path / "model").read_bytes())
    change(opened, "parameters", "weights", to="distance")
    change(opened, "parameters", "psd", to=True)
    with pytest.raises(ModelFileError, match="weights='distance'"):
        load_bytes(tmp_path, opened.closed())


ALL_GOLDEN = [path.read_bytes() for path in sorted(GOLDEN.glob("*.safetensors"))]


@settings(max_examples=400)
@given(
    content=st.sampled_from(ALL_GOLDEN),
    mutate=st.sampled_from(OLD_CHECKSUM + NEW_CHECKSUM),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_changed_file_is_a_model_or_is_refused(tmp_path_factory, content, mutate, seed):
    folder = tmp_path_factory.getbasetemp()
    original = load_bytes(folder, content)
    X = np.load(GOLDEN / "expected.npz")["queries"].astype(original.model_.references.rows.dtype)
    try:
        model = load_bytes(folder, mutate(content, np.random.default_rng(seed)))
    except ModelFileError:
        return
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        away = np.abs((X - model.model_.coordinates.centre) / model.model_.coordinates.scale)
        if mutate in NEW_CHECKSUM and away.max() > model.model_.reach:
            with pytest.raises(ValueError, match="away from their centre"):
                model.predict(X)
            return
        assert np.isin(model.predict(X), model.classes_).all()
        model.predict_proba(X)
        model.kneighbors(X, 1)
        if mutate in OLD_CHECKSUM:
            assert_same_answers(model, original, X)
