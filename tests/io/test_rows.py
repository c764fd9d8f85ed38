"""Rows that are read when they are sliced, whatever file they are in."""

import mmap
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

from latentmetric.io import is_lazy, open_rows
from latentmetric.io.rows import RawRows, as_row_file


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
        columns = {f"f{i}": table[:, i] for i in range(4)} | {"label": ["a"] * 50}
        if kind == ".parquet":
            pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=8)
        else:
            pyarrow.feather.write_feather(pyarrow.table(columns), path, chunksize=8)
    return path


@pytest.mark.parametrize("kind", [".npy", ".npz", ".h5", ".zarr", ".parquet", ".arrow"])
def test_slices_and_indices_give_the_rows(table, tmp_path, kind):
    rows = open_rows(write(kind, table, tmp_path))
    assert is_lazy(rows)
    assert (rows.shape, rows.dtype, rows.ndim, len(rows)) == ((50, 4), np.float32, 2, 50)
    assert rows.nbytes == table.nbytes
    slices = [(3, 17), (0, 0), (9, 3), (45, 99), (0, None), (1, 30, 4), (None, None, -3)]
    for which in (slice(*ends) for ends in slices):
        np.testing.assert_array_equal(rows[which], table[which])
    for indices in ([3, 4, 5], [9, 1, 9], []):
        np.testing.assert_array_equal(rows[np.array(indices, dtype=int)], table[indices])
    np.testing.assert_array_equal(np.asarray(rows), table)
    assert np.asarray(rows, dtype=np.float64).dtype == np.float64
    with pytest.raises(IndexError, match="slice or list"):
        rows[np.zeros((2, 2), dtype=int)]
    with pytest.raises(ValueError, match="without a copy"):
        rows.__array__(copy=False)


def test_a_key_or_columns_choose(table, tmp_path):
    np.savez(tmp_path / "two.npz", a=table, b=2 * table)
    with pytest.raises(ValueError, match=r"two\.npz holds a 50×4, b 50×4: .*key="):
        open_rows(tmp_path / "two.npz")
    np.testing.assert_array_equal(open_rows(tmp_path / "two.npz", key="b")[:], 2 * table)
    with pytest.raises(ValueError, match="no column 'c'"):
        open_rows(tmp_path / "two.npz", key="c")
    path = write(".parquet", table, tmp_path)
    np.testing.assert_array_equal(open_rows(path, columns=["f2", "f0"])[:], table[:, [2, 0]])
    with pytest.raises(ValueError, match="no column 'f9'"):
        open_rows(path, columns=["f9"])
    with pytest.raises(ValueError, match="column 'label' holds text, not numbers"):
        open_rows(path, columns=["label"])
    pyarrow.parquet.write_table(pyarrow.table({"label": ["a"]}), path)
    with pytest.raises(ValueError, match="none of them numeric"):
        open_rows(path)


def test_rows_of_text_are_its_numbers(tmp_path):
    (tmp_path / "rows.csv").write_text("a,kind,b\n1,x,2\n3,y,4\n")
    assert open_rows(tmp_path / "rows.csv")[1:].tolist() == [[3.0, 4.0]]


def test_a_memory_map_is_rows_and_is_never_written_to(table, tmp_path):
    np.save(tmp_path / "rows.npy", table)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    for part in (mapped, mapped[10:40], mapped[:, 1:3], mapped[::-1]):
        rows = as_row_file(part)
        np.testing.assert_array_equal(rows[slice(2, 9)], part[2:9])
        rows[slice(2, 9)][:] = 7
    np.testing.assert_array_equal(mapped, table)
    assert as_row_file(rows) is rows
    with pytest.raises(ValueError, match="two dimensions"):
        as_row_file(mapped[0])


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_changes_of_a_memory_map_outlive_a_large_block(tmp_path, mode):
    np.save(tmp_path / "rows.npy", np.zeros((2**21, 2)))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode=mode)
    mapped[:] = 7
    for _ in range(2):
        assert (np.asarray(as_row_file(mapped)) == 7).all()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_large_file_passes_through_little_memory(tmp_path):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    np.save(tmp_path / "rows.npy", np.ones((2**21, 8)))
    rows = open_rows(tmp_path / "rows.npy")
    copy = RawRows(tempfile.TemporaryFile(), rows.shape, rows.dtype)  # noqa: SIM115
    before = resident()
    for start in range(0, len(rows), 2**17):
        copy.write(start, rows[start : start + 2**17])
    assert resident() - before < rows.nbytes / 2
    assert copy[-1:].tolist() == [[1.0] * 8]


def test_rows_are_written_to_a_temporary_file_and_read_back(table):
    rows = RawRows(tempfile.TemporaryFile(), table.shape, table.dtype)  # noqa: SIM115
    for start in (30, 0, 10):
        rows.write(start, table[start : start + 20])
    np.testing.assert_array_equal(rows[:], table)
    with ThreadPoolExecutor(4) as pool:
        for start, part in enumerate(pool.map(lambda start: rows[start : start + 9], range(40))):
            np.testing.assert_array_equal(part, table[start : start + 9])


def test_large_files_are_not_read_when_opened(tmp_path):
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (2**22, 2**10))
    del rows
    rows = open_rows(tmp_path / "rows.npy")
    assert rows.shape == (2**22, 2**10)
    assert rows[2**21 : 2**21 + 1].tolist() == [[0.0] * 2**10]


def test_a_missing_library_is_named_with_its_extra(table, tmp_path, monkeypatch):
    for kind, module, extra in ((".h5", "h5py", "files"), (".parquet", "pyarrow.parquet", "cli")):
        path = write(kind, table, tmp_path)
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=rf"rows{kind} needs .*latentmetric\[{extra}\]"):
            open_rows(path)


def test_what_is_no_table_of_numbers_is_refused_in_one_line(table, tmp_path):
    for name, content, message in (
        ("flat", np.arange(5.0), r"shape \(5,\); rows of features have two"),
        ("words", np.array([["a"]]), "holds <U1, not numbers"),
        ("objects", np.array([[None]]), "Python objects in dtype"),
    ):
        np.save(tmp_path / f"{name}.npy", content)
        with pytest.raises(ValueError, match=rf"{name}\.npy.*{message}"):
            open_rows(tmp_path / f"{name}.npy")
    with pytest.raises(FileNotFoundError, match=r"flat\.npz does not exist; did you mean '.*npy'"):
        open_rows(tmp_path / "flat.npz")
    with pytest.raises(FileNotFoundError, match=r"does not exist$"):
        open_rows(tmp_path / "nowhere" / "rows.npy")
    (tmp_path / "rows.doc").write_text("")
    with pytest.raises(ValueError, match=r"rows\.doc must end in one of \.arrow, \.csv, .*\.zarr"):
        open_rows(tmp_path / "rows.doc")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        open_rows(tmp_path / "folder.csv")
