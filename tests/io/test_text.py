"""Text tables: delimiters, headers, encodings, quotes, and numbers as NumPy reads them."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.io import Choice, open_table
from latentmetric.io.text import as_labels, open_text


def opened(folder, content, name="table.csv", **choice):
    path = folder / name
    path.write_text(content, newline="")
    return open_table(path, choice=Choice(**choice))


@pytest.mark.parametrize(
    ("content", "header", "names"),
    [
        ("1,2,x\n3,4,y\n", False, None),
        ("a,b,label\n1,2,x\n3,4,y\n", True, ["a", "b"]),
        ("a,b,kind\n1,2,x\n3,4,y\n", True, ["a", "b"]),
        ("0,1,label\n1,2,x\n3,4,y\n", True, ["0", "1"]),
        (",a,b,label\n0,1,2,x\n1,3,4,y\n", True, ["a", "b"]),
        ("a;b;label\n1;2;x\n3;4;y\n", True, ["a", "b"]),
        ("a|b|label\n1|2|x\n3|4|y\n", True, ["a", "b"]),
        ('"a, really","b",label\n1,2,x\n3,4,y\n', True, ["a, really", "b"]),
        ('a,b,label\r\n"1",2,"x"\r\n3,4,y\r\n', True, ["a", "b"]),
        ("\n\na,b,label\n\n 1 , 2 , x \n3,4,y\n\n", True, ["a", "b"]),
    ],
)
def test_layouts(tmp_path, content, header, names):
    table = opened(tmp_path, content)
    assert table.rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert table.labels.tolist() == ["x", "y"]
    assert table.feature_names == names
    assert open_text(tmp_path / "table.csv").has_header is header


def test_column_numbers_as_pandas_writes_them_are_a_header(tmp_path):
    table = opened(tmp_path, "0,1,2\n5,6,7\n8,9,1\n", label="2")
    assert table.rows.tolist() == [[5.0, 6.0], [8.0, 9.0]]
    table = opened(tmp_path, "0,1,2\n5,6,7\n8,9,1\n", label="-1", header=False)
    assert table.rows.tolist() == [[0.0, 1.0], [5.0, 6.0], [8.0, 9.0]]


def test_spaces_and_tabs(tmp_path):
    np.savetxt(tmp_path / "rows.txt", [[1, 2.5], [3, 4]])
    table = open_table(tmp_path / "rows.txt", choice=Choice(labelled=False))
    assert table.rows.tolist() == [[1.0, 2.5], [3.0, 4.0]]
    assert opened(tmp_path, "a\tlabel\n1\tx, y\n", "t.tsv").labels.tolist() == ["x, y"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "table.csv"
    path.write_bytes("größe,label\n1,café\n2,thé\n".encode(encoding))
    table = open_table(path, choice=Choice(encoding=encoding if encoding == "latin-1" else None))
    assert (table.feature_names, table.labels.tolist()) == (["größe"], ["café", "thé"])


def test_an_unknown_encoding_is_named(tmp_path):
    with pytest.raises(ValueError, match="'klingon' is not an encoding"):
        opened(tmp_path, "1,x\n", encoding="klingon")


@pytest.mark.parametrize("row", ["1,{}x,y", "nan,2,{}"])
def test_a_cell_too_long_to_look_at_is_placed(tmp_path, row):
    content = "a,b,label\n" + "1,2,x\n" * 30 + row.format("9" * 200_000) + "\n"
    with pytest.raises(ValueError, match=r"table\.csv, line 32 .* field limit"):
        opened(tmp_path, content)


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["1", "2", "1"], [1, 2, 1]),
        (["1.0", "2", "-3"], [1, 2, -3]),
        (["0.5", "2"], [0.5, 2.0]),
        (["007", "1"], ["007", "1"]),
        (["a", "1"], ["a", "1"]),
        (["nan", "1"], ["nan", "1"]),
        (["9007199254740993", "1"], ["9007199254740993", "1"]),
    ],
)
def test_labels_are_numbers_only_where_nothing_is_lost(texts, labels):
    found = as_labels(np.array(texts))
    assert found.tolist() == labels
    assert [type(label) for label in found.tolist()] == [type(label) for label in labels]


@given(
    rows=st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows):
    """Floats to the last bit, and labels with quotes, delimiters and any letters."""
    path = tmp_path_factory.mktemp("text") / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("one", "two", "label"), *rows])
    texts = open_text(path)
    numbers, (labels,) = texts.read([0, 1], [2])
    assert numbers.tolist() == [[row[0], row[1]] for row in rows]
    assert labels.tolist() == [row[2] for row in rows]
