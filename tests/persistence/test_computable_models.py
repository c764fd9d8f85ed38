"""Model files whose numbers are too large or small for their dtype are refused on load."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.base import clone

import latentmetric
from latentmetric import OASIS, Euclidean, MaPML, ModelFileError, save
from latentmetric.persistence import models
from latentmetric.persistence.model_file import write_model_file

X, Y = make_blobs(60)


def loaded_with(tmp_path, model, dtype, change):
    """Load the file of a fitted model after a change of its document and arrays."""
    document, arrays = models._contents(clone(model).fit(X.astype(dtype), Y))
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(document, arrays)
    write_model_file(tmp_path / "model", document, arrays)
    return latentmetric.load(tmp_path / "model")


def with_rank(rank):
    def change(document, arrays):
        dtype = arrays["components"].dtype
        arrays["components"] = np.ones((rank, 6), dtype)
        arrays["references"] = np.ones((len(arrays["references"]), rank), dtype)

    return change


def times(name, factor):
    def change(document, arrays):
        arrays[name] *= arrays[name].dtype.type(factor)

    return change


def setting(name, value):
    return lambda document, arrays: document.update({name: value})


@pytest.mark.parametrize("rank", [0, 7, 4_000])
def test_a_rank_that_the_features_do_not_allow_is_refused(tmp_path, rank):
    with pytest.raises(ModelFileError, match=f"rank {rank}, but 6 features allow only 1 to 6"):
        loaded_with(tmp_path, Euclidean(), np.float64, with_rank(rank))


@pytest.mark.parametrize(
    ("model", "dtype", "change", "message"),
    [
        (Euclidean(), np.float64, times("components", 1e300), "metric .*overflow in float64"),
        (Euclidean(), np.float32, times("components", 1e30), "metric .*overflow in float32"),
        (Euclidean(), np.float64, times("references", 1e200), "overflow in float64"),
        (Euclidean(), np.float32, times("references", 1e25), "overflow in float32"),
        (
            OASIS(psd=False, n_steps=10),
            np.float64,
            times("references", 1e307),
            "similarity .*overflow",
        ),
        (
            OASIS(psd=False, n_steps=10),
            np.float64,
            times("similarity", 1e300),
            "similarity holds 1.*e\\+300",
        ),
        (Euclidean(), np.float32, setting("scale", 1e60), "scale 1e\\+60"),
        (Euclidean(), np.float32, setting("scale", 1e-60), "scale 1e-60"),
        (Euclidean(), np.float32, setting("scale", 3e38), "overflow in float32"),
        (Euclidean(), np.float32, times("centre", 1e60), "centre, up to"),
    ],
)
def test_numbers_that_would_overflow_are_refused(tmp_path, model, dtype, change, message):
    with pytest.raises(ModelFileError, match=message):
        loaded_with(tmp_path, model, dtype, change)


@pytest.mark.parametrize(
    "change",
    [
        times("components", 1e14),
        times("components", 0),
        times("references", 1e15),
        setting("scale", 1e-30),
        setting("scale", 1e30),
        setting("temperature", 5e-324),
        setting("temperature", 1e308),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answers_of_a_model_that_loads_are_finite_or_refused(tmp_path, change, dtype):
    model = loaded_with(tmp_path, MaPML(2, n_steps=20, max_iter=1, refine=0), dtype, change)
    for size in 10.0 ** np.arange(-10, 36, 5):
        queries = (size * X).astype(dtype)
        away = np.abs(queries - model.model_.coordinates.centre).max()
        if away > model.model_.reach * model.model_.coordinates.scale:
            with pytest.raises(ValueError, match="times the spread of the training rows away"):
                model.kneighbors(queries)
            continue
        assert np.isfinite(model.kneighbors(queries)[0]).all()
        assert np.isfinite(model.predict_proba(queries)).all()


def test_a_metric_of_rank_zero_is_a_row_of_zeros(tmp_path):
    opposed = np.array([[1.0], [-1.0], [1.0], [-1.0]] * 5)
    model = OASIS(psd=True, aggressiveness=1e9, n_steps=500, random_state=0)
    model.fit(opposed, ["a", "a", "b", "b"] * 5)
    save(model, tmp_path / "model")
    assert len(latentmetric.load(tmp_path / "model").components_) == 1
