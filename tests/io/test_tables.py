"""Which column or array is what, in every format, and labels in a file of their own."""

import re

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from latentmetric.io import Choice, open_table
from latentmetric.io.choosing import warn_of_ids

ROWS = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
LABELS = np.array(["cat", "dog", "eel"])[np.arange(30) % 3]
NAMES = ["a", "b", "c", "d"]


def write(path, held):
    """A table of columns by the ending of its name."""
    frame = pandas.DataFrame(held)
    writer = {".csv": frame.to_csv, ".parquet": frame.to_parquet}.get(path.suffix)
    writer(path, index=False) if writer else frame.to_feather(path)
    return path


def read(path, *labels, **choice):
    return open_table(path, *labels, choice=Choice(**choice))


def refused(path, *labels, **choice):
    """The message of a refusal, which must be one line that names the file."""
    with pytest.raises((ValueError, OSError)) as caught:
        np.asarray(read(path, *labels, **choice).rows)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


@pytest.fixture(params=["t.csv", "t.parquet", "t.arrow"])
def path(tmp_path, request):
    return tmp_path / request.param


def animals(path):
    columns = {name: ROWS[:, k].astype(float) for k, name in enumerate(NAMES)}
    return write(path, columns | {"label": LABELS})


def test_names_choose_and_order_the_columns(path):
    animals(path)
    table = read(path, names=["c", "a"], labelled=False)
    np.testing.assert_array_equal(np.asarray(table.rows), ROWS[:, [2, 0]])
    assert table.feature_names == ["c", "a"]
    assert "left out: label, b, d" in table.notes
    for name in ("e", "3"):
        message = refused(path, names=["a", name], labelled=False)
        assert f"lacks 1 of the 2 columns that the model was fitted with: {name};" in message
    message = refused(path, names=["a", "b", "a"], labelled=False)
    assert "lacks 1 of the 3 columns that the model was fitted with: a;" in message


def test_columns_by_name_and_number(path):
    animals(path)
    for choice in ({"label": "-1", "ignore": ["2"]}, {"label": "label", "ignore": ["b"]}):
        table = read(path, **choice)
        assert (table.feature_names, table.label_name) == (["a", "c", "d"], "label")
        np.testing.assert_array_equal(table.labels, LABELS)
    assert "no column 'z' among its 5: a, b, c, d, label" in refused(path, label="z")
    assert "no column '6' among its 5" in refused(path, label="6")
    assert "no column 'labels' among its 5; did you mean 'label'?" in refused(path, label="labels")
    assert read(path, key="a").feature_names == ["a"]


def test_text_is_not_a_feature_in_any_format(path):
    held = {"a": [1.0, 2.0], "where": ["n", "s"], "b": [3, 4], "who": ["x", "y"], "label": [0, 1]}
    write(path, held)
    message = refused(path)
    assert re.search(r"column 'where' holds text.*, not numbers \(also 'who'\)", message)
    options = ("--ignore where,who", "--id where", "--label where", "--one-hot where")
    for advice in (*options, "by an encoder: see the tutorial for text"):
        assert advice in message
    assert read(path, ignore=["where,who"]).feature_names == ["a", "b"]
    table = read(path, ignore=["where"], id="who")
    assert (table.feature_names, table.ids.tolist()) == (["a", "b"], ["x", "y"])
    assert "id: column 'who'" in table.notes[2]
    assert refused(path, label="where", ignore=["label"]).count("'who'") == 1


def test_the_only_text_column_is_the_labels_unless_these_are_elsewhere(path):
    write(path, {"a": [1.0, 2.0], "kind": ["x", "y"]})
    assert read(path).labels.tolist() == ["x", "y"]
    assert read(path, labelled=False).feature_names == ["a"]
    (path.parent / "labels.txt").write_text("u\nv\n")
    assert "column 'kind' holds text" in refused(path, path.parent / "labels.txt")
    write(path, {"kind": ["x", "y"]})
    assert "are the two files swapped?" in refused(path, path.parent / "labels.txt")


def test_a_column_has_one_role(path):
    write(path, {"a": [1.0, 2.0], "b": [1.0, 2.0], "label": ["x", "y"]})
    assert "'label' is the labels and cannot be the id too" in refused(
        path, id="label", label="label"
    )
    assert "'a' is a feature and cannot be the id" in refused(path, id="a", names=["a", "b"])
    assert "'a' is a feature and cannot be the labels" in refused(path, label="a", names=["a"])
    assert "'a' is a feature and cannot be ignored" in refused(path, names=["a"], ignore=["a"])
    assert "'label' is the labels and cannot be ignored" in refused(path, label="3", ignore=["3"])


