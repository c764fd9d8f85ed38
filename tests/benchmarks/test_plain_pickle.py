"""Plain data comes back; a pickle of anything else is refused and runs nothing."""

import io
import os
import pickle
from struct import pack

import numpy as np
import pytest
from plain_pickle import load_plain_dict


def load(content):
    return load_plain_dict(io.BytesIO(content))


def python_2_pickle(rows, labels):
    """A batch of CIFAR as Python 2 wrote it: strings are bytes, arrays have NumPy's old names."""

    def string(text):
        return b"U" + bytes([len(text)]) + text

    def number(value):
        return b"J" + pack("<i", value)

    content = rows.tobytes()
    dtype = b"cnumpy\ndtype\n(" + string(b"u1") + number(0) + number(1) + b"tR"
    dtype += b"(" + number(3) + string(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
    shape = b"(" + b"".join(number(size) for size in rows.shape) + b"t"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(" + number(0) + b"t"
    array += string(b"b") + b"tR"
    array += (
        b"(" + number(1) + shape + dtype + b"\x89T" + pack("<i", len(content)) + content + b"tb"
    )
    listed = b"](" + b"".join(number(label) for label in labels) + b"e"
    return b"\x80\x02}(" + string(b"data") + array + string(b"labels") + listed + b"u."


def test_a_batch_of_python_2_is_read():
    rows = np.arange(12, dtype=np.uint8).reshape(2, 6)
    written = python_2_pickle(rows, [3, 9])
    ours = pickle.loads(written, encoding="bytes")
    np.testing.assert_array_equal(ours[b"data"], rows)  # NumPy reads the same from these bytes
    found = load(written)
    np.testing.assert_array_equal(found["data"], rows)
    assert found["labels"] == [3, 9]


@pytest.mark.parametrize("protocol", [3, 4])
def test_a_batch_of_python_3_is_read(protocol):
    rows = np.arange(12, dtype=np.uint8).reshape(2, 6)
    written = {"data": rows, "names": ["é", b"b"], "n": 2, "share": 0.5, "nested": {"a": (1, None)}}
    found = load(pickle.dumps(written, protocol=protocol))
    np.testing.assert_array_equal(found.pop("data"), rows)
    del written["data"]
    assert found == written


class Harmful:
    def __init__(self, call, *arguments):
        self.reduced = call, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    ("harmful", "name", "protocol"),
    [
        (Harmful(os.mkdir, "harm"), "mkdir", 0),
        (Harmful(eval, "open('harm', 'w')"), "eval", 2),
        (Harmful(getattr, "text", "format"), "getattr", 4),
        (Harmful(np.fromfile, "secret"), "fromfile", 4),
    ],
)
def test_a_pickle_that_calls_anything_is_refused(harmful, name, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(b"12345678")
    with pytest.raises(ValueError, match=rf"not a pickle of plain data: it refers to .*{name}"):
        load(pickle.dumps({"data": harmful}, protocol=protocol))
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.array([{}, []], dtype=object), np.array(["a"])], ids=str
)
def test_arrays_of_anything_but_bytes_are_refused(array):
    with pytest.raises(ValueError, match="not a pickle of plain data"):
        load(pickle.dumps({"data": array}, protocol=4))


def test_a_shape_that_does_not_fit_is_refused():
    written = pickle.dumps({"data": np.zeros((2, 3), dtype=np.uint8)}, protocol=3)
    assert written.count(b"K\x02K\x03\x86") == 1
    with pytest.raises(ValueError, match=r"\(2, 4\) has 6 bytes"):
        load(written.replace(b"K\x02K\x03\x86", b"K\x02K\x04\x86"))
