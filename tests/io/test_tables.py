"""Features and labels from files as people have them, and from broken files."""

import io
import json
import re
import warnings
import zipfile

import h5py
import numpy as np
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

from latentmetric.io import Choice, open_rows, open_table

ROWS = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
LABELS = np.array(["cat", "dog", "eel"])[np.arange(30) % 3]
NAMES = ["a", "b", "c", "d"]


def frame(labels=LABELS):
    return pandas.DataFrame(ROWS, columns=NAMES).assign(label=labels)


def write(path, rows=ROWS, labels=LABELS):
    """One file of features and labels, by its ending."""
    if path.suffix in (".csv", ".tsv", ".txt"):
        frame(labels).to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".parquet":
        table = pyarrow.Table.from_pandas(frame(labels), preserve_index=False)
        pyarrow.parquet.write_table(table, path, row_group_size=7)
    elif path.suffix in (".arrow", ".feather"):
        frame(labels).to_feather(path)
    elif path.suffix == ".npz":
        np.savez(path, x=rows, y=labels, about=np.arange(3))
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["x"], file["y"] = rows, labels.astype(object)
    else:
        group = zarr.open_group(path, mode="w")
        group.create_array("x", data=rows)
        group.create_array("y", data=np.arange(30) % 3)
    return path


SELF_CONTAINED = [".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".npz", ".h5"]


@pytest.mark.parametrize("kind", SELF_CONTAINED)
def test_one_file_of_any_kind_gives_the_same_rows_and_labels(tmp_path, kind):
    table = open_table(write(tmp_path / f"table{kind}"))
    np.testing.assert_allclose(np.asarray(table.rows), ROWS, rtol=1e-6)
    np.testing.assert_array_equal(table.labels, LABELS)
    assert table.feature_names == (None if kind in (".npz", ".h5") else NAMES)
    assert any("labels" in line and ("y of" in line or "'label'" in line) for line in table.notes)


def test_a_zarr_group_has_numbers_for_labels(tmp_path):
    table = open_table(write(tmp_path / "table.zarr"))
    np.testing.assert_array_equal(np.asarray(table.rows), ROWS)
    np.testing.assert_array_equal(table.labels, np.arange(30) % 3)


@pytest.mark.parametrize("kind", [".npy", ".csv", ".txt", ".parquet", ".npz"])
def test_labels_in_a_file_of_their_own(tmp_path, kind):
    np.save(tmp_path / "rows.npy", ROWS)
    path = tmp_path / f"labels{kind}"
    if kind == ".npy":
        np.save(path, LABELS)
    elif kind == ".npz":
        np.savez(path, names=LABELS, other=np.zeros(3))
    elif kind == ".parquet":
        pyarrow.parquet.write_table(pyarrow.table({"kind": LABELS}), path)
    else:
        path.write_text("\n".join(LABELS) + "\n")
    np.testing.assert_array_equal(open_table(tmp_path / "rows.npy", path).labels, LABELS)


def test_a_line_more_than_rows_is_a_header(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    (tmp_path / "labels.csv").write_text("animal\n" + "\n".join(LABELS))
    table = open_table(tmp_path / "rows.npy", tmp_path / "labels.csv")
    np.testing.assert_array_equal(table.labels, LABELS)
    assert "'animal', read as a header" in table.notes[-1]


def test_labels_beside_features_that_have_a_label_column_of_their_own(tmp_path):
    write(tmp_path / "rows.csv")
    (tmp_path / "others.txt").write_text("\n".join("xyz"[number % 3] for number in range(30)))
    table = open_table(tmp_path / "rows.csv", tmp_path / "others.txt")
    assert table.feature_names == NAMES
    assert table.labels[:3].tolist() == ["x", "y", "z"]
    assert "left out: label" in table.notes


def test_large_binary_files_are_not_read_when_opened(tmp_path):
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (2**22, 2**10))
    del rows
    table = open_table(tmp_path / "rows.npy", choice=Choice(labelled=False))
    assert table.rows.shape == (2**22, 2**10)
    assert table.rows[2**21 : 2**21 + 1].tolist() == [[0.0] * 2**10]


def test_images_are_rows_of_all_their_pixels(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    np.savez(tmp_path / "images.npz", x=images, y=[0, 1, 0, 1])
    table = open_table(tmp_path / "images.npz")
    np.testing.assert_array_equal(np.asarray(table.rows), images.reshape(4, 6))
    assert "4 × 2 × 3" in table.notes[0]


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_fortran_order_changes_nothing(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    rows = np.asfortranarray(ROWS)
    np.save(path, rows) if suffix == ".npy" else np.savez(path, rows)
    table = open_table(path, choice=Choice(labelled=False))
    np.testing.assert_array_equal(table.rows[3:9], ROWS[3:9])


def test_a_column_of_lists_is_the_features(tmp_path):
    for kind in (
        pyarrow.list_(pyarrow.float32()),
        pyarrow.large_list(pyarrow.float32()),
        pyarrow.list_(pyarrow.float32(), 4),
    ):
        vectors = pyarrow.array(ROWS.tolist(), kind)
        columns = {"number": np.arange(30), "vector": vectors, "label": LABELS}
        path = tmp_path / "lists.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=8)
        for choice in (Choice(key="vector"), Choice(ignore=["number"])):
            table = open_table(path, choice=choice)
            np.testing.assert_array_equal(np.asarray(table.rows), ROWS)
            np.testing.assert_array_equal(table.rows[5:20], ROWS[5:20])


def test_names_choose_and_order_the_columns(tmp_path):
    for name in ("table.csv", "table.parquet"):
        path = write(tmp_path / name)
        table = open_table(path, choice=Choice(names=["c", "a"], labelled=False))
        np.testing.assert_allclose(np.asarray(table.rows), ROWS[:, [2, 0]], rtol=1e-6)
        with pytest.raises(ValueError, match=r"lacks 1 of the 2 columns .* fitted with: e;"):
            open_table(path, choice=Choice(names=["a", "e"], labelled=False))
        with pytest.raises(ValueError, match=r"lacks 1 of the 2 columns .* fitted with: 3;"):
            open_table(path, choice=Choice(names=["a", "3"], labelled=False))


def test_columns_by_name_and_number(tmp_path):
    path = write(tmp_path / "table.csv")
    by_number = open_table(path, choice=Choice(label="-1", ignore=["2"]))
    by_name = open_table(path, choice=Choice(label="label", ignore=["b"]))
    assert by_number.feature_names == by_name.feature_names == ["a", "c", "d"]
    np.testing.assert_array_equal(by_number.labels, LABELS)
    with pytest.raises(ValueError, match=r"no column 'z' among its 5: a, b, c, d, label"):
        open_table(path, choice=Choice(label="z"))
    with pytest.raises(ValueError, match=r"no column 'labels' among its 5; did you mean 'label'\?"):
        open_table(path, choice=Choice(label="labels"))


COLUMNS = ["table.csv", "table.parquet", "table.arrow"]


def write_columns(path, held):
    table = pandas.DataFrame(held)
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_feather(path)
    return path


@pytest.mark.parametrize("name", COLUMNS)
def test_text_is_not_a_feature_in_any_format(tmp_path, name):
    held = {"a": [1.0, 2.0], "where": ["n", "s"], "b": [3, 4], "who": ["x", "y"], "label": [0, 1]}
    path = write_columns(tmp_path / name, held)
    message = refused(path)
    assert re.search(r"column 'where' holds text.*, not numbers \(also 'who'\)", message)
    for advice in ("--ignore where,who", "--id where", "--label where"):
        assert advice in message
    assert open_table(path, choice=Choice(ignore=["where,who"])).feature_names == ["a", "b"]
    table = open_table(path, choice=Choice(ignore=["where"], id="who"))
    assert (table.feature_names, table.ids.tolist()) == (["a", "b"], ["x", "y"])
    assert "id: column 'who'" in table.notes[2]
    assert refused(path, label="where", ignore=["label"]).count("'who'") == 1
    needed = open_table(path, choice=Choice(names=["b"], labelled=False))
    assert needed.rows[:].tolist() == [[3], [4]]
    assert "left out: label, a, where, who" in needed.notes


@pytest.mark.parametrize("name", COLUMNS)
def test_the_only_text_column_is_the_labels_unless_these_are_elsewhere(tmp_path, name):
    path = write_columns(tmp_path / name, {"a": [1.0, 2.0], "kind": ["x", "y"]})
    assert open_table(path).labels.tolist() == ["x", "y"]
    assert open_table(path, choice=Choice(labelled=False)).feature_names == ["a"]
    (tmp_path / "labels.txt").write_text("u\nv\n")
    assert "column 'kind' holds text" in refused(path, tmp_path / "labels.txt")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_has_one_role(tmp_path, name):
    path = write_columns(tmp_path / name, {"a": [1.0, 2.0], "b": [1.0, 2.0], "label": ["x", "y"]})
    assert "'label' cannot be the labels and the id" in refused(path, id="label", label="label")
    assert "'a' is a feature and cannot be the id too" in refused(path, id="a", names=["a", "b"])
    assert "'a' is a feature and cannot be the labels" in refused(path, label="a", names=["a"])


@pytest.mark.parametrize("name", [*COLUMNS, "table.npy", "table.npz"])
def test_booleans_are_features_in_every_format(tmp_path, name):
    path, flags = tmp_path / name, np.array([[True, False], [False, False], [True, True]])
    if name.endswith(".npy"):
        np.save(path, flags)
    elif name.endswith(".npz"):
        np.savez(path, x=flags)
    else:
        write_columns(path, {"one": flags[:, 0], "two": flags[:, 1]})
    table = open_table(path, choice=Choice(labelled=False))
    assert np.asarray(table.rows).astype(float).tolist() == flags.astype(float).tolist()


def test_booleans_beside_numbers_of_a_file_of_columns(tmp_path):
    path = write_columns(tmp_path / "t.parquet", {"a": [1.5, 2.5], "b": [True, False], "y": [0, 1]})
    table = open_table(path)
    assert np.asarray(table.rows).tolist() == [[1.5, 1.0], [2.5, 0.0]]
    assert table.feature_names == ["a", "b"]


def test_an_unnamed_pandas_index_is_not_a_feature(tmp_path):
    held = pandas.DataFrame({"a": [1.0, 2.0], "label": ["x", "y"]}, index=[5, 7])
    held.to_csv(tmp_path / "table.csv")
    held.to_parquet(tmp_path / "table.parquet")
    for name in ("table.csv", "table.parquet"):
        assert open_table(tmp_path / name).feature_names == ["a"]


def test_rows_of_named_columns_carry_the_names(tmp_path):
    path = write(tmp_path / "table.parquet")
    assert open_rows(path).feature_names == NAMES
    assert open_rows(path, columns=["c", "a"]).feature_names == ["c", "a"]
    assert open_table(path).rows.feature_names == NAMES
    np.save(tmp_path / "rows.npy", ROWS)
    assert open_rows(tmp_path / "rows.npy").feature_names is None
    vectors = {"vector": ROWS.tolist(), "label": LABELS}
    pyarrow.parquet.write_table(pyarrow.table(vectors), path)
    assert open_table(path).rows.feature_names is None


def test_ids_of_files_of_columns_and_arrays(tmp_path):
    path = tmp_path / "table.parquet"
    for ids, expected in (
        ([3, 1, 2], [3, 1, 2]),
        ([3, None, 2], ["3", "", "2"]),
        (["x", None, "z"], ["x", "", "z"]),
        ([0.5, 1.5, 2.5], ["0.5", "1.5", "2.5"]),
    ):
        held = pyarrow.table({"n": ids, "a": [1.0, 2.0, 3.0], "label": ["u", "v", "u"]})
        pyarrow.parquet.write_table(held, path)
        table = open_table(path, choice=Choice(id="n"))
        assert (table.ids.tolist(), table.feature_names) == (expected, ["a"])
    np.savez(tmp_path / "t.npz", x=ROWS, y=LABELS, n=np.arange(30)[:, None], s=LABELS.astype("S"))
    for name, expected in (("n", list(range(30))), ("s", LABELS.tolist())):
        table = open_table(tmp_path / "t.npz", choice=Choice(id=name, label="y"))
        assert table.ids.tolist() == expected
    np.savez(tmp_path / "t.npz", x=ROWS, y=LABELS, n=np.arange(3))
    assert "has the shape (3,), but the id is one value for each of 30" in refused(
        tmp_path / "t.npz", id="n"
    )
    assert "no array 'z'" in refused(tmp_path / "t.npz", id="z")


def refused(path, *labels, **choice):
    """The message of a refusal, which must be one line that names the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, OSError, EOFError)) as caught:
            np.asarray(open_table(path, *labels, choice=Choice(**choice)).rows)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


def npy(header):
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


BROKEN = {
    "empty.npy": (b"", r"cannot be read"),
    "text.npy": (b"1 2 3\n", r"cannot be read"),
    "header.npy": (npy("{'descr': '<f4', 'fortran_order"), r"cannot be read"),
    "code.npy": (npy("__import__('os').system('true')"), r"cannot be read"),
    "short-header.npy": (npy("{")[:60], r"cannot be read"),
    "negative.npy": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4)}"),
        r"shape \(-1, 4\)",
    ),
    "huge.npy": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000, 4)}"),
        r"promises 10000000000000 rows of 4 features",
    ),
    "beyond.npy": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 4)}"),
        r"which is impossible",
    ),
    "odd.npy": (npy("{'descr': 'f0', 'fortran_order': False, 'shape': (2, 2)}"), r"\.npy"),
    "no.npz": (b"not a zip", r"cannot be read"),
    "no.parquet": (b"PAR1 not really PAR1", r"cannot be read"),
    "no.feather": (b"no arrow", r"cannot be read"),
    "no.h5": (b"no hdf", r"cannot be read"),
    "no.zarr": (b"no folder", r"is a file, but \.zarr is a folder"),
    "empty.csv": (b"", r"is empty"),
    "blank.csv": (b"\n\n\n", r"is empty"),
    "header.csv": (b"a,b,label\n", r"header but no rows"),
    "binary.csv": (bytes(range(256)), r"zero bytes"),
    "ragged.csv": (
        b"a,b,label\n1,2,x\n\n1,2,3,y\n",
        r"line 4: 4 cells, but 3 in the first line",
    ),
    "short.csv": (b"a,b,label\n1,2,x\n1,2,y\n1\n", r"line 4: 1 cells, but 3"),
    "mixed.csv": (
        b"a,b,label\n1,2,x\n1,two,y\n",
        r"line 3, column 'b': 'two' is not a number.*--ignore",
    ),
    "hole.csv": (b"a,b,label\n1,2,x\n,2,y\n", r"line 3, column 'a': the cell is empty"),
    "nan.csv": (b"a,b,label\n1,2,x\n1,nan,y\n", r"line 3, column 'b': nan is not a finite"),
    "inf.csv": (b"a,b,label\n1,2,x\n1e999,1,y\n", r"line 3, column 'a': inf is not a finite"),
    "unlabelled.csv": (b"a,b,label\n1,2,x\n1,3,\n", r"line 3, column 'label': the label is miss"),
    "latin.csv": (
        "a,b,label\n1,2,x\n1,2,café\n".encode("latin-1"),
        r"line 3: byte 0xe9 is not UTF-8.*--encoding latin-1",
    ),
    "quotes.csv": (b'a,b,label\n1,2,"x\ny"\n1,z,"x"\n', r"line 4, column 'b': 'z'"),
    "several.csv": (b"a,b,c\n1,x,y\n2,z,w\n", r"no column is clearly the labels among a, b, c"),
    "words.csv": (b"label\ncat\ndog\n", r"no column of numbers for the features"),
    "twice.csv": (b"a,a,label\n1,2,x\n", r"several columns 'a': name one by number, 1, 2"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_one_line(tmp_path, name):
    content, message = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    choice = {"ignore": ["a"]} if name == "twice.csv" else {}
    assert re.search(message, refused(tmp_path / name, **choice)), refused(tmp_path / name)


class Trap:
    """Fails the test if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def test_pickles_are_refused_unopened(tmp_path):
    np.save(tmp_path / "trap.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    assert "pickles can run code" in refused(tmp_path / "trap.npy")
    np.savez(tmp_path / "trap.npz", x=ROWS, y=np.array([Trap()] * 30, dtype=object))
    assert "pickles can run code" in refused(tmp_path / "trap.npz")
    np.save(tmp_path / "rows.npy", ROWS)
    with pytest.raises(ValueError, match=r"trap\.npy holds pickled objects"):
        open_table(tmp_path / "rows.npy", tmp_path / "trap.npy")


def test_missing_values_in_binary_files_are_located(tmp_path):
    rows = ROWS.copy()
    rows[17, 2] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    message = refused(tmp_path / "rows.npy", labelled=False)
    assert "row 17 (counted from 0), column 2" in message
    holes = frame().astype({"b": "Float32"})
    holes.loc[5, "b"] = None
    holes.to_parquet(tmp_path / "rows.parquet")
    assert "column 'b' has no value in row 5" in refused(tmp_path / "rows.parquet")
    frame(np.where(np.arange(30) == 4, None, LABELS)).to_parquet(tmp_path / "labels.parquet")
    assert "column 'label' has no value in row 4" in refused(tmp_path / "labels.parquet")


def test_nested_columns_are_named(tmp_path):
    path = tmp_path / "nested.parquet"
    pyarrow.parquet.write_table(
        pyarrow.table({"a": [1.0], "who": [{"name": "x"}], "label": ["x"]}), path
    )
    assert "column 'who' is nested (struct<name: string>)" in refused(path)
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0], "v": [[1.0]], "label": ["x"]}), path)
    assert "column 'v' is nested (list<element: double>); take it alone with --key v" in refused(
        path
    )
    vectors = {"v": [[1.0, 2.0], [3.0]], "label": ["x", "y"]}
    pyarrow.parquet.write_table(pyarrow.table(vectors), path)
    assert "column 'v' has 1 numbers in row 1 (counted from 0), but 2 in row 0" in refused(path)
    pyarrow.parquet.write_table(pyarrow.table({"v": [[1.0], [None]], "label": ["x", "y"]}), path)
    assert "lacks a number in row 1" in refused(path)
    with_a_number = pyarrow.table({"a": [1.0], "v": [[1.0]]})
    pyarrow.parquet.write_table(with_a_number, path)
    assert "column 'v' is nested" in refused(path, label="v")
    assert "column 'v' is nested" in refused(path, id="v", labelled=False)


