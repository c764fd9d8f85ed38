"""Small files that unpack to much, arrays without their chunks, and files of rarer versions."""

import gzip
import json
import struct
import tracemalloc
import zipfile

import h5py
import numcodecs
import numpy as np
import pytest
import zarr

from latentmetric.io import Choice, open_rows, open_table
from latentmetric.io import arrays as io_arrays
from latentmetric.io import text as io_text
from latentmetric.io.zarr_unpacking import UNPACKERS, UnpackingBytesCodec, UnpackingCodec

ROWS = np.arange(20.0).reshape(10, 2)
BOMB_BYTES = 2**26


def peak_of(work):
    """The memory that Python and NumPy took meanwhile, and what was refused."""
    tracemalloc.start()
    try:
        with pytest.raises((ValueError, OSError)) as caught:
            work()
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


def described_2(path, packed_by, shape=(10, 2), chunks=(10, 2), dtype="<f8", **changes):
    """An array of format 2, without its chunks."""
    path.mkdir()
    (path / ".zarray").write_text(
        json.dumps(
            {
                "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype,
                "compressor": packed_by, "fill_value": 0, "order": "C", "filters": None,
            }
            | changes
        )
    )  # fmt: skip
    return path


def described_3(path, packed_by, **changes):
    """An array of format 3, without its chunks."""
    (path / "c/0").mkdir(parents=True)
    (path / "zarr.json").write_text(
        json.dumps(
            {
                "zarr_format": 3, "node_type": "array", "shape": [10, 2], "data_type": "float64",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10, 2]}},
                "chunk_key_encoding": {"name": "default"}, "fill_value": 0.0,
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, packed_by],
            }
            | changes
        )
    )  # fmt: skip
    return path


def codec(name):
    return numcodecs.get_codec({"id": name})


@pytest.mark.parametrize("name", sorted(UNPACKERS))
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_chunk_unpacks_to_no_more_than_its_array_needs(tmp_path, name, zarr_format):
    path = tmp_path / "table.zarr"
    if zarr_format == 2:
        chunk = described_2(path, {"id": name}) / "0.0"
    else:
        known = name if name in ("blosc", "gzip", "zstd") else f"numcodecs.{name}"
        chunk = described_3(path, {"name": known, "configuration": {}}) / "c/0/0"
    chunk.write_bytes(codec(name).encode(ROWS.tobytes()))
    np.testing.assert_array_equal(open_rows(path)[:], ROWS)
    chunk.write_bytes(codec(name).encode(bytes(BOMB_BYTES)))
    peak, message = peak_of(lambda: open_rows(path)[:])
    assert peak < BOMB_BYTES / 4
    assert "a chunk unpacks to more than 65,856 bytes" in message


def test_zstd_of_unknown_size_is_bounded_too(tmp_path):
    path = described_2(tmp_path / "table.zarr", {"id": "zstd"})
    start, large = b"\x28\xb5\x2f\xfd\x00\x58", 2**17
    blocks = [(large << 3 | 2 | (number == 511)).to_bytes(3, "little") for number in range(512)]
    (path / "0.0").write_bytes(start + b"\0".join(blocks) + b"\0")  # one byte, repeated
    assert "unpacks to more than" in peak_of(lambda: open_rows(path)[:])[1]
    whole = len(ROWS.tobytes()) << 3 | 1
    (path / "0.0").write_bytes(start + whole.to_bytes(3, "little") + ROWS.tobytes())
    np.testing.assert_array_equal(open_rows(path)[:], ROWS)


@pytest.mark.parametrize("name", ["gzip", "bz2", "lzma"])
def test_members_one_after_the_other_are_bounded_together(tmp_path, name):
    path = described_2(tmp_path / "table.zarr", {"id": name})
    halves = [codec(name).encode(half.tobytes()) for half in (ROWS[:5], ROWS[5:])]
    (path / "0.0").write_bytes(b"".join(halves))
    np.testing.assert_array_equal(open_rows(path)[:], ROWS)
    (path / "0.0").write_bytes(codec(name).encode(bytes(60_000)) * 1_000)
    peak, message = peak_of(lambda: open_rows(path)[:])
    assert "unpacks to more than" in message
    assert peak < 10_000_000


