"""Rows and labels are admitted or refused by the same rules, wherever they are stored."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import polars
import pytest
from hard_cases import hard_cases
from helpers import make_blobs

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML
from latentmetric.core import distances
from latentmetric.engines import local
from latentmetric.engines.dispatch import MEMORY

QUICK = {"n_steps": 100, "max_iter": 2, "random_state": 0}
ESTIMATORS = [
    MaPML.as_published(**QUICK),
    LMNN(max_iter=2),
    OASIS(psd=False, n_steps=50),
    OASIS(n_steps=50, psd=True),
    HRSGD(n_steps=50),
    Euclidean(),
]
LARGEST = float(np.finfo(np.float32).max)


def fresh(**parameters):
    return MaPML.as_published(**QUICK | parameters)


def ordered(model, scale):
    """Latent examples in units of the scale, sorted within each class.

    Beside an outlier of 10⁹ all other rows are equal up to rounding, and which of them comes first
    depends on the processor.
    """
    points = model.latent_examples_ / scale
    return points[np.lexsort((*points.round(3).T, model.latent_labels_))]


@pytest.mark.parametrize(
    ("X", "y"), [pytest.param(X, y, id=name) for name, X, y in list(hard_cases())[::3]]
)
def test_hard_data_gives_the_model_of_an_array(store, X, y):
    X = X.astype(np.float32)
    expected = fresh().fit(X, y)
    model = fresh().fit(store(X), y)
    assert model.n_features_in_ == X.shape[1]
    assert model.latent_examples_.dtype == expected.latent_examples_.dtype
    scale = np.abs(expected.latent_examples_).max()
    np.testing.assert_allclose(ordered(model, scale), ordered(expected, scale), atol=1e-3)
    np.testing.assert_array_equal(model.latent_labels_, expected.latent_labels_)
    assert np.all(np.isfinite(model.get_mahalanobis_matrix()))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        assert set(model.predict(X)) <= set(y)


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "?"])
def test_numbers_of_every_type_become_the_same_floats(store, dtype):
    X, y = make_blobs()
    X = (np.rint(X) + 20 if dtype[0] in "ui" else X).astype(dtype)
    model = fresh(max_iter=1).fit(store(X), y)
    expected = np.float64 if dtype == "i8" else np.float32
    assert model.components_.dtype == fresh(max_iter=1).fit(X, y).components_.dtype == expected


def bad_rows():
    X, _ = make_blobs()
    with_nan, with_inf, too_large = X.copy(), X.copy(), X.copy()
    with_nan[203, 1], with_inf[203, 1], too_large[203, 1] = np.nan, -np.inf, 1.7e308
    yield (
        "NaN",
        with_nan,
        r"Input X contains NaN: row 203( \(counted from 0\), column '|, column 1 )",
    )
    yield "infinity", with_inf, "Input X contains infinity: row 203"
    yield "too large", too_large, r"1.7e\+308, which is too large to compute with: row 203"
    yield "text", X.astype("U8"), "numbers, got text|holds <U8, not numbers"
    yield "complex", X + 1j, "Complex data not supported|complex128"


@pytest.mark.parametrize(
    ("X", "message"), [pytest.param(X, message, id=name) for name, X, message in bad_rows()]
)
def test_bad_rows_are_refused_and_the_model_stays_as_it_was(store, X, message):
    rows, y = make_blobs()
    model = fresh().fit(store(rows), y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(store(X), y)
    assert vars(model) == before
    with pytest.raises(ValueError, match=message):
        np.asarray(model.predict(store(X)))


def not_numbers():
    X, y = make_blobs()
    frame = pd.DataFrame({"a": X[:, 0], "b": [str(value) for value in X[:, 1]]})
    dates = pd.date_range("2024", periods=len(y))
    text = "numbers, got text in the column 'b'"
    yield "objects of pandas", frame.astype({"b": object}), text
    yield "strings of pandas", frame.astype({"b": "string"}), text
    yield "polars", polars.DataFrame(frame.to_dict("list")), text
    yield "objects", frame.to_numpy(dtype=object), "numbers, got text; convert it first"
    texts = [f"request {number}" for number in range(len(y))]
    yield "texts", texts, "encode them first"
    yield "array of texts", np.array(texts), "encode them first"
    yield "array of objects", np.array(texts, dtype=object), "encode them first"
    yield "column of texts", pd.Series(texts), "encode them first"
    yield "one text", texts[0], "encode them first"
    yield "dates", frame.assign(b=dates), r"got datetime64.* in the column 'b'; turn dates into"
    zoned = frame.assign(b=dates.tz_localize("UTC"))
    yield "dates of a zone", zoned, "got Timestamp in the column 'b'; turn dates into"
    yield "periods", frame.assign(b=dates.to_period("D")), "got Period in the column 'b'"
    vectors, lists = pd.DataFrame({"v": list(X), "one": 1.0}), polars.DataFrame({"v": X.tolist()})
    for name, rows in (("frame", vectors), ("one column", vectors[["v"]]), ("lists", lists)):
        yield f"arrays in a {name}", rows, r"pass np.stack\(X\['v'\]\)"
    for name, rows in (("series", vectors["v"]), ("array", vectors["v"].to_numpy())):
        yield f"arrays in a {name}", rows, r"pass np.stack\(X\)"
    yield "lists in a series", lists["v"], r"pass np.stack\(X\)"
    masked = np.ma.masked_array(X, mask=X.max() - 1e-9 < X)
    yield "masked", masked, rf"1 of its {X.size:,} values are masked; .*X.filled"
    gaps = pd.DataFrame(X, columns=list("abcdef"))
    gaps.loc[4, "c"] = np.nan
    yield "missing", gaps, r"NaN: row 4 \(counted from 0\), column 'c'"


@pytest.mark.parametrize(
    ("rows", "message"), [pytest.param(rows, said, id=name) for name, rows, said in not_numbers()]
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_what_is_no_number_is_refused_with_advice(rows, message):
    X, y = make_blobs()
    with pytest.raises(ValueError, match=message):
        fresh().fit(rows, y)
    model = fresh(max_iter=0).fit(np.ma.masked_array(X), y)  # nothing of it is masked
    with pytest.raises(ValueError, match=message):
        model.predict(rows)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((240,), "Expected 2D array, got 1D array"),
        ((60, 2, 2), "Found array with dim 3|expected <= 2"),
        ((1, 6), "1 sample"),
        ((240, 0), r"0 feature\(s\)"),
    ],
)
def test_shapes_that_are_not_a_table_are_refused(store, storage, shape, message):
    if storage == "frame" and (len(shape) != 2 or not shape[1]):
        pytest.skip("a frame has two dimensions, and columns")
    if storage == "row file" and len(shape) != 2:
        pytest.skip("open_rows takes further dimensions as one, and says so")
    X = np.zeros(shape)
    with pytest.raises(ValueError, match=message):
        fresh().fit(store(X), np.arange(shape[0]) % 2)


def bad_labels():
    _, y = make_blobs()
    words = np.array(["a", "b", "c"])[y]
    yield "none", None, ValueError, "requires y to be passed, but the target y is None"
    yield "too few", y[:-1], ValueError, "X has 240 rows, y has 239 labels"
    yield "one class", np.full(240, 5), ValueError, "at least 2 classes.*only 1 class: 5"
    yield "continuous", y + 0.5 * np.arange(240), ValueError, "Unknown label type|continuous"
    yield "None", np.where(y == 0, None, words), ValueError, r"missing value: row 0 .* is None"
    yield "NA", pd.Series(y, dtype="Int64").where(y > 0), ValueError, r"missing value: row 0 "
    yield "kinds", np.where(y == 0, "a", y.astype(object)), TypeError, "one kind.*int and str"
    yield "table", np.column_stack((y, y)), ValueError, "y should be a 1d array"
    masked = np.ma.masked_array(y, mask=np.arange(240) == 3)
    yield "masked", masked, ValueError, "y is a masked array: 1 of its"


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [pytest.param(y, error, message, id=name) for name, y, error, message in bad_labels()],
)
def test_bad_labels_are_refused(store, y, error, message):
    X, _ = make_blobs()
    with pytest.raises(error, match=message):
        fresh().fit(store(X), y)


def test_large_integer_labels_are_not_rounded(store):
    X, y = make_blobs()
    for labels in (y + 2**60, pd.Series(y + 2**60, dtype="Int64")):
        model = fresh(max_iter=0).fit(store(X), labels)
        assert model.classes_.tolist() == [2**60, 2**60 + 1, 2**60 + 2]


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score_samples"])
def test_answers_are_those_of_an_array(store, method):
    X, y = make_blobs()
    model = fresh().fit(X, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names")
        found = getattr(model, method)(store(X))
    expected = getattr(model, method)(X)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reference", ["latent", "original"])
def test_ids_of_rows_are_those_of_an_array(store, storage, reference, monkeypatch):
    if (storage, reference) == ("Dask array", "original"):
        return  # all rows would be in one process
    X, y = make_blobs()
    ids = [f"row {number}" for number in range(len(X))]
    parameters = {"n_latents": 4, "start": "euclidean", "init": "spaced", "reference": reference}
    expected = fresh(**parameters).fit(X, y, row_ids=ids)
    monkeypatch.setattr(distances, "BLOCK_BYTES", 1000)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names")
        model = fresh(**parameters).fit(store(X), y, row_ids=ids)
        assert model.model_.row_ids.tolist() == expected.model_.row_ids.tolist()
        if storage == "Dask array":
            with pytest.raises(TypeError, match=r"explain needs X .*X\[:100\]\.compute\(\)"):
                model.explain(store(X))
            with pytest.raises(TypeError, match=r"needs row_ids .*row_ids\.compute\(\)"):
                model.fit(store(X), y, row_ids=da.from_array(np.array(ids)))
        else:
            found = expected.explain(store(X))
            np.testing.assert_array_equal(found.references, expected.explain(X).references)


def test_other_numbers_of_features_are_refused_with_both_numbers(store):
    X, y = make_blobs()
    model = fresh().fit(store(X), y)
    for method in (model.predict, model.transform, model.kneighbors, model.score_samples):
        with pytest.raises(ValueError, match=r"X has 5 features.*expecting 6|names should match"):
            method(store(X[:, :5]))


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: repr(model)[:14])
def test_every_method_stays_lazy_on_a_dask_array_or_refuses(client, model):
    """The client itself computes nothing."""
    X, y = make_blobs()
    lazy, labels = da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=50)
    if not isinstance(model, MaPML):
        with pytest.raises(TypeError, match=rf"{type(model).__name__}.fit needs X.*X.compute\(\)"):
            model.fit(lazy, labels)
        with pytest.raises(TypeError, match=r"pass both as Dask arrays, or pass y.compute\(\)"):
            model.fit(X, labels)
    model.fit(X, y)
    methods = ["predict", "predict_proba", "score_samples"]
    methods += ["transform"] * hasattr(model, "transform")
    for method in methods:
        assert isinstance(getattr(model, method)(lazy), da.Array)
    for answer in model.kneighbors(lazy):
        assert isinstance(answer, da.Array)
    assert model.score(lazy, labels) == model.score(X, y)
    for rows, names in ((lazy, y), (X, labels)):
        with pytest.raises(TypeError, match=r"\.set_references needs .*compute\(\)"):
            model.set_references(rows, names)


def test_column_names_of_a_file_are_feature_names(tmp_path):
    from latentmetric.io import open_rows

    X, y = make_blobs()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.to_parquet(tmp_path / "rows.parquet")
    frame[list("fbcdea")].to_parquet(tmp_path / "other.parquet")
    model = fresh(max_iter=0).fit(open_rows(tmp_path / "rows.parquet"), y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    model.predict(open_rows(tmp_path / "rows.parquet"))
    with pytest.raises(ValueError, match=r"feature 0 \(counted from 0\) is 'f', but was 'a'"):
        model.predict(open_rows(tmp_path / "other.parquet"))
    assert not hasattr(model.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (LMNN(), TypeError),
        (MaPML(early_stopping=True), ValueError),
        (MaPML(reference="original"), ValueError),
        (MaPML(n_components=99), ValueError),
        (MaPML({0: 1}), ValueError),
    ],
    ids=str,
)
def test_a_fit_that_cannot_be_is_refused_before_a_row_is_read(client, model, error):
    X, y = make_blobs()
    read = []
    rows = da.from_array(X, chunks=(50, -1)).map_blocks(
        lambda block: read.append(len(block)) or block, meta=np.empty((0, 6))
    )
    with pytest.raises(error):
        model.fit(rows, da.from_array(y, chunks=50))
    assert not read


def test_a_missing_label_is_named_by_its_row_in_the_whole(client):
    X, y = make_blobs()
    labels = np.where(np.arange(240) == 77, np.nan, y)
    with pytest.raises(ValueError, match="missing value: row 77 "):
        fresh().fit(da.from_array(X, chunks=(50, -1)), da.from_array(labels, chunks=50))


def outcome_of(X, model):
    """The admitted rows with their warnings, or the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows = MEMORY.validate(X, model, training=False)
        except (TypeError, ValueError) as error:
            return type(error), str(error)
    return rows.dtype, rows.shape, rows.tobytes(), [str(warning.message) for warning in caught]


@pytest.mark.parametrize("named", [False, True], ids=["no names", "feature names"])
def test_the_short_way_for_plain_arrays_admits_what_the_long_way_admits(monkeypatch, named):
    rows, y = make_blobs()
    names = [f"f{column}" for column in range(rows.shape[1])]
    model = Euclidean().fit(pd.DataFrame(rows, columns=names) if named else rows, y)
    X = rows.astype(np.float32)
    queries = [X.astype(kind) for kind in ("?", "i8", "f4", ">f4", "U8", "c16")]
    queries += [np.asfortranarray(X), pd.DataFrame(X), X[:0], X[:, 1:], X[0]]
    for value in (np.nan, -np.inf, LARGEST, 1.7e308):
        odd = X.astype(float if abs(value) > LARGEST else np.float32)
        odd[7, 2] = value
        queries.append(odd)
    short = [outcome_of(query, model) for query in queries]
    monkeypatch.setattr(local, "is_plain_table", lambda X, estimator: False)
    assert short == [outcome_of(query, model) for query in queries]
