"""What files from others may not do: run code, or have other files read."""

import json
import os
import pickle
import warnings

import h5py
import numcodecs.pickles
import numcodecs.registry
import numpy as np
import pytest
import zarr

from latentmetric.io import Choice, open_rows, open_table
from latentmetric.io.zarr_codecs import CODECS
from latentmetric.io.zarr_unpacking import NAME

ROWS = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
LABELS = np.array(["cat", "dog", "eel"])[np.arange(30) % 3]
PICKLE = {"id": "pickle", "protocol": 5}
SAFE = {"id": "vlen-utf8"}


class Trap:
    """Fails the test if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


@pytest.fixture(autouse=True)
def old_numcodecs(monkeypatch):
    """Versions up to 0.16.5 unpickle whatever they are asked to."""
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)


def refused(path, **choice):
    with pytest.raises((ValueError, OSError)) as caught:
        np.asarray(open_table(path, choice=Choice(**choice)).rows)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


def zarr_table(path, zarr_format=3, **options):
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    rows = group.create_array("x", shape=ROWS.shape, dtype=ROWS.dtype, **options)
    rows[:] = ROWS
    words = group.create_array("y", shape=30, chunks=30, dtype=str, compressors=None)
    words[:] = LABELS
    return path


def described(path, **changes):
    """Change the description of an array."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def chunk_of(path):
    return path / "y/0" if (path / "y/0").exists() else path / "y/c/0"


@pytest.mark.parametrize(
    "changes",
    [
        {"filters": [SAFE, PICKLE]},
        {"filters": [PICKLE]},
        {"filters": [SAFE], "compressor": PICKLE},
        {"filters": [{"id": "pickle", "name": "vlen-utf8"}]},
        {"filters": [SAFE, {"id": "json2"}]},
        {"filters": [SAFE, {"id": "vlen-array", "dtype": "O"}]},
        {"filters": [SAFE, {"id": "astype", "encode_dtype": "O", "decode_dtype": "<f4"}]},
        {"filters": [{"id": "zlib"}]},
        {"filters": None},
        {"dtype": [["a", "|O"]]},
    ],
)
def test_format_2_asks_for_no_code(tmp_path, changes):
    path = zarr_table(tmp_path / "table.zarr", 2)
    described(path / "y/.zarray", **changes)
    chunk_of(path).write_bytes(pickle.dumps(Trap()))
    assert "y that cannot be opened (it" in refused(path)
    assert "y of " in (message := refused(path, label="y"))
    assert "cannot be opened: it" in message
    np.testing.assert_array_equal(open_rows(path)[:], ROWS)


@pytest.mark.parametrize(
    "codecs",
    [
        [{"name": "vlen-utf8"}, {"name": "numcodecs.pickle"}],
        [{"name": "pickle"}],
        ["pickle"],
        [{"name": "vlen-utf8"}, {"name": "numcodecs.zlib", "configuration": PICKLE}],
        [{"name": "sharding_indexed", "configuration": {"codecs": [{"name": "pickle"}]}}],
        [{"name": "sharding_indexed", "configuration": {"index_codecs": [{"name": "pickle"}]}}],
    ],
)
def test_format_3_asks_for_no_code(tmp_path, codecs):
    path = zarr_table(tmp_path / "table.zarr")
    described(path / "y/zarr.json", codecs=codecs)
    chunk_of(path).write_bytes(pickle.dumps(Trap()))
    assert "y that cannot be opened (it" in refused(path)


