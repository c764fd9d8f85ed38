"""A loaded model predicts as the saved one, bit for bit."""

import os
from pathlib import Path

import numpy as np
import pandas
import pytest
from helpers import make_blobs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import latentmetric
from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML, save
from latentmetric.persistence.models import versions_of

GOLDEN = Path(__file__).parent.parent / "golden" / "models"

FEW = {"max_iter": 2, "n_steps": 200, "random_state": 0}

MODELS = [
    (MaPML(5, bandwidth="latent", **FEW), np.float32),
    (MaPML(bandwidth="class", ridge=0.1, random_state=0), np.float64),
    (MaPML(0.3, reference="original", weights="kernel", n_components=3, max_norm=2.0, **FEW),
     np.float32),
    (LMNN(max_iter=20, weights="distance"), np.float64),
    (OASIS(psd=False, n_steps=200, random_state=0), np.float32),
    (HRSGD(n_steps=200, random_state=0, weights="distance"), np.float32),
    (Euclidean(n_neighbors=1), np.float64),
]  # fmt: skip

LABELS = [
    np.array([-3, 0, 7]),
    np.array([0, 1, 2**63 + 5], dtype=np.uint64),
    np.array(["a", "b,[{", "é日\n"]),
    np.array(["a", "\ud800", "\x00c"], dtype=object),
    np.array([False, True, True]),
    np.array([-1.0, 0.0, 1024.0], dtype=np.float16),
]


def fitted(model, dtype=np.float64, labels=None):
    X, y = make_blobs(150)
    y = y if labels is None else labels[y]
    return clone(model).fit(X.astype(dtype), y)


def saved(model, folder):
    save(model, folder / "model")
    return latentmetric.load(folder / "model")


def answers(model, X):
    found = [model.predict(X), model.predict_proba(X), *model.kneighbors(X)]
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
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(other, name), value, strict=True)
        elif name != "model_":
            assert getattr(other, name) == value
    np.testing.assert_array_equal(model.model_.references.norms, other.model_.references.norms)
    for name in ("log_scales", "log_weights"):
        values = (getattr(each.model_, name) for each in (model, other))
        np.testing.assert_array_equal(*values, strict=True)


@pytest.mark.parametrize(("model", "dtype"), MODELS)
def test_round_trip_is_exact_to_the_last_bit(tmp_path, model, dtype):
    model = fitted(model, dtype)
    loaded = saved(model, tmp_path)
    assert type(loaded) is type(model)
    assert_same_attributes(model, loaded)
    assert_same_answers(model, loaded, make_blobs(60, seed=1)[0].astype(dtype))


@pytest.mark.parametrize("model", [MaPML(5, **FEW), OASIS(n_steps=50), Euclidean()], ids=str)
def test_ids_of_rows_come_back(tmp_path, model):
    X, y = make_blobs(150)
    ids = [f"é日\ud800\x00{number}" for number in range(147)] + ["", 2**70, None]
    without = clone(model).fit(X, y)
    save(without, tmp_path / "without")
    model = clone(model).fit(X, y, row_ids=ids)
    if hasattr(model, "history_"):
        model.history_ = without.history_  # its seconds have another length in each fit
    loaded = saved(model, tmp_path)
    assert loaded.model_.row_ids.tolist() == model.model_.row_ids.tolist()
    kept = [one for one in model.model_.row_ids.ravel().tolist() if one is not None]
    size = sum(len(str(one).encode("utf-8", "surrogatepass")) + 9 for one in kept)
    more = (tmp_path / "model").stat().st_size - (tmp_path / "without").stat().st_size
    assert more <= size + 16 * len(model.model_.references) + 1000
    assert b"id_lengths" not in (tmp_path / "without").read_bytes()


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(labels.dtype))
def test_labels_of_every_kind_come_back(tmp_path, labels):
    counts = {label: np.int64(2) for label in np.unique(labels)}
    model = fitted(MaPML(counts, **FEW), labels=labels)
    loaded = saved(model, tmp_path)
    assert_same_attributes(model, loaded)
    assert_same_answers(model, loaded, make_blobs(60, seed=1)[0])


def test_a_loaded_model_can_be_used_like_the_fitted_one(tmp_path):
    """Warm starts, set references, more rows and classes, clones and another save."""
    X, y = make_blobs(150)
    model = fitted(MaPML(warm_start=True, bandwidth="latent", **FEW))
    assert model.model_.log_scales.any()
    loaded = saved(model, tmp_path)
    assert_same_answers(model.fit(X, y), loaded.fit(X, y), X)
    assert_same_answers(model.partial_fit(X + 0.1, y), loaded.partial_fit(X + 0.1, y), X)
    assert_same_answers(model, saved(loaded, tmp_path), X)
    more = (X[:30] + 9, np.full(30, 5))
    assert_same_answers(model.add_classes(*more), loaded.add_classes(*more), X)
    assert_same_answers(model, saved(loaded, tmp_path), X)
    rows = (X[:50], y[:50])
    assert_same_answers(model.set_references(*rows), loaded.set_references(*rows), X)
    again = saved(loaded, tmp_path)
    assert_same_answers(model, again, X)
    assert clone(again).get_params() == model.get_params()


