import os
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zarr

from latentmetric.engines import sorting
from latentmetric.io import is_lazy, open_rows
from latentmetric.io.rows import as_row_file


@pytest.fixture
def table():
    return np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)


def write(kind, table, folder):
    path = folder / f"rows{kind}"
    if kind == ".npy":
        np.save(path, table)
    elif kind == ".npz":
        np.savez_compressed(path, rows=table, labels=np.arange(50))
    elif kind == ".h5":
        with h5py.File(path, "w") as file:
            file["rows"], file["labels"] = table, np.arange(50)
    elif kind == ".zarr":
        group = zarr.open_group(path, mode="w")
        group.create_array("rows", data=table, chunks=(7, 4))
    else:
        columns = {f"f{place}": table[:, place] for place in range(4)} | {"label": ["a"] * 50}
        pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=8)
    return path


@pytest.mark.parametrize("kind", [".npy", ".npz", ".h5", ".zarr", ".parquet"])
def test_slices_and_numbers_give_the_rows(table, tmp_path, kind):
    rows = open_rows(write(kind, table, tmp_path))
    assert is_lazy(rows)
    assert (rows.shape, rows.dtype, rows.ndim, len(rows)) == ((50, 4), np.float32, 2, 50)
    assert rows.nbytes == table.nbytes
    all_rows = slice(0, None)
    for which in (
        slice(3, 17),
        slice(0, 0),
        slice(45, 99),
        all_rows,
        slice(1, 30, 4),
        slice(None, None, -3),
    ):
        np.testing.assert_array_equal(rows[which], table[which])
    for numbers in ([3, 4, 5], [9, 1, 9], []):
        np.testing.assert_array_equal(rows[np.array(numbers, dtype=int)], table[numbers])
    np.testing.assert_array_equal(np.asarray(rows), table)


def test_a_key_or_columns_choose(table, tmp_path):
    np.savez(tmp_path / "two.npz", a=table, b=2 * table)
    with pytest.raises(ValueError, match=r"2 arrays with two dimensions .*key="):
        open_rows(tmp_path / "two.npz")
    np.testing.assert_array_equal(open_rows(tmp_path / "two.npz", key="b")[:], 2 * table)
    with pytest.raises(ValueError, match="no array 'c'"):
        open_rows(tmp_path / "two.npz", key="c")
    path = write(".parquet", table, tmp_path)
    np.testing.assert_array_equal(open_rows(path, columns=["f2", "f0"])[:], table[:, [2, 0]])
    with pytest.raises(ValueError, match="not \\['f9'\\]"):
        open_rows(path, columns=["f9"])


def test_a_memory_map_is_read_from_its_file(table, tmp_path):
    np.save(tmp_path / "rows.npy", table)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for part in (mapped, mapped[10:40]):
        np.testing.assert_array_equal(as_row_file(part)[slice(2, 9)], part[2:9])
    np.testing.assert_array_equal(as_row_file(mapped[:, 1:3])[slice(2, 9)], mapped[2:9, 1:3])
    np.testing.assert_array_equal(as_row_file(mapped[::-1])[slice(2, 9)], mapped[::-1][2:9])


def test_a_memory_map_that_differs_from_its_file_is_used_as_it_is(table, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, table)
    private = np.load(path, mmap_mode="c")
    private += 7
    np.testing.assert_array_equal(as_row_file(private)[slice(0, 9)], table[:9] + 7)
    mapped = np.load(path, mmap_mode="r")
    path.unlink()
    np.testing.assert_array_equal(as_row_file(mapped)[slice(0, 9)], table[:9])
    np.save(path, table + 1)
    np.testing.assert_array_equal(as_row_file(mapped)[slice(0, 9)], table[:9])
    with pytest.raises(ValueError, match="two dimensions"):
        as_row_file(mapped[0])


@pytest.fixture
def like_windows(monkeypatch):
    """A system that cannot read or write at a given place of a file."""
    for name in ("preadv", "pwrite"):
        monkeypatch.delattr(os, name, raising=False)


def test_rows_are_read_where_the_system_only_seeks(like_windows, table, tmp_path):
    rows = open_rows(write(".npy", table, tmp_path))
    np.testing.assert_array_equal(rows[3:17], table[3:17])
    np.testing.assert_array_equal(np.asarray(open_rows(write(".npz", table, tmp_path))), table)
    long = np.zeros((9000, 4))
    rows = open_rows(write(".npy", long, tmp_path))
    os.truncate(tmp_path / "rows.npy", long.nbytes - 100)
    with pytest.raises(OSError, match="had 288128 bytes when it was opened and has 287900 now"):
        rows[:]


def test_threads_that_seek_do_not_disturb_each_other(like_windows, tmp_path):
    table = np.arange(40_000.0).reshape(20_000, 2)
    np.save(tmp_path / "rows.npy", table)
    rows = open_rows(tmp_path / "rows.npy")
    starts = np.random.default_rng(0).integers(0, 19_000, 2000).tolist()

    def is_right(start):
        return np.array_equal(rows[start : start + 700], table[start : start + 700])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(is_right, starts))


def test_rows_are_sorted_on_disk_where_the_system_only_seeks(
    like_windows, table, monkeypatch, tmp_path
):
    monkeypatch.setattr(sorting, "IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(sorting, "READ_BYTES", 100)
    codes = np.arange(50) % 3
    store, order = sorting.sorted_by_class(
        open_rows(write(".npy", table, tmp_path)),
        codes,
        table.dtype,
        lambda done, total: None,
    )
    np.testing.assert_array_equal(store[:], table[order])


def test_a_missing_value_of_a_parquet_file_is_named(tmp_path):
    columns = {"a": [1, 2, 3], "b": [4, None, 6]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="column 'b' has no value in row 1"):
        open_rows(tmp_path / "rows.parquet")[slice(0, 3)]


def test_bad_files_are_refused_in_one_line(table, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_rows(tmp_path / "none.npy")
    (tmp_path / "text.npy").write_text("1 2 3")
    with pytest.raises(ValueError, match=r"no readable \.npy header"):
        open_rows(tmp_path / "text.npy")
    (tmp_path / "rows.txt").write_text("1 2 3")
    with pytest.raises(ValueError, match=r"must end in one of \.arrow, .*\.h5"):
        open_rows(tmp_path / "rows.txt")
    np.save(tmp_path / "flat.npy", np.arange(5.0))
    with pytest.raises(ValueError, match=r"shape \(5,\); rows of features have two"):
        open_rows(tmp_path / "flat.npy")
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    with pytest.raises(ValueError, match="not numbers"):
        open_rows(tmp_path / "words.npy")
    np.save(tmp_path / "objects.npy", np.array([[None]]))
    with pytest.raises(ValueError, match="not numbers"):
        open_rows(tmp_path / "objects.npy")
    np.save(tmp_path / "cut.npy", table)
    whole = (tmp_path / "cut.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-100])
    with pytest.raises(EOFError, match="50 rows of 4 features"):
        open_rows(tmp_path / "cut.npy")[slice(0, 50)]


def test_a_missing_library_is_named(table, tmp_path, monkeypatch):
    import sys

    path = write(".h5", table, tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"latentmetric\[files\]"):
        open_rows(path)