def test_values_of_other_kinds_are_refused_by_name(tmp_path):
    path = zarr_table(tmp_path / "table.zarr")
    described(path / "y/zarr.json", data_type={"name": "numpy.datetime64", "configuration": {}})
    assert "values of the type 'numpy.datetime64', not numbers or text" in refused(path)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_copies_of_descriptions_for_a_group_are_not_used(tmp_path, zarr_format):
    path = zarr_table(tmp_path / "table.zarr", zarr_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # format 3 has no such copies yet
        zarr.consolidate_metadata(path)
    place = path / (".zmetadata" if zarr_format == 2 else "zarr.json")
    for word in ("vlen-utf8", "blosc", "zstd"):
        place.write_text(place.read_text().replace(f'"{word}"', '"pickle"'))
    table = open_table(path)
    np.testing.assert_array_equal(table.rows[:], ROWS)
    np.testing.assert_array_equal(table.labels, LABELS)


def test_arrays_within_groups_are_checked_too(tmp_path):
    path = tmp_path / "table.zarr"
    zarr_table(path / "inner", 2)
    zarr.open_group(path, mode="a", zarr_format=2)
    np.testing.assert_array_equal(open_rows(path, key="inner/x")[:], ROWS)
    described(path / "inner/x/.zarray", compressor=PICKLE)
    with pytest.raises(ValueError, match=r"inner/x of .* cannot be opened: it uses the codec 'pi"):
        open_rows(path, key="inner/x")
    zarr_table(tmp_path / "other.zarr")
    with pytest.raises(ValueError, match=r"leads out of the folder"):
        open_rows(path, key="../other.zarr/x")


def test_the_list_holds_what_only_computes():
    unsafe = {"pickle", "json2", "msgpack2", "vlen-array", "categorize", "base64"}
    assert not CODECS & unsafe
    assert set(numcodecs.registry.codec_registry) - unsafe - {NAME} <= CODECS


@pytest.mark.parametrize(
    "options",
    [
        {"zarr_format": 2, "filters": [{"id": "delta", "dtype": "<f4"}], "compressors": "auto"},
        {"zarr_format": 2, "filters": [{"id": "shuffle", "elementsize": 4}]},
        {"zarr_format": 2, "compressors": {"id": "bz2", "level": 1}},
        {"chunks": (5, 4), "shards": (15, 4)},
        {"compressors": [zarr.codecs.GzipCodec(), zarr.codecs.Crc32cCodec()]},
        {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))], "compressors": None},
    ],
)
def test_codecs_that_only_compute_are_read(tmp_path, options):
    options = {
        name: numcodecs.get_codec(value) if isinstance(value, dict) else value
        for name, value in options.items()
    }
    if "filters" in options and options.get("zarr_format") == 2:
        options["filters"] = [numcodecs.get_codec(codec) for codec in options["filters"]]
    table = open_table(zarr_table(tmp_path / "table.zarr", **options))
    np.testing.assert_allclose(np.asarray(table.rows), ROWS, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(table.labels, LABELS)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_chunks_elsewhere_and_pipes_are_not_read(tmp_path):
    path = zarr_table(tmp_path / "table.zarr")
    chunk = chunk_of(path)
    outside = chunk.rename(tmp_path / "outside")
    chunk.symlink_to(outside)
    assert "y/c/0 is a link that leads out of the folder" in refused(path)
    chunk.unlink()
    os.mkfifo(chunk)
    assert "y/c/0 is a pipe" in refused(path)
    chunk.unlink()
    outside.rename(path / "y/here")
    chunk.symlink_to("../here")
    assert open_table(path).labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("damage", ["empty", "flipped", "cut", "description", "empty description"])
def test_damaged_zarr_folders_give_one_line(tmp_path, capfd, zarr_format, damage):
    path = zarr_table(tmp_path / "table.zarr", zarr_format, chunks=(7, 4))
    kinds = ("zarr.json", ".zarray", ".zgroup", ".zattrs")
    is_description = damage.endswith("description")
    for file in [file for file in (path / "x").rglob("*") if file.is_file()]:
        if (file.name in kinds) != is_description:
            continue
        content = bytearray(file.read_bytes())
        content[0] ^= 0x80
        changed = {"flipped": content, "description": content, "cut": content[:-3]}
        file.write_bytes(changed.get(damage, b""))
    assert "cannot be read as .zarr" in refused(path)
    if not is_description:
        with pytest.raises(ValueError, match=r"table\.zarr cannot be read as \.zarr"):
            open_rows(path)[:]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("zarr_format", "options"), [(2, {}), (3, {}), (3, {"chunks": (5, 4), "shards": (15, 4)})]
)
def test_blosc_does_not_read_beyond_a_chunk(tmp_path, zarr_format, options):
    """The library would: into memory of others, or to the end of the process."""
    blosc = numcodecs.Blosc() if zarr_format == 2 else zarr.codecs.BloscCodec(typesize=4)
    options = {"chunks": (15, 4), "compressors": blosc} | options
    path = zarr_table(tmp_path / "table.zarr", zarr_format, **options)
    np.testing.assert_array_equal(open_rows(path)[:], ROWS)
    longer = 2**29
    copied = bytes([2, 1, 2, 1])  # the version, and "the values follow as they are"
    for file in (path / "x").rglob("*0"):
        if file.is_file():
            content = file.read_bytes()
            header = copied + b"".join(
                size.to_bytes(4, "little") for size in (longer, longer, longer + 16)
            )
            start = content.index(b"\x02\x01")
            file.write_bytes(content[:start] + header + content[start + 16 :])
    with pytest.raises(ValueError, match=r"but its header promises 536870928"):
        open_rows(path)[:]


