"""The file format: round trips, writes that are complete or not at all, and reported damage."""

import errno
import json
import os
import stat
import sys

import numpy as np
import pytest
from mutations import Opened, with_header
from safetensors.numpy import load_file

from latentmetric.persistence import model_file, replacing
from latentmetric.persistence.model_file import ModelFileError, read_model_file, write_model_file

DOCUMENT = {"format_version": 1, "é\ud800": [1, 2.5, None]}


@pytest.fixture
def arrays(rng):
    return {
        "rows": rng.standard_normal((4, 3)),
        "columns": np.asfortranarray(rng.standard_normal((3, 4)).astype(np.float32)),
        "codes": np.arange(5),
        "strided": rng.standard_normal((8, 6))[::2, ::3],
        "nothing": np.empty((0, 3)),
    }


@pytest.fixture
def content(tmp_path, arrays):
    """The bytes of a small model file."""
    write_model_file(tmp_path / "model", DOCUMENT, arrays)
    return (tmp_path / "model").read_bytes()


def read_bytes(folder, content):
    (folder / "changed").write_bytes(content)
    return read_model_file(folder / "changed")


def test_round_trip_keeps_values_and_memory_order(tmp_path, arrays, content):
    document, found = read_bytes(tmp_path, content)
    assert document | DOCUMENT == document
    assert found.keys() == arrays.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.dtype == arrays[name].dtype
        assert array.flags.writeable
        assert array.flags.aligned
    assert found["columns"].flags.f_contiguous
    assert found["rows"].flags.c_contiguous


def test_the_format_is_that_of_safetensors(tmp_path, arrays, content):
    (tmp_path / "changed").write_bytes(content)
    found = load_file(tmp_path / "changed")
    np.testing.assert_array_equal(found["columns"].T, arrays["columns"])
    np.testing.assert_array_equal(found["rows"], arrays["rows"])


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, content):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_model_file(tmp_path / "model", DOCUMENT, {"codes": np.arange(3)})
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == content


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, content):
    def write_half():
        with replacing.replacing(tmp_path / "model") as file:
            file.write(b"half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == content


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_an_os_error(tmp_path, monkeypatch, arrays):
    """The temporary file is opened on a device that is always full."""
    really_open = open

    def open_on_full_disk(path, mode, opener):
        really_open(path, mode, opener=opener).close()
        return really_open("/dev/full", "wb")

    monkeypatch.setattr(replacing, "open", open_on_full_disk, raising=False)
    with pytest.raises(OSError) as caught:  # noqa: PT011
        write_model_file(tmp_path / "model", DOCUMENT, arrays)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_and_a_folder_are_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_model_file(tmp_path / "no" / "model", DOCUMENT, {})
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_model_file(tmp_path, DOCUMENT, {})
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_model_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_model_file(tmp_path / "no")


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0,
    reason="an administrator can write to everything",
)
def test_a_read_only_folder_is_reported(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        write_model_file(tmp_path / "model", DOCUMENT, {})
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_not_a_regular_file_is_neither_read_nor_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_model_file(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="not a regular file"):
        write_model_file(tmp_path / "pipe", DOCUMENT, {})
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_and_the_file_it_points_to_is_replaced(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store" / "model")
    for value in (1, 2):
        write_model_file(tmp_path / "link", {"format_version": 1, "value": value}, {})
        assert (tmp_path / "link").is_symlink()
        assert read_model_file(tmp_path / "store" / "model")[0]["value"] == value


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_the_mode_is_that_of_a_new_file_or_of_the_old_one(tmp_path):
    (tmp_path / "plain").touch()
    write_model_file(tmp_path / "model", DOCUMENT, {})
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )
    (tmp_path / "model").chmod(0o640)
    write_model_file(tmp_path / "model", DOCUMENT, {})
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o640


def test_a_name_as_long_as_the_file_system_allows_can_be_written(tmp_path):
    write_model_file(tmp_path / ("m" * 255), DOCUMENT, {})
    assert os.listdir(tmp_path) == ["m" * 255]


def test_a_header_that_is_too_large_is_refused_before_anything_is_written(tmp_path):
    many = {"format_version": 1, "many": [0] * model_file.MAX_HEADER_ITEMS}
    with pytest.raises(ValueError, match="a model file holds at most"):
        write_model_file(tmp_path / "model", many, {})
    assert os.listdir(tmp_path) == []


def test_every_truncation_is_reported(tmp_path, content):
    for length in range(len(content)):
        with pytest.raises(ModelFileError):
            read_bytes(tmp_path, content[:length])


def test_every_flipped_bit_is_reported_or_changes_nothing(tmp_path, content, arrays):
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1 << (at % 8)
        try:
            document, found = read_bytes(tmp_path, bytes(changed))
        except ModelFileError:
            continue
        assert document | DOCUMENT == document
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("rows", {"shape": [2**40, 3]}, "needs 26388279066624 bytes, but its place has 96"),
        ("rows", {"shape": [2**40, 3], "data_offsets": [0, 2**40 * 24]}, "overlap or leave a gap"),
        ("rows", {"shape": [3, 4, 1]}, "shape"),
        ("rows", {"shape": [-4, -3]}, "shape"),
        ("rows", {"shape": [True, 12]}, "shape"),
        ("rows", {"shape": "4"}, "shape"),
        ("rows", {"shape": [2**64, 0]}, "shape"),
        ("rows", {"dtype": "F32"}, "needs 48 bytes, but its place has 96"),
        ("rows", {"dtype": "O"}, "dtype 'O'"),
        ("rows", {"dtype": ["F64"]}, "dtype"),
        ("codes", {"data_offsets": [8, 48]}, "overlap or leave a gap"),
        ("codes", {"data_offsets": [-40, 0]}, "place"),
        ("codes", {"data_offsets": [40]}, "place"),
        ("codes", {"more": 1}, "is not described"),
    ],
)
def test_arrays_that_do_not_fit_the_file_are_reported(tmp_path, content, name, entry, message):
    opened = Opened.of(content)
    opened.arrays[name] |= entry
    with pytest.raises(ModelFileError, match=message):
        read_bytes(tmp_path, opened.closed())


