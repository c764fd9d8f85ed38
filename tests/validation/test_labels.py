"""Labels are refused with their row if one is missing, and keep their kind."""

import numpy as np
import pandas
import pytest

from latentmetric import Euclidean
from latentmetric.validation.labels import (
    checked_labels,
    find_codes,
    joined_classes,
    known_codes,
)
from latentmetric.validation.rows import check_numeric


def objects(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b", np.nan],
        objects("a", None),
        objects("a", np.float32("nan")),
        objects("a", pandas.NA),
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        np.array([0.0, np.inf]),
        pandas.Series(["a", None], dtype="string"),
        pandas.Series(["a", None], dtype="category"),
        pandas.Series([1, None], dtype="Int64"),
    ],
    ids=repr,
)
def test_a_missing_label_is_refused_with_its_row(y):
    with pytest.raises(ValueError, match=rf"missing value: row {len(y) - 1} \(counted from 0\)"):
        checked_labels(y)
    X = np.arange(2.0 * len(y)).reshape(-1, 2)
    with pytest.raises(ValueError, match="missing value"):
        Euclidean(n_neighbors=1).fit(X, y)


@pytest.mark.parametrize("container", [list, tuple, lambda y: [[one] for one in y]])
@pytest.mark.parametrize(
    ("labels", "kinds"),
    [([1, "1", 2], "int and str"), ([1.0, "1.0", "b"], "float and str"),
     ([b"a", "a", "b"], "bytes and str")],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_mixed_labels_are_refused(labels, kinds, container):
    X = np.arange(18.0).reshape(-1, 2)
    with pytest.raises(TypeError, match=f"labels must be of one kind, but y holds {kinds}"):
        Euclidean(n_neighbors=1).fit(X, container(labels * 3))
    model = Euclidean(n_neighbors=1).fit(X, ["a", "1", "b"] * 3)
    with pytest.raises(TypeError, match=f"labels must be of one kind, but y holds {kinds}"):
        model.set_references(X, container(labels * 3))


def test_labels_keep_their_type():
    assert checked_labels(["nan", "b"]).tolist() == ["nan", "b"]
    assert checked_labels(["a", "bcd"]).dtype == "U3"
    assert checked_labels([1, 2]).dtype.kind == "i"
    assert checked_labels(pandas.Series([2**60, 1], dtype="Int64")).tolist() == [2**60, 1]
    assert checked_labels(objects(np.int64(1), np.str_("a"))).tolist() == [1, "a"]
    for labels in ([True, 2, 3], [2**63, 2**63 + 1], [-(2**63), 5]):
        assert checked_labels(labels).tolist() == labels


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([True], [0, 1], "y holds Booleans, such as True, but the classes are numbers, such as 0"),
        (["1"], [0, 1], "y holds text, such as '1', but the classes are numbers"),
        ([1], ["0", "1"], "y holds numbers, such as 1, but the classes are text"),
    ],
)
@pytest.mark.parametrize("rule", [known_codes, find_codes])
def test_labels_of_another_kind_are_no_classes(rule, labels, classes, message):
    with pytest.raises(TypeError, match=message):
        rule(np.array(labels), np.array(classes))


def test_labels_of_one_kind_may_be_held_differently():
    for labels in (np.array([1.0]), objects(1), objects(np.int64(1)), np.array([1], "u1")):
        assert known_codes(labels, np.array([0, 1])).tolist() == [1]
    assert known_codes(objects("b"), np.array(["a", "b"])).tolist() == [1]
    assert known_codes(np.array(["b"]), objects("a", "b")).tolist() == [1]


def test_new_classes_are_labels_that_a_fit_takes():
    classes = np.array([0, 1])
    joined = joined_classes(classes, np.array([8.0]))
    assert joined.tolist() == [0, 1, 8]
    assert joined.dtype == classes.dtype
    with pytest.raises(ValueError, match="continuous"):
        joined_classes(classes, np.array([8.5]))


@pytest.mark.parametrize("labels", [3, "3", {3, 4}, np.array(3)])
def test_one_label_is_no_list(labels):
    with pytest.raises(ValueError, match="should be a 1d array, got"):
        checked_labels(labels, "labels")


def test_booleans_may_be_objects():
    found = checked_labels(objects(True, False, np.True_))
    assert (found.dtype, found.tolist()) == (bool, [True, False, True])
    assert checked_labels(objects(1, True)).dtype == object


def test_a_lazy_frame_is_to_be_collected():
    polars = pytest.importorskip("polars")
    frame = polars.LazyFrame({"a": [0, 1]})
    with pytest.raises(TypeError, match=r"y is a LazyFrame.* pass y\.collect\(\)"):
        checked_labels(frame)
    with pytest.raises(TypeError, match=r"X is a LazyFrame.* pass X\.collect\(\)"):
        check_numeric(frame)