def test_columns_of_the_same_name_are_named(tmp_path):
    held = pyarrow.Table.from_arrays([ROWS[:, 0], ROWS[:, 1], LABELS], names=["a", "a", "label"])
    pyarrow.parquet.write_table(held, tmp_path / "twice.parquet")
    assert "has several columns 'a'" in refused(tmp_path / "twice.parquet")
    pyarrow.feather.write_feather(held, tmp_path / "twice.arrow")
    assert "has several columns 'a'" in refused(tmp_path / "twice.arrow")


@pytest.mark.parametrize("kind", ["M8[us]", "M8[D]", "m8[s]", "longdouble", "complex128"])
def test_labels_that_a_model_file_cannot_hold_are_refused_from_every_source(tmp_path, kind):
    labels = (np.arange(30) % 3).astype(kind)
    np.savez(tmp_path / "table.npz", x=ROWS, y=labels)
    assert "y of " in (message := refused(tmp_path / "table.npz"))
    assert f"holds {labels.dtype}, not labels; turn them into strings" in message
    np.save(tmp_path / "rows.npy", ROWS)
    np.save(tmp_path / "labels.npy", labels)
    with pytest.raises(ValueError, match=r"labels\.npy holds .*, not labels"):
        open_table(tmp_path / "rows.npy", tmp_path / "labels.npy")
    if labels.dtype.kind in "mM":
        held = {"a": ROWS[:, 0], "label": pyarrow.array(labels)}
        pyarrow.parquet.write_table(pyarrow.table(held), tmp_path / "table.parquet")
        message = refused(tmp_path / "table.parquet")
        assert re.search(
            r"column 'label' of .*table\.parquet holds .*64\[.*\], not labels", message
        )
        labels_alone = pyarrow.table({"label": held["label"]})
        pyarrow.parquet.write_table(labels_alone, tmp_path / "labels.parquet")
        with pytest.raises(ValueError, match=r"column 'label' of .*, not labels"):
            open_table(tmp_path / "rows.npy", tmp_path / "labels.parquet")


