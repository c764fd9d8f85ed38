"""Files that are cut, written to or replaced while they are read, and files that are none."""

import io
import os
import tempfile
import zipfile

import h5py
import numpy as np
import pandas
import pyarrow
import pyarrow.feather
import pytest

from latentmetric.io import Choice, open_rows, open_table, watching
from latentmetric.io.arrow import open_arrow
from latentmetric.io.choosing import places_of
from latentmetric.io.columns import open_parquet
from latentmetric.io.formats import FORMATS, suffixes
from latentmetric.io.rows import ColumnRawRows, RawRows, SlicedRows, as_row_file
from latentmetric.persistence.model_file import is_model_file

ROWS = np.random.default_rng(0).standard_normal((20_000, 8)).astype(np.float32)
KINDS = ["c.npy", "fortran.npy", "rows.h5", "rows.parquet", "rows.arrow", "rows.feather"]
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def write(path, rows=ROWS):
    if path.name == "fortran.npy":
        np.save(path, np.asfortranarray(rows))
    elif path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["x"] = rows
    elif path.suffix == ".parquet":
        pandas.DataFrame(rows, columns=list("abcdefgh")).to_parquet(path, row_group_size=1000)
    else:
        held = pandas.DataFrame(rows, columns=list("abcdefgh"))
        held.to_feather(path, compression="uncompressed" if path.suffix == ".arrow" else "lz4")
    return path


def rows_of_table(path):
    return open_table(path, choice=Choice(labelled=False)).rows


