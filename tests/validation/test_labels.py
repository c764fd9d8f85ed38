"""A missing label is refused with its row, whatever it is made of and comes in."""

from collections import UserList, deque
from decimal import Decimal

import numpy as np
import pandas
import pytest

from latentmetric import Euclidean
from latentmetric.io import open_table
from latentmetric.validation.labels import (
    are_known,
    checked_labels,
    joined_classes,
    known_codes,
    predicted_dtype,
    refuse_known,
)

DATES = [np.datetime64("2020-01-01"), np.datetime64("2020-01-02")]


def objects(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b", np.nan],
        ("a", "b", float("nan")),
        ["a", np.datetime64("NaT")],
        objects("a", "b", np.float32("nan")),
        objects("a", None),
        objects("a", np.nan),
        objects("a", pandas.NA),
        objects("a", pandas.NaT),
        objects(*DATES, np.datetime64("NaT")),
        objects(*DATES, pandas.NaT),
        objects(np.timedelta64(1, "s"), np.timedelta64("NaT")),
        objects(Decimal(1), Decimal("nan")),
        objects(Decimal(1), Decimal("snan")),
        np.array([*DATES, "NaT"], dtype="M8[D]"),
        pandas.Series(["a", None], dtype="string"),
        pandas.Series(["a", None], dtype="category"),
    ],
    ids=repr,
)
def test_a_missing_label_is_refused_with_its_row(y):
    with pytest.raises(ValueError, match=rf"missing value: row {len(y) - 1} \(counted from 0\)"):
        checked_labels(y)
    X = np.arange(2.0 * len(y)).reshape(-1, 2)
    with pytest.raises(ValueError, match="missing value"):
        Euclidean(n_neighbors=1).fit(X, y)


@pytest.mark.parametrize(
    "container", [list, tuple, deque, UserList, lambda y: [[one] for one in y]]
)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "1", 2], "labels must be of one kind, but y holds int and str"),
        ([True, "True", "b"], "labels must be of one kind, but y holds bool and str"),
        ([1.0, "1.0", "b"], "labels must be of one kind, but y holds float and str"),
        ([b"a", "a", "b"], "labels must be of one kind, but y holds bytes and str"),
        (["a", "a\0", "b"], "ends in a zero character"),
        ([2**53, 2**53 + 1, 0.0], "9007199254740993, which NumPy would round to 9007199254740992"),
        ([2**63, 2**63 + 1, -1], "9223372036854775809, which NumPy would round"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_that_an_array_would_merge_are_refused(labels, message, container):
    X = np.arange(18.0).reshape(-1, 2)
    with pytest.raises((TypeError, ValueError), match=message):
        Euclidean(n_neighbors=1).fit(X, container(labels * 3))
    model = Euclidean(n_neighbors=1).fit(X, ["a", "1", "b"] * 3)
    with pytest.raises((TypeError, ValueError), match=message):
        model.set_references(X, container(labels * 3))


def test_words_of_polars_are_those_of_a_list():
    polars = pytest.importorskip("polars")
    assert checked_labels(polars.Series(["a", "bb"])).dtype == "<U2"
    with pytest.raises(ValueError, match=r"holds 'a\\x00', which ends in a zero character"):
        checked_labels(polars.Series(["a", "a\0"]))
    with pytest.raises(ValueError, match="missing value: row 1 "):
        checked_labels(polars.Series(["a", None]))


def test_numbers_of_several_kinds_are_labels_as_long_as_none_is_rounded():
    for labels in ([True, 2, 3], [1, 2.0, 2**60], [2**63, 2**63 + 1], [-(2**63), 5]):
        assert checked_labels(labels).tolist() == labels


def test_words_that_mean_nothing_missing_are_labels():
    assert checked_labels(["nan", "b"]).tolist() == ["nan", "b"]
    assert checked_labels([1, 2]).dtype.kind == "i"


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has it")
def test_text_of_any_length_may_be_labels_but_not_lack_one():
    kind = np.dtypes.StringDType(na_object=np.nan)
    assert checked_labels(np.array(["a", "bb"], dtype=kind)).tolist() == ["a", "bb"]
    with pytest.raises(ValueError, match="row 1 "):
        checked_labels(np.array(["a", np.nan], dtype=kind))


def test_a_dictionary_of_labels_in_a_file_may_not_hold_one_that_is_missing(tmp_path):
    import pyarrow
    from pyarrow import feather

    coded = pyarrow.DictionaryArray.from_arrays([0, 1, 2], ["a", "b", None])
    table = pyarrow.table({"x": [1.0, 2.0, 3.0], "label": coded})
    feather.write_feather(table, tmp_path / "t.feather")
    with pytest.raises(ValueError, match=r"column 'label' has no value in row 2 "):
        open_table(tmp_path / "t.feather")


def test_text_that_an_array_would_cut_is_refused(tmp_path):
    import pyarrow
    from pyarrow import feather

    table = pyarrow.table({"x": [1.0, 2.0], "label": ["a", "a\0"]})
    feather.write_feather(table, tmp_path / "t.feather")
    (tmp_path / "t.csv").write_text("1,a\n2,a\0\n")
    for name in ("t.feather", "t.csv"):
        with pytest.raises(ValueError, match=rf"{name}.* holds 'a\\x00', which ends in a zero"):
            open_table(tmp_path / name)


@pytest.mark.parametrize("word", ["", "nan", "NaN", "NaT", "<NA>"])
def test_what_libraries_write_for_a_missing_label_is_refused_in_text(tmp_path, word):
    (tmp_path / "t.csv").write_text(f"x,label\n1,a\n2,{word}\n3,b\n")
    with pytest.raises(ValueError, match=r"line 3, column 'label': the label is missing"):
        open_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([True], [0, 1], "y holds Booleans, such as True, but the classes are numbers, such as 0"),
        ([1], [False, True], "y holds numbers, such as 1, but the classes are Booleans"),
        (["1"], [0, 1], "y holds text, such as '1', but the classes are numbers"),
        ([1], ["0", "1"], "y holds numbers, such as 1, but the classes are text"),
        (DATES, [0, 1], "y holds datetime64"),
    ],
)
@pytest.mark.parametrize("rule", [known_codes, are_known, refuse_known])
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
    with pytest.raises(ValueError, match="float64 would round some"):
        joined_classes(classes, np.array([2**64 - 1], dtype=np.uint64))


@pytest.mark.parametrize("labels", [3, "3", {3, 4}])
def test_one_label_is_no_list(labels):
    with pytest.raises(ValueError, match="labels must be a list or an array of labels, got"):
        checked_labels(labels, "labels")


@pytest.mark.parametrize("label", [[-1], np.array([-1, -2])])
def test_rows_are_rejected_with_one_label(label):
    with pytest.raises(TypeError, match="reject_label must be one label"):
        predicted_dtype(np.array([0, 1]), -1.0, label)