def test_other_content_of_an_h5_file_does_no_harm(tmp_path):
    """Data sets without values, links that lead nowhere: in the file, or into another."""
    path = write(tmp_path / "table.h5")
    with h5py.File(path, "a") as file:
        file["nothing"] = h5py.Empty("f8")
        file["soft"] = h5py.SoftLink("/nowhere")
        file["external"] = h5py.ExternalLink("nowhere.h5", "/x")
        file["group/nothing"] = h5py.Empty("f8")
    for choice in (Choice(), Choice(key="x", label="y")):
        table = open_table(path, choice=choice)
        np.testing.assert_array_equal(np.asarray(table.rows), ROWS)
        np.testing.assert_array_equal(table.labels, LABELS)
    assert "has no array 'nothing'; it holds x, y" in refused(path, key="nothing")
    assert "has no array 'group/nothing'" in refused(path, key="group/nothing")
    assert "external of " in (message := refused(path, key="external"))
    assert "cannot be opened" in message
    with h5py.File(tmp_path / "labels.h5", "w") as file:
        file["y"], file["x"] = np.arange(30), h5py.ExternalLink("nowhere.h5", "/x")
    assert "y 30, x that cannot be opened" in refused(tmp_path / "labels.h5")


@pytest.mark.parametrize("kind", [h5py.ref_dtype, h5py.vlen_dtype(np.dtype("i4"))])
def test_labels_of_an_h5_file_that_are_not_values_are_refused(tmp_path, kind):
    with h5py.File(tmp_path / "table.h5", "w") as file:
        file["x"] = ROWS
        file.create_dataset("y", (30,), dtype=kind)
    assert "y of " in (message := refused(tmp_path / "table.h5"))
    assert "holds references or lists, not labels" in message


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ("x/zarr.json", {"shape": [None]}),
        ("x/zarr.json", {"shape": [10**30, 4]}),
        ("y/zarr.json", {"shape": [None]}),
    ],
)
def test_a_damaged_description_of_a_zarr_is_refused(tmp_path, place, wrong):
    path = write(tmp_path / "table.zarr")
    described = json.loads((path / place).read_text())
    (path / place).write_text(json.dumps(described | wrong))
    assert "cannot be read" in refused(path)