def test_extra_bytes_at_the_end_are_reported(tmp_path, content):
    with pytest.raises(ModelFileError, match="the arrays need"):
        read_bytes(tmp_path, content + b"more")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{}",
        b"nonsense",
        b'{"__metadata__": {}}',
        b'{"__metadata__": {"latentmetric": 3}}',
        b'{"__metadata__": {"latentmetric": "[]"}}',
        b'{"__metadata__": {"latentmetric": "{}"}}',
        b'{"__metadata__": []}',
        b'{"a": 1, "a": 1}',
        b'{"../outside": 1}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" + b"0," * model_file.MAX_HEADER_ITEMS + b"0]",
        b" " * (model_file.MAX_HEADER_BYTES + 1),
    ],
    ids=lambda header: header[:20].decode(errors="replace") or "empty",
)
def test_invalid_headers_are_reported(tmp_path, header):
    with pytest.raises(ModelFileError):
        read_bytes(tmp_path, with_header(header, b""))


def test_other_files_are_reported(tmp_path):
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "archive.npz", np.zeros(3))
    (tmp_path / "text").write_text("features,labels\n")
    for path in tmp_path.iterdir():
        with pytest.raises(ModelFileError, match=path.name):
            read_model_file(path)


def test_other_files_are_not_confused_with_a_model_cut_short(tmp_path, content):
    for start, message in (
        (b"sepal,petal,label\n1,2,x\n", "not a latentmetric model file, it looks like text$"),
        ("größe,label\n".encode() * 200, "not a latentmetric model file, it looks like text$"),
        (b"PAR1\x15\x04\x15\xff\x00", "not a latentmetric model file$"),
        (b"", "not a latentmetric model file, it is empty$"),
        (b"abc", "not a latentmetric model file"),
        (content[:100], "cut short: the header has .* but only 92 are left"),
        (content[:-1], "it was cut short"),
    ):
        with pytest.raises(ModelFileError, match=f"changed: .*{message}"):
            read_bytes(tmp_path, start)
        assert model_file.is_model_file(tmp_path / "changed") == (start in content and start != b"")


def test_a_newer_version_is_refused_by_both_numbers(tmp_path, content):
    opened = Opened.of(content)
    opened.document["format_version"] = 2
    with pytest.raises(ModelFileError, match="version 2, this latentmetric reads versions up to 1"):
        read_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize("version", [None, 0, -1, True, "1", 1.0, [1]])
def test_a_version_that_is_not_a_number_is_refused(tmp_path, content, version):
    opened = Opened.of(content)
    opened.document["format_version"] = version
    with pytest.raises(ModelFileError, match="the format version is"):
        read_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize("transposed", [None, ["other"], [["rows"]], "rows", [0]])
def test_transposed_arrays_must_be_arrays_of_the_file(tmp_path, content, transposed):
    opened = Opened.of(content)
    opened.document["transposed"] = transposed
    with pytest.raises(ModelFileError, match="transposed"):
        read_bytes(tmp_path, opened.closed())


def test_a_document_with_another_checksum_is_damaged(tmp_path, content):
    opened = Opened.of(content)
    metadata = {"latentmetric": json.dumps(opened.document), "latentmetric_crc32": "00000000"}
    with pytest.raises(ModelFileError, match="the document is damaged"):
        read_bytes(tmp_path, opened.closed(metadata=metadata))


def test_a_file_cut_short_while_it_is_read_is_reported(tmp_path, monkeypatch, content):
    really_place = model_file._check_places

    def cut(places, data_bytes):
        really_place(places, data_bytes)
        os.truncate(tmp_path / "changed", len(content) - 10)

    monkeypatch.setattr(model_file, "_check_places", cut)
    with pytest.raises(ModelFileError, match="cut short while it was read"):
        read_bytes(tmp_path, content)