@pytest.mark.parametrize("name", ["gzip", "zlib", "bz2", "lzma", "lz4", "zstd"])
def test_chunks_that_are_cut_are_refused(tmp_path, name):
    path = described_2(tmp_path / "table.zarr", {"id": name})
    (path / "0.0").write_bytes(codec(name).encode(ROWS.tobytes())[:-9])
    with pytest.raises(ValueError, match=r"table\.zarr cannot be read as \.zarr"):
        open_rows(path)[:]


def test_text_of_any_length_is_bounded(tmp_path, monkeypatch):
    group = zarr.open_group(tmp_path / "table.zarr", mode="w", zarr_format=2)
    group.create_array("x", data=ROWS)
    words = group.create_array("y", shape=10, chunks=10, dtype=str)
    words[:] = np.array(["cat", "dog"] * 5)
    assert open_table(tmp_path / "table.zarr").labels.tolist() == ["cat", "dog"] * 5
    words[:] = np.array(["cat" * 99, "dog"] * 5)
    monkeypatch.setattr("latentmetric.io.zarr_folder.most_bytes", lambda description: 40)
    with pytest.raises(ValueError, match="a chunk unpacks to more than 40 bytes"):
        open_table(tmp_path / "table.zarr")


def test_chunks_far_larger_than_their_array_are_refused(tmp_path):
    path = described_2(tmp_path / "large.zarr", None, chunks=(2**20, 2**10))
    (path / "0.0").write_bytes(b"")
    with pytest.raises(ValueError, match=r"chunks takes 8,589,934,592 bytes, but the whole .* 160"):
        open_rows(path)
    path = described_2(tmp_path / "usual.zarr", None, chunks=(1000, 100))
    (path / "0.0").write_bytes(np.pad(ROWS, ((0, 990), (0, 98))).tobytes())
    np.testing.assert_array_equal(open_rows(path)[:], ROWS)


@pytest.mark.parametrize("chunks", [None, [10], [10, 0], [10, "2"], [10, -2], [10, 2.0]])
def test_odd_chunks_are_refused_with_one_line(tmp_path, chunks):
    path = described_2(tmp_path / "table.zarr", None, chunks=chunks)
    with pytest.raises(ValueError, match=r"table\.zarr cannot be read as \.zarr: its .*chunks"):
        open_rows(path)


def test_bytes_of_any_length_are_text(tmp_path):
    group = zarr.open_group(tmp_path / "table.zarr", mode="w", zarr_format=2)
    group.create_array("x", data=ROWS + 1)
    (tmp_path / "table.zarr/y").mkdir()
    described_2(
        tmp_path / "table.zarr/y/new", None, [10], [10], "|O", filters=[{"id": "vlen-bytes"}],
        fill_value="",
    )  # fmt: skip
    for file in (tmp_path / "table.zarr/y/new").iterdir():
        file.rename(tmp_path / "table.zarr/y" / file.name)
    words = np.array([b"cat", b"dog"] * 5, dtype=object)
    (tmp_path / "table.zarr/y/0").write_bytes(numcodecs.VLenBytes().encode(words))
    assert open_table(tmp_path / "table.zarr").labels.tolist() == ["cat", "dog"] * 5


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("fill", [0, 7.5])
def test_rows_without_chunks_are_not_made_up(tmp_path, zarr_format, fill):
    path = tmp_path / "table.zarr"
    array = zarr.create_array(
        path, shape=(10, 2), chunks=(4, 1), dtype=float, fill_value=fill, zarr_format=zarr_format
    )
    array[:] = ROWS
    rows = open_rows(path)
    np.testing.assert_array_equal(rows[:], ROWS)
    gone = [path / "1.0", path / "1.1"] if zarr_format == 2 else [path / "c/1/0", path / "c/1/1"]
    gone[0].unlink()
    some = ROWS.copy()
    some[4:8, 0] = fill  # beside it there is another: zarr leaves out what holds only this value
    np.testing.assert_array_equal(open_rows(path)[:], some)
    gone[1].unlink()
    np.testing.assert_array_equal(open_rows(path)[:4], ROWS[:4])
    with pytest.raises(ValueError, match=r"rows 4 to 7 \(counted from 0\) are not there: no file"):
        open_rows(path)[:]
    gone[0].mkdir()
    with pytest.raises(ValueError, match=r"rows 4 to 7 .*; copy the folder again"):
        open_rows(path)[3:5]