def test_booleans_are_features(path):
    write(path, {"a": [1.5, 2.5], "b": [True, False], "y": [0, 1]})
    table = read(path)
    assert np.asarray(table.rows).tolist() == [[1.5, 1.0], [2.5, 0.0]]
    assert table.feature_names == ["a", "b"]
    np.save(path.with_suffix(".npy"), [[True, False]])
    assert np.asarray(read(path.with_suffix(".npy"), labelled=False).rows).tolist() == [[1, 0]]


def test_an_unnamed_pandas_index_is_not_a_feature(tmp_path):
    held = pandas.DataFrame({"a": [1.0, 2.0], "label": ["x", "y"]}, index=[5, 7])
    held.to_csv(tmp_path / "t.csv")
    held.to_parquet(tmp_path / "t.parquet")
    assert "left out: column 1" in read(tmp_path / "t.csv").notes
    for name in ("t.csv", "t.parquet"):
        assert read(tmp_path / name).feature_names == ["a"]


def test_two_features_of_one_name_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    for header, columns in (
        ("a,a,label", "columns 1 and 2 are both called 'a'"),
        (",column 3,,label", "columns 2 and 3 are both called 'column 3'"),
    ):
        path.write_text(f"{header}\n{'1,' * header.count(',')}x\n")
        assert re.search(rf"{columns}; rename one, or .* --ignore \d", refused(path))
    path.write_text("a,a,label\n1,2,x\n")
    table = read(path, ignore=["2"])
    assert (table.rows.tolist(), table.feature_names) == ([[1.0]], ["a"])
    assert "several columns 'a': name one by number, 1, 2" in refused(path, ignore=["a"])
    assert "several columns 'a'" in refused(path, names=["a"])


def test_names_of_identifiers_are_warned_of(path):
    for name in ("ID", "row number", "patient_id", "patientId", "patient.ID", " id "):
        assert "identifies rows but is a feature" in warn_of_ids(["width", name])[0]
    assert warn_of_ids(["", "acid", "PAID", "humid", "body mass index", "id_count", "rows"]) == []
    write(path, {"user id": [1, 2], "id": [3, 4], "label": ["x", "y"]})
    note = read(path).notes[-1]
    assert "by name, 'user id', 'id' identify rows but are features" in note
    assert "--ignore 'user id', or keep beside the answers with --id" in note


def test_gaps_become_nan_and_words_objects(path):
    hues = ["red", "", "blue"]
    held = {"a": [1.5, np.nan, 3.0], "hue": hues, "b": [1, 2, 3], "label": list("xyx")}
    write(path, held)
    table = read(path, missing=True, categories=["hue"])
    assert (table.rows.dtype, table.words) == (object, [1])
    assert table.feature_names == ["a", "hue", "b"]
    assert table.rows[:, 1].tolist() == hues
    np.testing.assert_array_equal(
        table.rows[:, [0, 2]].astype(float), np.array([held["a"], held["b"]]).T
    )
    assert re.search("empty|nan|no value", refused(path, categories=["hue"]))
    words = read(path, categories=["b,hue"], ignore=["a"])
    assert words.rows.tolist() == [["red", "1"], ["", "2"], ["blue", "3"]]
    pandas.DataFrame(held).to_csv(path.with_suffix(".csv"), index=False, header=False)
    message = refused(path.with_suffix(".csv"), categories=["2"])
    assert "finds a column of categories by its name: add a header" in message


