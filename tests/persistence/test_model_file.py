"""The file format: values come back, and what is damaged or too large is refused."""

import os

import numpy as np
import pytest
from mutations import Opened

from latentmetric.persistence import model_file
from latentmetric.persistence.model_file import (
    Contents,
    ModelFileError,
    is_model_file,
    pack,
    read_model_file,
    unpack,
    write_model_file,
)


@pytest.fixture
def content(tmp_path):
    """The bytes of a small model file."""
    write_model_file(tmp_path / "model", {"format_version": 1}, {"rows": np.eye(4, 3)})
    return (tmp_path / "model").read_bytes()


def read_bytes(folder, content):
    (folder / "changed").write_bytes(content)
    return read_model_file(folder / "changed")


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2.5, "é\ud800", [1, ["a"]], (1, ("a", None)), {"a": {"b": (1,)}},
        {1: "a", "b": 2, 0.5: True}, {"$array": 1}, np.float32,
        np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3, 4)), np.eye(2, dtype=">f4"),
        np.array(["a", "bcd"]), np.array(["a", None, 2.5, True], dtype=object), np.array([]),
    ],
    ids=repr,
)  # fmt: skip
def test_values_come_back(value):
    arrays = {}
    stored = pack(value, arrays, "name")
    contents = Contents(arrays)
    found = unpack(stored, contents)
    assert not contents
    assert type(found) is type(value)
    if not isinstance(value, np.ndarray):
        assert found == value
        return
    assert found.tolist() == value.tolist()
    assert found.dtype == value.dtype.newbyteorder("=")
    assert found.strides == value.strides, "products are rounded differently in another order"


def test_a_document_that_is_too_large_is_refused_before_anything_is_written(tmp_path):
    many = {"format_version": 1, "many": [0] * model_file.MAX_DOCUMENT_ITEMS}
    with pytest.raises(ValueError, match="a model file holds at most"):
        write_model_file(tmp_path / "model", many, {})
    assert os.listdir(tmp_path) == []


def test_other_files_are_not_confused_with_a_model_cut_short(tmp_path, content):
    np.savez(tmp_path / "archive.npz", np.zeros(3))
    for start, message in (
        (b"sepal,petal,label\n1,2,x\n", "not a latentmetric model file"),
        ((tmp_path / "archive.npz").read_bytes(), "not a latentmetric model file"),
        (b"", "not a latentmetric model file"),
        (content[:100], "cut short or damaged"),
        (content[:-1], "cut short or damaged"),
        (content + b"more", "cut short or damaged"),
    ):
        with pytest.raises(ModelFileError, match=f"changed: .*{message}"):
            read_bytes(tmp_path, start)
        assert is_model_file(tmp_path / "changed") == message.startswith("cut short")


@pytest.mark.parametrize("version", [None, True, "1", model_file.FORMAT_VERSION + 1])
def test_versions_that_are_unknown_or_newer_are_refused(tmp_path, content, version):
    opened = Opened.of(content)
    opened.document["format_version"] = version
    with pytest.raises(ModelFileError, match=r"format version .*, this latentmetric reads"):
        read_bytes(tmp_path, opened.closed())