@pytest.mark.parametrize("offset", [2**31 - 1, -(2**31), 0])
def test_offsets_that_lead_out_of_an_arrow_file_are_not_followed(tmp_path, offset):
    """Reading beyond the mapped file would end the process."""
    path = tmp_path / "offsets.feather"
    words = pyarrow.array(["one", "three", "seven", "eleven"])
    held = pyarrow.table({"a": [1.0, 2.0, 3.0, 4.0], "label": words})
    pyarrow.feather.write_feather(held, path, compression="uncompressed")
    offsets = np.array([0, 3, 8, 13, 19], dtype="<i4")
    damaged = np.where(np.arange(5) == 2, offset, offsets).astype("<i4")
    content = path.read_bytes()
    assert content.count(offsets.tobytes()) == 1
    path.write_bytes(content.replace(offsets.tobytes(), damaged.tobytes()))
    assert "cannot be read" in refused(path)


def test_lengths_and_choices_that_do_not_match_are_refused(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    np.save(tmp_path / "labels.npy", LABELS[:-2])
    with pytest.raises(ValueError, match=r"rows\.npy has 30 rows, but .*labels\.npy has 28 labels"):
        open_table(tmp_path / "rows.npy", tmp_path / "labels.npy")
    assert "holds no labels beside its array" in refused(tmp_path / "rows.npy")
    np.savez(tmp_path / "two.npz", train=ROWS, test=ROWS)
    assert "test 30×4, train 30×4: choose the features with --key" in refused(tmp_path / "two.npz")
    np.savez(tmp_path / "two.npz", x=ROWS, one=LABELS, other=LABELS)
    assert "one, other, each with 30 values: choose the labels with --label" in refused(
        tmp_path / "two.npz"
    )
    assert open_table(tmp_path / "two.npz", choice=Choice(label="other")).labels[1] == "dog"
    assert "no array 'z'; it holds one, other, x" in refused(tmp_path / "two.npz", key="z")
    (tmp_path / "rows.doc").write_text("")
    assert "must end in one of .arrow, .csv" in refused(tmp_path / "rows.doc")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in refused(tmp_path / "folder.csv")
    assert "does not exist" in refused(tmp_path / "none.csv")


def test_files_truncated_at_any_byte_are_refused_or_complete(tmp_path):
    """A file that lost its end is refused with its name."""
    for kind in (".npy", ".npz", ".parquet", ".feather", ".h5"):
        whole = tmp_path / f"whole{kind}"
        np.save(whole, ROWS) if kind == ".npy" else write(whole)
        content = whole.read_bytes()
        for length in np.linspace(0, len(content) - 1, 40).astype(int).tolist():
            cut = tmp_path / f"cut{kind}"
            cut.write_bytes(content[:length])
            rows, message = rows_or_message(cut)
            if rows is None:
                assert cut.name in message, (kind, length)
            else:
                np.testing.assert_allclose(rows, ROWS, rtol=1e-6)


def rows_or_message(path):
    try:
        return np.asarray(open_table(path, choice=Choice(labelled=False)).rows), ""
    except (ValueError, OSError, EOFError) as error:
        return None, str(error)


def test_a_zip_with_a_damaged_member_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, x=ROWS)
    content = bytearray(buffer.getvalue())
    content[300] ^= 0xFF
    (tmp_path / "damaged.npz").write_bytes(content)
    with pytest.raises(zipfile.BadZipFile), zipfile.ZipFile(tmp_path / "damaged.npz") as archive:
        archive.read("x.npy")
    assert "cannot be read" in refused(tmp_path / "damaged.npz", labelled=False)
