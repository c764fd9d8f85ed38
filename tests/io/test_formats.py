"""What binary files hold, and damaged ones: one line that names the file."""

import datetime
import json
import pickle
import sys
import uuid
import warnings
from decimal import Decimal

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


def write(path):
    """The same features and labels in any format."""
    frame = pandas.DataFrame(ROWS, columns=NAMES).assign(label=LABELS)
    kind = path.suffix
    if kind in (".csv", ".tsv", ".txt"):
        frame.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
    elif kind == ".parquet":
        frame.to_parquet(path, index=False, row_group_size=7)
    elif kind in (".arrow", ".feather"):
        frame.to_feather(path, compression="uncompressed" if kind == ".arrow" else "lz4")
    elif kind == ".npz":
        np.savez(path, x=ROWS, y=LABELS, about=np.arange(3))
    elif kind == ".h5":
        with h5py.File(path, "w") as file:
            file["x"], file["y"] = ROWS, LABELS.astype(object)
    else:
        group = zarr.open_group(path, mode="w", zarr_format=2 if "old" in path.name else 3)
        group.create_array("x", data=ROWS, chunks=(7, 4))
        group.create_array("y", shape=30, dtype=str, chunks=30, compressors=None)[:] = LABELS
    return path


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


ALL = ["t.csv", "t.tsv", "t.txt", "t.parquet", "t.arrow", "t.feather", "t.npz", "t.h5", "t.zarr"]


@pytest.mark.parametrize("name", [*ALL, "old.zarr"])
def test_one_file_of_any_format_gives_the_same_rows_and_labels(tmp_path, name):
    table = open_table(write(tmp_path / name))
    np.testing.assert_allclose(np.asarray(table.rows), ROWS, rtol=1e-6)
    np.testing.assert_array_equal(table.labels, LABELS)
    has_arrays = name.endswith((".npz", ".h5", ".zarr"))
    assert table.feature_names == (None if has_arrays else NAMES)
    assert getattr(table.rows, "feature_names", table.feature_names) == table.feature_names
    assert any("labels" in line and ("'y'" in line or "'label'" in line) for line in table.notes)


def test_images_are_rows_of_all_their_pixels_in_any_order(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    for order in ("C", "F"):
        np.savez(tmp_path / "t.npz", x=np.array(images, order=order), y=[0, 1, 0, 1])
        np.save(tmp_path / "t.npy", np.array(images, order=order))
        table = open_table(tmp_path / "t.npz")
        np.testing.assert_array_equal(np.asarray(table.rows), images.reshape(4, 6))
        np.testing.assert_array_equal(open_rows(tmp_path / "t.npy")[1:], images.reshape(4, 6)[1:])
        assert "4×2×3" in table.notes[0]


def test_arrays_in_groups_and_alone(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["in/x"], file["in/empty"], file["y"] = ROWS, h5py.Empty("f8"), np.arange(30)
        file["nowhere"] = h5py.SoftLink("/none")
    group = zarr.open_group(tmp_path / "t.zarr", mode="w")
    group.create_array("in/x", data=ROWS)
    for name in ("t.h5", "t.zarr"):
        np.testing.assert_array_equal(open_rows(tmp_path / name, key="in/x")[:], ROWS)
        np.testing.assert_array_equal(open_rows(tmp_path / name)[:], ROWS)
        for key in ("in", "in/empty", "nowhere"):
            with pytest.raises(ValueError, match=f"no column '{key}'"):
                open_rows(tmp_path / name, key=key)
    zarr.save_array(tmp_path / "one.zarr", ROWS)
    np.testing.assert_array_equal(open_rows(tmp_path / "one.zarr")[:], ROWS)


def write_columns(path, **columns):
    table = pyarrow.table(columns)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=8)
    else:
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=8)
    return path


@pytest.fixture(params=[".parquet", ".arrow"])
def path(request, tmp_path):
    return tmp_path / f"table{request.param}"


def dictionary(codes, words):
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, pyarrow.int8()), words)


NUMBER = pyarrow.float32()


@pytest.mark.parametrize(
    "kind", [pyarrow.list_(NUMBER), pyarrow.large_list(NUMBER), pyarrow.list_(NUMBER, 4)], ids=str
)
def test_a_column_of_lists_is_the_features(path, kind):
    write_columns(path, n=np.arange(30), vector=pyarrow.array(ROWS.tolist(), kind), label=LABELS)
    for choice in (Choice(key="vector"), Choice(ignore=["n"])):
        table = open_table(path, choice=choice)
        np.testing.assert_array_equal(np.asarray(table.rows), ROWS)
        np.testing.assert_array_equal(table.rows[5:20], ROWS[5:20])
        assert table.rows.feature_names is table.feature_names is None


