"""Columns of every type that Parquet and Arrow have: numbers, text, and what is neither."""

import datetime
import uuid
from decimal import Decimal

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from latentmetric.io import Choice, open_rows, open_table

KINDS = [".parquet", ".arrow"]


def write(path, **columns):
    """A file of columns by its ending."""
    table = pyarrow.table(columns)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


def dictionary(codes, words):
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, pyarrow.int8()), words)


@pytest.fixture(params=KINDS)
def path(request, tmp_path):
    return tmp_path / f"table{request.param}"


@pytest.mark.parametrize("kind", [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary(3)])
def test_bytes_are_text_in_utf_8(path, kind):
    array = pyarrow.array([word.encode() for word in ("cat", "dö", "eel")], kind)
    table = open_table(write(path, x=[1.0, 2.0, 3.0], n=array, label=array), choice=Choice(id="n"))
    assert table.labels.tolist() == table.ids.tolist() == ["cat", "dö", "eel"]


def test_bytes_in_a_dictionary_are_text_too(path):
    words = dictionary([0, 1, 0], pyarrow.array([b"cat", b"dog"]))
    assert open_table(write(path, x=[1.0, 2.0, 3.0], y=words)).labels.tolist() == [
        "cat", "dog", "cat",
    ]  # fmt: skip


@pytest.mark.parametrize("choice", [Choice(label="n", ignore=("label",)), Choice(id="n")])
def test_bytes_that_are_not_text_are_refused_with_their_row(path, choice):
    write(path, x=[1.0, 2.0], n=[b"cat", b"\xff\x00"], label=["a", "b"])
    with pytest.raises(ValueError, match=r"column 'n' of .*row 1 .*b'\\xff\\x00'.*not UTF-8"):
        open_table(path, choice=choice)


def test_a_uuid_is_written_as_such(tmp_path):
    if not hasattr(pyarrow, "uuid"):
        pytest.skip("this pyarrow has no such type")
    ids = [uuid.UUID(int=1), uuid.UUID(int=2)]
    array = pyarrow.array([one.bytes for one in ids], pyarrow.uuid())
    path = write(tmp_path / "table.arrow", x=[1.0, 2.0], n=array, label=array)
    table = open_table(path, choice=Choice(id="n"))
    assert table.labels.tolist() == table.ids.tolist() == [str(one) for one in ids]


@pytest.mark.parametrize("precision", [5, 30, 60])
def test_decimals_are_features(path, precision):
    kind = (pyarrow.decimal128 if precision < 39 else pyarrow.decimal256)(precision, 2)
    price = pyarrow.array([Decimal("1.10"), Decimal("-2.25")], kind)
    write(path, x=[1, 2], price=price, species=["a", "b"])
    table = open_table(path)
    assert table.feature_names == ["x", "price"]
    assert table.labels.tolist() == ["a", "b"]
    assert table.rows[:].tolist() == [[1, 1.10], [2, -2.25]]
    assert open_rows(path)[:].dtype == np.float64


@pytest.mark.parametrize(
    "column",
    [
        pyarrow.array([Decimal("1.10"), Decimal("2.20")]),
        dictionary([0, 1], pyarrow.array([7, 9])),
        pyarrow.array([datetime.date(2020, 1, 1)] * 2),
        pyarrow.array([datetime.datetime(2020, 1, 1)] * 2),
        pyarrow.array([datetime.time(1, 2)] * 2),
        pyarrow.nulls(2),
    ],
    ids=lambda column: str(column.type),
)
def test_only_text_is_taken_for_labels_without_being_named(path, column):
    write(path, x=[1.0, 2.0], other=column, species=[0, 1])
    with pytest.raises(ValueError, match=r"no column is clearly the labels among x, other, specie"):
        open_table(path)


def test_what_is_neither_number_nor_text_is_no_feature(path):
    write(path, x=[1.0, 2.0], day=[datetime.date(2020, 1, 1)] * 2, label=["a", "b"])
    with pytest.raises(ValueError, match=r"column 'day' holds date32\[day\], not numbers"):
        open_table(path)
    assert open_table(path, choice=Choice(ignore=("day",))).rows[:].tolist() == [[1], [2]]


def test_a_dictionary_of_numbers_is_numbers(path):
    number = dictionary([0, 1, 0], pyarrow.array([0.5, 7.0]))
    write(path, x=number, label=["a", "b", "a"])
    assert open_table(path).rows[:].tolist() == [[0.5], [7.0], [0.5]]


def test_a_null_in_a_dictionary_rounds_nothing(tmp_path):
    large = [2**53, 2**53 + 1]
    number = dictionary([0, 1, 0, 1], pyarrow.array([*large, None]))
    path = write(tmp_path / "table.arrow", x=[1.0, 2.0, 3.0, 4.0], n=number, label=number)
    table = open_table(path, choice=Choice(id="n"))
    assert table.labels.tolist() == table.ids.tolist() == large * 2
    assert open_rows(path, columns=["n"])[:].ravel().tolist() == large * 2


def test_a_null_in_a_dictionary_that_is_used_is_missing(tmp_path):
    number = dictionary([0, 1, 2], pyarrow.array([5, 6, None]))
    path = write(tmp_path / "table.arrow", x=[1.0, 2.0, 3.0], n=number, label=number)
    with pytest.raises(ValueError, match=r"column 'label' has no value in row 2"):
        open_table(path, choice=Choice(ignore=("n",)))
    with pytest.raises(ValueError, match=r"column 'n' has no value in row 2"):
        open_rows(path, columns=["n"])[:]


def test_a_column_named_like_a_field_of_another(path):
    write(path, a=[{"b": 9.0}] * 3, **{"a.b": [1.0, 2.0, 3.0], "label": ["x", "y", "x"]})
    table = open_table(path, choice=Choice(ignore=("a",)))
    assert table.rows[:].tolist() == [[1], [2], [3]]
    assert table.labels.tolist() == ["x", "y", "x"]