def test_gaps_are_no_reason_to_take_words_or_infinity(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,label\n1,,x\n2,many,y\n3,4,x\n5,6,y\ntrue,,x\n")
    message = refused(path, missing=True, label="label")
    assert "line 3, column 'b': 'many' is not a number" in message
    path.write_text("a,b,label\n1,,x\n2,inf,y\n")
    assert "line 3, column 'b': inf is not a finite number" in refused(path, missing=True)
    path.write_text("a,b,label\n1,,x\n2,true,y\n")
    np.testing.assert_array_equal(read(path, missing=True).rows, [[1, np.nan], [2, 1]])
    np.savez(tmp_path / "t.npz", X=[[1.0, np.nan], [np.inf, 1.0]], y=[0, 1])
    message = refused(tmp_path / "t.npz", missing=True)
    assert re.search(r"row 1 .* inf is not a finite number", message)


def test_gaps_in_columns_of_whole_numbers_and_booleans(tmp_path):
    numbers = pyarrow.array([1, None, 3], pyarrow.int8())
    held = {"n": numbers, "yes": [True, None, False], "label": list("xyx")}
    pyarrow.parquet.write_table(pyarrow.table(held), tmp_path / "t.parquet")
    rows = np.asarray(read(tmp_path / "t.parquet", missing=True).rows)
    np.testing.assert_array_equal(rows, [[1, 1], [np.nan, np.nan], [3, 0]])


def test_the_only_column_of_lists_holds_the_features(tmp_path):
    path = tmp_path / "t.parquet"
    held = {"number": [1, 2], "v": [[1.0, 2.0], [3.0, 4.0]], "when": ["may", "june"]}
    pyarrow.parquet.write_table(pyarrow.table(held | {"label": [0, 1]}), path)
    table = read(path)
    assert (np.asarray(table.rows).tolist(), table.key) == (held["v"], "v")
    assert table.notes[0].endswith("(--key chooses another)")
    assert table.notes[-1] == "left out: number, when"
    assert np.asarray(read(path, ignore=["v", "when"]).rows).tolist() == [[1], [2]]
    assert np.asarray(read(path, names=["number"]).rows).tolist() == [[1], [2]]
    pyarrow.parquet.write_table(pyarrow.table({"v": held["v"], "kind": [3, 5]}), path)
    assert read(path).labels.tolist() == [3, 5]
    pyarrow.parquet.write_table(pyarrow.table(held | {"w": held["v"], "label": [0, 1]}), path)
    assert "take it alone with --key v" in refused(path, ignore=["when"])
    assert read(path, usual={"key": "w"}).key == "w"
    assert read(path, usual={"key": "w"}, key="v").key == "v"
    assert read(path, usual={"key": "w"}, ignore=["w"]).key == "v"


def test_which_array_is_what(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, train=ROWS, test=ROWS, y=LABELS)
    message = refused(path)
    assert "column 'train' holds 30×4, not one number a row" in message
    assert "take it alone with --key train" in message
    assert read(path, usual={"key": "test"}).key == "test"
    assert read(path, usual={"key": "test"}, ignore=["test"]).key == "train"
    np.savez(path, a=ROWS[:, 0], b=ROWS[:, 1], y=LABELS)
    np.testing.assert_array_equal(np.asarray(read(path).rows), ROWS[:, :2])
    np.savez(path, x=ROWS, other=ROWS, one=LABELS, two=LABELS)
    assert "no column is clearly the labels among x, other, one, two" in refused(path)
    table = read(path, label="two", key="other")
    assert (table.labels[1], table.label_name) == ("dog", "two")
    assert "(--key chooses another)" in table.notes[0]
    assert "no column 'z' among its 4: x, other, one, two" in refused(path, key="z")
    assert "does not name its features one by one" in refused(path, key="x", categories=["one"])
    assert read(path, ignore=["one"]).label_name == "two"
    np.savez(path, x=ROWS, target=LABELS[:, None], n=np.arange(30))
    assert read(path).labels.tolist() == LABELS.tolist()
    np.savez(path, x=ROWS, y=np.zeros((30, 2)))
    assert "'y' (30×2) does not hold one value a row" in refused(path, key="x", label="y")
    np.savez(path, x=np.zeros((0, 3)), y=np.zeros(0))
    assert "holds 0 rows of 3 features" in refused(path)


@pytest.mark.parametrize("kind", [".npy", ".csv", ".txt", ".parquet", ".npz"])
def test_labels_in_a_file_of_their_own(tmp_path, kind):
    np.save(tmp_path / "rows.npy", ROWS)
    path = tmp_path / f"labels{kind}"
    if kind == ".npy":
        np.save(path, LABELS.astype("S"))
    elif kind == ".npz":
        np.savez(path, names=LABELS)
    elif kind == ".parquet":
        write(path, {"kind": LABELS})
    else:
        path.write_text("\n".join(LABELS) + "\n")
    np.testing.assert_array_equal(read(tmp_path / "rows.npy", path).labels, LABELS)


def test_files_of_labels_that_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    assert "no column is clearly the labels among array" in refused(tmp_path / "rows.npy")
    np.save(tmp_path / "labels.npy", LABELS[:-2])
    message = refused(tmp_path / "rows.npy", tmp_path / "labels.npy")
    assert re.search(r"rows\.npy has 30 rows, but .*labels\.npy has 28 labels", message)
    np.savez(tmp_path / "labels.npz", one=LABELS, two=LABELS)
    with pytest.raises(ValueError, match="clearly the labels among one, two"):
        read(tmp_path / "rows.npy", tmp_path / "labels.npz")
    write(tmp_path / "two.csv", {"one": LABELS, "two": LABELS})
    with pytest.raises(ValueError, match="clearly the labels among one, two"):
        read(tmp_path / "rows.npy", tmp_path / "two.csv")
    table = read(tmp_path / "rows.npy", tmp_path / "two.csv", label="two")
    assert table.labels.tolist() == LABELS.tolist()