def test_an_arrow_stream_is_read_too(tmp_path):
    table = pyarrow.table({"a": [1.0, 2.0], "label": ["x", "y"]})
    with pyarrow.ipc.new_stream(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    assert open_table(tmp_path / "t.arrow").labels.tolist() == ["x", "y"]


@pytest.mark.parametrize("kind", [pyarrow.binary(), pyarrow.binary(3)])
def test_bytes_are_text_in_utf_8(path, kind):
    words = pyarrow.array([word.encode() for word in ("cat", "dö", "eel")], kind)
    write_columns(path, x=[1.0, 2.0, 3.0], n=words, label=words)
    table = open_table(path, choice=Choice(id="n"))
    assert table.labels.tolist() == table.ids.tolist() == ["cat", "dö", "eel"]
    write_columns(path, x=[1.0, 2.0], n=[b"cat", b"\xff\x00"])
    for choice in ({"label": "n"}, {"id": "n", "labelled": False}):
        assert "'utf-8' codec can't decode byte 0xff" in refused(path, **choice)


def test_dictionaries_are_what_their_values_are(path):
    large = [2**53, 2**53 + 1]
    write_columns(
        path,
        x=dictionary([0, 1, 0], pyarrow.array([0.5, 7.0])),
        n=dictionary([0, 1, 0], pyarrow.array(large)),
        label=dictionary([0, 1, 0], pyarrow.array([b"cat", b"dog"])),
    )
    table = open_table(path, choice=Choice(id="n"))
    assert table.rows[:].tolist() == [[0.5], [7.0], [0.5]]
    assert (table.labels.tolist(), table.ids.tolist()) == (["cat", "dog", "cat"], [*large, 2**53])
    arrow = path.with_name("null.arrow")  # Parquet has no nulls in dictionaries
    write_columns(arrow, x=dictionary([0, 1], pyarrow.array([5, None])), label=["a", "b"])
    assert "row 1 (counted from 0), column 'x': the value is missing" in refused(arrow)


def test_decimals_are_features_and_a_uuid_is_text(tmp_path, path):
    price = pyarrow.array([Decimal("1.10"), Decimal("-2.25")], pyarrow.decimal128(5, 2))
    write_columns(path, x=[1, 2], price=price, species=["a", "b"])
    assert open_table(path).rows[:].tolist() == [[1, 1.10], [2, -2.25]]
    assert open_rows(path).dtype == np.float64
    if hasattr(pyarrow, "uuid"):
        ids = [uuid.UUID(int=1), uuid.UUID(int=2)]
        array = pyarrow.array([one.bytes for one in ids], pyarrow.uuid())
        written = write_columns(tmp_path / "ids.arrow", x=[1.0, 2.0], n=array, label=array)
        table = open_table(written, choice=Choice(id="n"))
        assert table.labels.tolist() == table.ids.tolist() == [str(one) for one in ids]


def test_ids_of_columns_and_arrays(tmp_path, path):
    for ids, expected in (
        ([3, 1, 2], [3, 1, 2]),
        ([3, None, 2], ["3", "", "2"]),
        (["x", None, "z"], ["x", "", "z"]),
        ([0.5, 1.5, 2.5], ["0.5", "1.5", "2.5"]),
    ):
        write_columns(path, n=ids, a=[1.0, 2.0, 3.0], label=["u", "v", "u"])
        table = open_table(path, choice=Choice(id="n"))
        assert (table.ids.tolist(), table.feature_names) == (expected, ["a"])
    arrays = {"n": np.arange(30)[:, None], "s": LABELS.astype("S"), "half": np.arange(30) / 2}
    np.savez(tmp_path / "t.npz", x=ROWS, y=LABELS, **arrays)
    for name, expected in (("n", 29), ("s", "eel"), ("half", "14.5")):
        table = open_table(tmp_path / "t.npz", choice=Choice(id=name, label="y"))
        assert table.ids.tolist()[-1] == expected
    np.savez(tmp_path / "t.npz", x=ROWS, y=LABELS, n=np.arange(3))
    message = refused(tmp_path / "t.npz", id="n")
    assert "column 'n' (3) does not hold one value a row" in message
    assert "no column 'z'" in refused(tmp_path / "t.npz", id="z")


@pytest.mark.parametrize("kind", ["M8[us]", "longdouble"])
def test_labels_that_a_model_file_cannot_hold_are_refused(tmp_path, kind):
    labels = (np.arange(30) % 3).astype(kind)
    np.savez(tmp_path / "t.npz", x=ROWS, y=labels)
    expected = f"column 'y' holds {labels.dtype}, not labels; turn them into strings"
    assert expected in refused(tmp_path / "t.npz")


def test_missing_values_are_located(tmp_path, path):
    rows = ROWS.copy()
    rows[17, 2] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    message = refused(tmp_path / "rows.npy", labelled=False)
    assert "row 17 (counted from 0), column 'array', number 2 (from 0 as well)" in message
    write_columns(path, a=[1.0, 2.0, 3.0], b=[4, None, 6], label=["x", "y", None])
    assert "row 2 (counted from 0), column 'label': the label is missing" in refused(path)
    message = refused(path, labelled=False)
    assert "row 1 (counted from 0), column 'b': the value is missing; fill it in" in message
    np.savez(tmp_path / "t.npz", x=ROWS, y=np.full(30, np.nan))
    assert "row 0 (counted from 0), column 'y': the label is missing" in refused(tmp_path / "t.npz")


class Trap:
    """Fails the test if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def test_pickles_are_never_opened(tmp_path):
    np.save(tmp_path / "trap.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    assert "Python objects in dtype" in refused(tmp_path / "trap.npy")
    np.savez(tmp_path / "trap.npz", x=ROWS, y=np.array([Trap()] * 30, dtype=object))
    assert "Object arrays cannot be loaded" in refused(tmp_path / "trap.npz")
    np.save(tmp_path / "rows.npy", ROWS)
    with pytest.raises(ValueError, match=r"trap\.npy .* Python objects"):
        open_table(tmp_path / "rows.npy", tmp_path / "trap.npy")


@pytest.mark.parametrize(
    "change",
    [
        {"filters": [{"id": "vlen-utf8"}, {"id": "pickle"}]},
        {"compressor": {"id": "pickle"}},
    ],
)
def test_a_zarr_that_asks_for_a_pickle_is_refused(tmp_path, monkeypatch, change):
    """Also where numcodecs is so old that it would open it."""
    pickles = pytest.importorskip("numcodecs.pickles")
    monkeypatch.setattr(pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    path = write(tmp_path / "old.zarr")
    described = json.loads((path / "y/.zarray").read_text())
    (path / "y/.zarray").write_text(json.dumps(described | change))
    (path / "y/0").write_bytes(pickle.dumps(Trap()))
    assert "pickle" in refused(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".feather", ".arrow", ".h5"])
def test_a_file_that_lost_its_end_is_refused_or_complete(tmp_path, suffix):
    whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
    np.save(whole, ROWS) if suffix == ".npy" else write(whole)
    content = whole.read_bytes()
    n_refused = 0
    for length in np.linspace(0, len(content) - 1, 20).astype(int).tolist():
        cut.write_bytes(content[:length])
        try:
            rows = np.asarray(open_table(cut, choice=Choice(labelled=False)).rows)
        except ValueError as error:
            assert cut.name in str(error)  # noqa: PT017 some are complete
            n_refused += 1
        else:
            np.testing.assert_allclose(rows, ROWS, rtol=1e-6)
    assert n_refused > 10


@pytest.mark.parametrize("name", ["t.npy", "t.npz", "t.parquet", "t.feather", "t.h5", "t.zarr"])
def test_what_is_another_kind_of_file_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"no such file, but text of some length")
    assert f"{name} cannot be read: " in refused(tmp_path / name)


@pytest.mark.parametrize("offset", [2**31 - 1, 0])
def test_a_damaged_offset_of_an_arrow_file_does_not_end_the_process(tmp_path, offset):
    path = tmp_path / "t.feather"
    held = pyarrow.table({"a": [1.0, 2.0, 3.0], "label": ["one", "three", "seven"]})
    pyarrow.feather.write_feather(held, path, compression="uncompressed")
    offsets = np.array([0, 3, 8, 13], dtype="<i4")
    damaged = np.where(np.arange(4) == 2, offset, offsets).astype("<i4")
    content = path.read_bytes()
    assert content.count(offsets.tobytes()) == 1
    path.write_bytes(content.replace(offsets.tobytes(), damaged.tobytes()))
    assert "cannot be read" in refused(path)


@pytest.mark.parametrize("name", ["t.npy", "t.npz", "t.h5", "t.zarr", "t.parquet", "t.arrow"])
def test_slices_and_indices_give_the_rows(tmp_path, name):
    path = tmp_path / name
    np.save(path, ROWS) if name == "t.npy" else write(path)
    rows = open_rows(path)
    assert (rows.shape, rows.dtype, rows.ndim, len(rows)) == ((30, 4), np.float32, 2, 30)
    assert rows.nbytes == ROWS.nbytes
    slices = [(3, 17), (0, 0), (9, 3), (25, 99), (0, None), (1, 30, 4), (None, None, -3)]
    for which in (slice(*ends) for ends in slices):
        np.testing.assert_array_equal(rows[which], ROWS[which])
    for indices in ([3, 4, 5], [9, 1, 9], []):
        np.testing.assert_array_equal(rows[np.array(indices, dtype=int)], ROWS[indices])
    assert np.asarray(rows, dtype=np.float64).dtype == np.float64
    with pytest.raises(IndexError, match="slice or list"):
        rows[np.zeros((2, 2), dtype=int)]
    with pytest.raises(ValueError, match="without a copy"):
        rows.__array__(copy=False)


def test_columns_choose(tmp_path):
    path = write(tmp_path / "t.parquet")
    np.testing.assert_array_equal(open_rows(path, columns=["c", "a"])[:], ROWS[:, [2, 0]])
    assert open_rows(write(tmp_path / "t.csv"))[1:].shape == (29, 4)
    for column, message in (("f", "no column 'f'"), ("label", "'label' holds text, not numbers")):
        with pytest.raises(ValueError, match=message):
            open_rows(path, columns=[column])
    write_columns(path, label=["a"])
    with pytest.raises(ValueError, match="none of them numeric"):
        open_rows(path)


def test_what_is_neither_number_nor_text_is_named(path):
    for held, message in (
        ([{"name": "x"}] * 2, "holds struct<name: string>, not numbers; leave out with --ignore v"),
        ([datetime.date(2020, 1, 1)] * 2, "holds date32[day], not numbers"),
    ):
        write_columns(path, a=[1.0, 2.0], v=held, label=["x", "y"])
        assert message in refused(path)
    write_columns(path, a=[1.0, 2.0], v=[[1.0], [2.0]], species=[0, 1])
    assert "does not hold one value a row, as labels must" in refused(path, label="v")
    assert "does not hold one value a row, as an id must" in refused(path, id="v", labelled=False)
    assert "no column is clearly the labels among a, v, species" in refused(path)
    write_columns(path, v=[[1.0, 2.0], [3.0]], label=["x", "y"])
    assert "row 1 (counted from 0), column 'v': 1 numbers, but 2 in row 0" in refused(path)
    write_columns(path, v=[[1.0], [None]], label=["x", "y"])
    assert "column 'v', number 0 (from 0 as well): the value is missing" in refused(path)
    write_columns(path, a=[{"b": 9.0}] * 2, **{"a.b": [1.0, 2.0], "label": ["x", "y"]})
    assert open_table(path, choice=Choice(ignore=["a"])).rows[:].tolist() == [[1], [2]]


def test_a_missing_library_is_named_with_how_to_install_it(tmp_path, monkeypatch):
    for kind, module in ((".h5", "h5py"), (".parquet", "pyarrow.parquet")):
        path = write(tmp_path / f"t{kind}")
        monkeypatch.setitem(sys.modules, module, None)
        library = module.split(".")[0]
        with pytest.raises(ImportError, match=rf"t{kind} needs .*: pip install {library}$"):
            open_rows(path)


def test_what_is_no_table_of_numbers_is_refused_in_one_line(tmp_path):
    np.save(tmp_path / "flat.npy", np.arange(5.0))
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    (tmp_path / "rows.doc").write_text("")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "folder" / "1.npy", np.arange(5.0))
    for name, error, message in (
        ("flat.npy", ValueError, r"shape \(5,\); rows of features have two"),
        ("words.npy", ValueError, "holds <U1, not numbers"),
        ("flat.npz", FileNotFoundError, r"flat\.npz does not exist; did you mean '.*npy'"),
        ("nowhere/rows.npy", FileNotFoundError, "does not exist$"),
        ("rows.doc", ValueError, r"rows\.doc must end in one of \.arrow, \.csv, .*\.zarr"),
        ("folder.csv", IsADirectoryError, "is a folder, not a file$"),
        ("folder", IsADirectoryError, r"is a folder, not a file; .*np\.stack\(arrays\)"),
    ):
        with pytest.raises(error, match=message):
            open_rows(tmp_path / name)