@pytest.mark.parametrize("options", [{"chunks": (4, 1)}, {"chunks": (4, 1), "compression": "gzip"}])
def test_rows_of_an_h5_file_that_were_never_written_are_refused(tmp_path, options):
    with h5py.File(tmp_path / "table.h5", "w") as file:
        rows = file.create_dataset("x", (10, 2), "f8", **options)
        rows[:5] = ROWS[:5]
        file.create_dataset("y", (10,), "i8")
        file.create_dataset("zeros", data=np.zeros((10, 2)))
        file["scalar"], file["empty"] = 3, np.empty((0, 2))
    path = tmp_path / "table.h5"
    np.testing.assert_array_equal(open_rows(path, key="x")[:5], ROWS[:5])
    assert not open_rows(path, key="zeros")[:].any()
    assert open_rows(path, key="empty").shape == (0, 2)
    with pytest.raises(ValueError, match=r"rows 8 to 9 .* are not there: they were never written"):
        open_rows(path, key="x")[:]
    with pytest.raises(ValueError, match=r"rows 0 to 9 .* are not there: they were never written"):
        open_table(path, choice=Choice(key="zeros", label="y"))


def test_labels_without_chunks_are_not_made_up(tmp_path):
    group = zarr.open_group(tmp_path / "table.zarr", mode="w")
    group.create_array("x", data=ROWS)
    group.create_array("y", data=np.arange(10) // 5, chunks=5)
    with pytest.raises(ValueError, match=r"rows 0 to 4 .* no file y/c/0; .*write_empty_chunks"):
        open_table(tmp_path / "table.zarr")


def test_chunks_under_other_names_are_missed(tmp_path):
    path = described_2(tmp_path / "table.zarr", None)
    (path / "0").mkdir()
    (path / "0/0").write_bytes(ROWS.tobytes())
    with pytest.raises(ValueError, match=r"no file 0\.0"):
        open_rows(path)[:]
    described = json.loads((path / ".zarray").read_text()) | {"dimension_separator": "/"}
    (path / ".zarray").write_text(json.dumps(described))
    np.testing.assert_array_equal(open_rows(path)[:], ROWS)


def write_npz(path, rows=ROWS, method=zipfile.ZIP_BZIP2):
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("x.npy", "w") as member:
        np.save(member, rows)
    return path


def test_members_are_unpacked_only_if_rows_are_read(tmp_path, monkeypatch):
    path = write_npz(tmp_path / "table.npz", np.zeros((1_000, 100)))
    with monkeypatch.context() as patch:
        patch.setattr(io_arrays, "_unpack", lambda *_: pytest.fail("rows were unpacked"))
        assert open_rows(path).shape == (1_000, 100)
        assert open_table(path, choice=Choice(labelled=False)).rows.shape == (1_000, 100)
    assert open_rows(path)[-1:].tolist() == [[0.0] * 100]


def test_members_that_do_not_fit_on_the_disk_are_refused(tmp_path, monkeypatch):
    rows = open_rows(write_npz(tmp_path / "table.npz"))
    usage = io_arrays.shutil.disk_usage(tmp_path)._replace(free=159)
    monkeypatch.setattr(io_arrays.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=r"unpacks to 160 bytes, but only 159 are free in .*TMPDIR"):
        rows[:]


def test_an_archive_that_is_replaced_is_read_as_it_was(tmp_path):
    path = write_npz(tmp_path / "table.npz")
    rows = open_rows(path)
    write_npz(tmp_path / "other.npz", ROWS + 1).replace(path)
    np.testing.assert_array_equal(rows[:], ROWS)
    np.testing.assert_array_equal(open_rows(path)[:], ROWS + 1)


@pytest.mark.parametrize("end", ["0" * 2**26, "\n" + "," * 2**21 + "\n"])
def test_long_lines_take_little_memory(tmp_path, end):
    path = tmp_path / "table.csv.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("a,b,label\n1,2,x\n3,4,y" + end)
    peak, message = peak_of(lambda: open_table(path))
    assert path.name in message
    assert "more than" in message
    assert peak < 150_000_000


def test_the_end_of_a_long_file_is_bounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr(io_text, "MOST_LINE", 1_000)
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100 + b"3," + b"4" * 1_000 + b"\n"))
    with pytest.raises(ValueError, match=r"table\.csv\.gz .* more than 1,000 characters"):
        open_table(path, choice=Choice(labelled=False))