def test_chunks_that_vanish_are_not_zeros(tmp_path):
    path = zarr_table(tmp_path / "table.zarr", chunks=(10, 4))
    rows = open_rows(path)
    np.testing.assert_array_equal(rows[:], ROWS)
    (path / "x/c/1/0").unlink()
    with pytest.raises(OSError, match=r"x/c/1/0 was changed while it was read"):
        rows[:]


@pytest.fixture
def other_files(tmp_path):
    """A file of HDF5 that leads to others in every way there is."""
    (tmp_path / "secret").write_bytes(ROWS.tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"], other["group/x"] = ROWS, ROWS
    path = tmp_path / "table.h5"
    with h5py.File(path, "w") as file:
        secret = [(str(tmp_path / "secret"), 0, ROWS.nbytes)]
        file.create_dataset("storage", ROWS.shape, ROWS.dtype, external=secret)
        layout = h5py.VirtualLayout(ROWS.shape, ROWS.dtype)
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", ROWS.shape)
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink("other.h5", "/x")
        file["folder"] = h5py.ExternalLink("other.h5", "/group")
        file["soft"] = h5py.SoftLink("/link")
        file["circle"] = h5py.SoftLink("/circle")
    return path


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("storage", r"external storage"),
        ("virtual", r"a virtual data set"),
        ("link", r"a link to the file 'other\.h5'"),
        ("soft", r"a link to the file 'other\.h5'"),
        ("folder/x", r"a link to the file 'other\.h5'"),
        ("circle", r"more than 16 links"),
    ],
)
def test_an_h5_file_reads_no_other_files(other_files, key, message):
    with pytest.raises(ValueError, match=rf"{key} of .*table\.h5 cannot be opened: .*{message}"):
        open_rows(other_files, key=key)
    assert f"{key.split('/')[0]} that cannot be opened" in refused(other_files)
    assert message.split()[0] in refused(other_files, key=key)


def test_links_within_an_h5_file_are_followed(tmp_path):
    with h5py.File(tmp_path / "table.h5", "w") as file:
        file["deep/x"] = ROWS
        file["deep/beside"] = h5py.SoftLink("x")
        file["soft"] = h5py.SoftLink("/deep/beside")
        file["nowhere"] = h5py.SoftLink("/deep/nothing")
    for key in ("deep/x", "/deep/beside", "soft"):
        np.testing.assert_array_equal(open_rows(tmp_path / "table.h5", key=key)[:], ROWS)
    with pytest.raises(ValueError, match="it leads to 'nothing', which is not there"):
        open_rows(tmp_path / "table.h5", key="nowhere")
    with pytest.raises(ValueError, match="has no array 'deep/nothing'"):
        open_rows(tmp_path / "table.h5", key="deep/nothing")