@pytest.mark.parametrize("opened", [open_rows, rows_of_table])
@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_is_cut_is_noticed(tmp_path, name, opened):
    """A map would end the process, HDF5 would give zeros."""
    path = write(tmp_path / name)
    size, rows = path.stat().st_size, opened(path)
    np.testing.assert_array_equal(rows[:100], ROWS[:100])
    os.truncate(path, size // 2)
    message = rf"{name} was changed .* had {size} bytes .* and has {size // 2} now"
    with pytest.raises(OSError, match=message):
        rows[19_000:]


@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_is_written_to_is_noticed(tmp_path, name):
    path = write(tmp_path / name)
    rows = open_rows(path)
    with path.open("r+b") as file:
        file.seek(-1000, os.SEEK_END)
        file.write(b"\0" * 4)
    os.utime(path, ns=(0, 0))  # clocks of files are coarse
    with pytest.raises(OSError, match=r"was changed while it was read: it still has \d+ bytes"):
        rows[:100]


@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_is_replaced_or_deleted_is_read_on(tmp_path, name):
    path = write(tmp_path / name)
    rows = open_rows(path)
    write(tmp_path / f"new-{name}", ROWS + 1).replace(path)
    np.testing.assert_array_equal(rows[15_000:], ROWS[15_000:])
    path.unlink()
    np.testing.assert_array_equal(rows[5:9], ROWS[5:9])


def test_a_file_that_is_replaced_while_it_is_opened_is_refused(tmp_path):
    path, other = write(tmp_path / "c.npy"), write(tmp_path / "other.npy")
    watch = watching.Watch(path, "c.npy")
    with pytest.raises(OSError, match=r"c\.npy was replaced while it was opened"), watch.opened():
        other.replace(path)


def test_text_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("a,label\n1,x\n2,y\n")
    load = np.loadtxt

    def load_late(*args, **kwargs):
        path.write_text("a,label\n1,x\n2,y\n3,z\n")
        return load(*args, **kwargs)

    monkeypatch.setattr(np, "loadtxt", load_late)
    with pytest.raises(OSError, match=r"rows\.csv was changed while it was read"):
        open_table(path)


def test_rows_in_fortran_order_are_those_of_the_array(tmp_path):
    images = np.asfortranarray(np.random.default_rng(1).standard_normal((20, 2, 3, 4)))
    np.save(tmp_path / "images.npy", images)
    rows = open_rows(tmp_path / "images.npy")
    np.testing.assert_array_equal(rows[3:11], images[3:11].reshape(8, 24))
    np.testing.assert_array_equal(rows[[4, 0]], images[[4, 0]].reshape(2, 24))


def test_maps_are_read_from_their_own_file(tmp_path):
    """Not from another of the same name, even if its first and last rows are the same."""
    for name, kind in (("c.npy", RawRows), ("fortran.npy", ColumnRawRows)):
        mapped = np.load(write(tmp_path / name), mmap_mode="r")
        rows = as_row_file(mapped)
        assert type(rows) is kind
        np.testing.assert_array_equal(rows[7:70], ROWS[7:70])
        changed = ROWS.copy()
        changed[1:-1] += 1
        write(tmp_path / "new.npy", changed).replace(tmp_path / name)
        if not os.path.exists("/proc/self/maps"):
            continue
        assert type(as_row_file(mapped)) is SlicedRows
        np.testing.assert_array_equal(as_row_file(mapped)[7:70], ROWS[7:70])


def test_arrow_gives_what_the_file_holds_of_every_kind(tmp_path):
    generator = np.random.default_rng(0)
    n, gaps = 500, generator.random(500) < 0.2
    lists = [None if gap else generator.random(generator.integers(4)).tolist() for gap in gaps]
    words = pyarrow.array([None if gap else f"é{place % 7}" for place, gap in enumerate(gaps)])
    table = pyarrow.table(
        {
            "number": ROWS[:n, 0],
            "gaps": pyarrow.array(ROWS[:n, 0], mask=gaps),
            "flag": pyarrow.array(ROWS[:n, 0] > 0, mask=gaps),
            "small": np.arange(n).astype("i1"),
            "lists": pyarrow.array(lists, pyarrow.list_(pyarrow.float32())),
            "large": pyarrow.array(lists, pyarrow.large_list(pyarrow.float64())),
            "fixed": pyarrow.array(ROWS[:n, :3].tolist(), pyarrow.list_(pyarrow.float32(), 3)),
            "words": words,
            "dictionary": words.dictionary_encode(),
            "date": pyarrow.array(np.arange(n).astype("M8[D]")),
            "record": [{"a": 1}] * n,
            "tensor": pyarrow.ExtensionArray.from_storage(
                pyarrow.fixed_shape_tensor(pyarrow.float32(), [3]),
                pyarrow.array(ROWS[:n, :3].tolist(), pyarrow.list_(pyarrow.float32(), 3)),
            ),
        }
    )
    for packed in ("uncompressed", "zstd"):
        path = tmp_path / f"{packed}.arrow"
        pyarrow.feather.write_feather(table, path, compression=packed, chunksize=130)
        file = open_arrow(path)
        for start, stop in ((0, n), (13, 14), (125, 300), (n - 1, n), (9, 9)):
            assert file.read(table.schema.names, start, stop).equals(
                table.slice(start, stop - start)
            )
    with pyarrow.ipc.new_stream(str(tmp_path / "stream.arrow"), table.schema) as writer:
        writer.write_table(table)
    assert (
        open_arrow(tmp_path / "stream.arrow")
        .read(["words"], 3, 9)
        .equals(table.select(["words"]).slice(3, 6))
    )


@needs_pipes
@pytest.mark.parametrize("suffix", [form.suffix for form in FORMATS])
def test_only_regular_files_are_opened(tmp_path, suffix):
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    np.save(tmp_path / "rows.npy", ROWS)
    for arguments in ((path,), (tmp_path / "rows.npy", path)):
        with pytest.raises(ValueError, match=r"pipe.* not a regular file; .* standard input"):
            open_table(*arguments)
    if suffix not in suffixes(["text"]):
        with pytest.raises(ValueError, match="not a regular file"):
            open_rows(path)


@needs_pipes
def test_a_pipe_is_no_model(tmp_path):
    os.mkfifo(tmp_path / "pipe.model")
    assert not is_model_file(tmp_path / "pipe.model")


class CountedFile(io.BytesIO):
    """A file in memory that says how much was written to it."""

    written = 0

    def write(self, content):
        CountedFile.written += len(content)
        return super().write(content)


def test_members_of_an_npz_are_unpacked_as_far_as_their_headers_say(tmp_path, monkeypatch):
    packed = io.BytesIO()
    np.save(packed, ROWS[:3])
    path = tmp_path / "rows.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", packed.getvalue() + bytes(2**24))
        archive.writestr("y.npy", packed.getvalue() + bytes(1))
        archive.writestr("z.npy", packed.getvalue())
    monkeypatch.setattr(tempfile, "TemporaryFile", CountedFile)
    with pytest.raises(
        ValueError, match=r"x of .*rows\.npz holds more bytes of data than its head"
    ):
        open_rows(path, key="x")[:]
    assert CountedFile.written == len(packed.getvalue())
    monkeypatch.undo()
    with pytest.raises(
        ValueError, match=r"y of .*rows\.npz holds more bytes of data than its head"
    ):
        open_table(path, choice=Choice(key="z", label="y"))


def test_a_header_of_gigabytes_is_not_read(tmp_path):
    start = b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little")
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        archive.writestr("x.npy", start + bytes(100))
    (tmp_path / "rows.npy").write_bytes(start + bytes(100))
    for name in ("rows.npz", "rows.npy"):
        with pytest.raises(ValueError, match="header: it takes 2147483648 bytes, more than 65536"):
            open_rows(tmp_path / name)


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)


def test_work_grows_with_the_number_of_columns_and_not_its_square(tmp_path):
    names = [CountedName(f"f{place}") for place in range(1000)]
    assert places_of(names[::-1], names, "file") == list(range(999, -1, -1))
    assert CountedName.compared < 10_000
    path = write(tmp_path / "rows.parquet")
    file = open_parquet(path)
    assert file.names is file.names