def test_as_many_cells_as_are_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(io_text, "MOST_CELLS", 100)
    path = tmp_path / "table.csv"
    path.write_text(",".join(["1"] * 100) + "\n" + ",".join(["2"] * 100) + "\n")
    assert open_table(path, choice=Choice(labelled=False)).rows.shape == (2, 100)
    path.write_text(",".join(["1"] * 101) + "\n")
    with pytest.raises(ValueError, match=r"table\.csv, line 1: 101 cells, more than 100; store"):
        open_table(path, choice=Choice(labelled=False))


def test_npy_of_version_3_is_read(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10, 2), }"
    header += b" " * (-(len(header) + 13) % 64) + b"\n"
    start = b"\x93NUMPY\x03\x00" + struct.pack("<I", len(header)) + header
    (tmp_path / "rows.npy").write_bytes(start + ROWS.tobytes())
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), ROWS)
    np.testing.assert_array_equal(open_rows(tmp_path / "rows.npy")[:], ROWS)


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-be", "utf-16"])
def test_text_with_a_wide_mark_is_read(tmp_path, encoding):
    path = tmp_path / "table.csv"
    mark = "\ufeff" if encoding == "utf-32-be" else ""
    path.write_text(f"{mark}a,b,label\n1,2,x\n3,4,y\n", encoding=encoding)
    table = open_table(path)
    assert table.rows.tolist() == [[1, 2], [3, 4]]
    assert table.feature_names == ["a", "b"]


def test_a_name_that_is_not_utf_8_is_passed_over(tmp_path):
    path = tmp_path / "table.h5"
    with h5py.File(path, "w") as file:
        file[b"\xff\xfe"], file["X"], file["y"] = [1], ROWS, np.arange(10) % 2
    with h5py.File(tmp_path / "bare.h5", "w") as file:
        file[b"\xff\xfe"], file["X"] = [1], ROWS
    table = open_table(path)
    np.testing.assert_array_equal(table.rows[:], ROWS)
    assert table.labels.tolist() == [0, 1] * 5
    with pytest.raises(ValueError, match=r"b'\\xff\\xfe' that cannot be opened \(its name is not"):
        open_table(tmp_path / "bare.h5")


def test_the_codecs_that_unpack_do_not_write():
    with pytest.raises(OSError, match="only unpacks; write the array with the codec"):
        UnpackingCodec("zlib", {}, 9).encode(b"rows")
    with pytest.raises(OSError, match="only unpacks"):
        UnpackingBytesCodec("zlib", {}, 9).compute_encoded_size(4, None)