def test_a_model_that_waits_for_rows_of_a_class_can_be_saved_and_used(tmp_path):
    X, y = make_blobs(90)
    model = MaPML(**FEW).partial_fit(X[y != 1], y[y != 1], classes=[0, 1, 2])
    loaded = saved(model, tmp_path)
    assert 1 not in loaded.latent_labels_
    assert_same_answers(model, loaded, X)
    np.testing.assert_array_equal(loaded.label_scores(X, y), model.label_scores(X, y))
    more = saved(loaded, tmp_path).add_classes(X[:30] + 9, np.full(30, 5))
    assert more.classes_.tolist() == [0, 1, 2, 5]
    assert_same_answers(model.partial_fit(X, y), loaded.partial_fit(X, y), X)


def test_names_of_features_and_columns_come_back(tmp_path):
    X, y = make_blobs(150)
    frame = pandas.DataFrame(X, columns=[f"<b>é{number}" for number in range(X.shape[1])])
    model = MaPML(**FEW).fit(frame, y)
    model.columns_in_ = {"label": "kind", "id": "é"}
    loaded = saved(model, tmp_path)
    assert_same_attributes(model, loaded)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(("scale", "dtype"), [(1e300, "f8"), (1e-30, "f4")])
def test_models_of_any_unit_are_saved(tmp_path, scale, dtype):
    X, y = make_blobs(60)
    X = ((X + 100) * scale).astype(dtype)
    model = MaPML(2, max_iter=1, n_steps=50, refine=1, random_state=0)
    assert_same_answers(model.fit(X, y, np.full(60, 1e14)), saved(model, tmp_path), X)


def test_a_random_state_that_is_not_a_seed_is_left_out(tmp_path):
    model = fitted(MaPML(max_iter=1, n_steps=50, random_state=np.random.RandomState(0)))
    assert saved(model, tmp_path).random_state is None


def test_the_file_says_what_wrote_it(tmp_path):
    save(fitted(Euclidean()), tmp_path / "model")
    found = versions_of(tmp_path / "model")
    assert found["format_version"] == 2
    assert found["versions"]["latentmetric"] == latentmetric.__version__


class Mine(MaPML):
    pass


SMALL_BLOBS = make_blobs(60)


@pytest.mark.parametrize(
    ("model", "changes", "kind", "message"),
    [
        (StandardScaler(), {}, TypeError, "cannot be saved.*; keep others with joblib"),
        (Mine(**FEW), {}, TypeError, "Mine cannot be saved: a model file holds no code"),
        (GridSearchCV(Euclidean(), {"n_neighbors": [1]}, cv=2), {}, TypeError,
         "or a Pipeline that ends in one; save its best_estimator_"),
        (Euclidean(), {"n_neighbors": 0}, ValueError, "n_neighbors"),
        (MaPML(**FEW), {"n_components": 7}, ValueError, "n_components"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_refused_and_nothing_is_written(
    tmp_path, model, changes, kind, message
):
    with pytest.raises(NotFittedError):
        save(model, tmp_path / "model")
    with pytest.raises(kind, match=message):
        save(model.fit(*SMALL_BLOBS).set_params(**changes), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_file_without_the_chosen_number_of_latents_has_the_given_one():
    old = latentmetric.load(GOLDEN / "mapml.safetensors")
    assert old.n_latents_ == 0.1
    with pytest.raises(ValueError, match="no thresholds: it was saved by an earlier version"):
        old.reject_threshold(0.1)


def test_labels_that_are_dates_are_refused(tmp_path):
    X, y = SMALL_BLOBS
    with pytest.raises(TypeError, match="labels that are integers, floats"):
        save(Euclidean().fit(X, y.astype("M8[D]")), tmp_path / "model")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.safetensors")), ids=lambda path: path.stem)
def test_files_that_people_have_kept_can_be_read(path):
    """Where only the nearest 20 references voted when a file was written, shares moved a little."""
    expected, model = np.load(GOLDEN / "expected.npz"), latentmetric.load(path)
    dtype = {"pipeline": np.int8, "mapml": np.float64, "published": np.float64}.get(path.stem, "f4")
    shares = model.predict_proba(expected["queries"].astype(dtype))
    np.testing.assert_allclose(shares, expected[path.stem], rtol=1e-3, atol=1e-4)
