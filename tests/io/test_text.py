"""Text tables: delimiters, headers, encodings, quotes, and numbers as NumPy reads them."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.io import Choice, open_table
from latentmetric.io.text import TextFile
from latentmetric.io.text import as_labels


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
    table = opened(tmp_path, "0,1,2\n5.5,6.5,7.0\n8.5,9.5,1.0\n", label="2")
    assert table.rows.tolist() == [[5.5, 6.5], [8.5, 9.5]]
    whole = "0,1,2\n5,6,7\n8,9,1\n"
    assert opened(tmp_path, whole, label="2", header=True).rows.tolist() == [[5, 6], [8, 9]]
    table = opened(tmp_path, whole, label="-1", header=False)
    assert table.rows.tolist() == [[0.0, 1.0], [5.0, 6.0], [8.0, 9.0]]


TRUTHS = ["true", "True", "TRUE", "false", "False", "FALSE"]


def test_booleans_are_numbers(tmp_path):
    lines = "".join(f"{word},{place},x\n" for place, word in enumerate(TRUTHS))
    for header in ("", "wet,size,label\n"):
        table = opened(tmp_path, header + lines)
        assert table.rows[:, 0].tolist() == [1, 1, 1, 0, 0, 0]
        assert table.feature_names == (["wet", "size"] if header else None)
    late = "wet,size,label\n" + "1,2,x\n" * 50 + " true ,2,x\n"
    assert opened(tmp_path, late).rows[-1].tolist() == [1.0, 2.0]
    only = opened(tmp_path, "one,two\ntrue,false\nfalse,false\n", labelled=False)
    assert only.rows.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match=r"line 4, column 'a': 'perhaps' is not a number"):
        opened(tmp_path, "a,label\ntrue,x\nfalse,y\nperhaps,x\n")
    (tmp_path / "bad.csv").write_bytes(b"a,label\ntrue,x\n1,\xff\n")
    with pytest.raises(ValueError, match=r"line 3: byte 0xff is not UTF-8"):
        open_table(tmp_path / "bad.csv")


def test_booleans_can_be_labels(tmp_path):
    table = opened(tmp_path, "a,label\n1,True\n2,False\n")
    assert table.labels.tolist() == ["True", "False"]


def test_what_most_of_the_first_cells_hold_is_the_kind_of_a_column(tmp_path):
    with pytest.raises(ValueError, match=r"line 2, column 'a': 'NA' is not a number"):
        opened(tmp_path, "a,b,label\nNA,1,x\n2,3,y\n4,5,x\n")
    with pytest.raises(ValueError, match=r"column 'a' holds text such as 'north'.*--ignore a,"):
        opened(tmp_path, "a,b,label\n,1,x\nnorth,3,y\nsouth,5,x\n")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv.gz", "t.txt.gz", "T.CSV.GZ", "T.CSV"])
def test_packed_text_and_names_in_capitals(tmp_path, name):
    text = "a,b,label\n1,2,x\n3,4,é\n".replace(",", "\t" if ".tsv" in name else ",").encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.lower().endswith("gz") else text)
    table = open_table(path)
    assert table.rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert table.labels.tolist() == ["x", "é"]


def test_damaged_packed_text_is_named(tmp_path):
    packed = gzip.compress(b"a,label\n" + b"".join(b"%d,x\n" % n for n in range(99999)))
    for content in (packed[:-20], packed[:5], packed[:50] + b"zz" + packed[52:]):
        (tmp_path / "t.csv.gz").write_bytes(content)
        with pytest.raises(ValueError, match=r"t\.csv\.gz cannot be read as \.csv\.gz"):
            open_table(tmp_path / "t.csv.gz")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,label\n1,x\ntwo,y\n3,x\n4,x\n"))
    with pytest.raises(ValueError, match=r"t\.csv\.gz, line 3, column 'a': 'two'"):
        open_table(tmp_path / "t.csv.gz")


@pytest.mark.parametrize(
    "content",
    [
        "a;b;label\n1,5;-2,25e1;x\n3;4,0;y\n",
        'a,b,label\n"1,5","-2,25e1",x\n3,"4,0",y\n',
        "a\tb\tlabel\n1,5\t-2,25e1\tx\n3\t4,0\ty\n",
    ],
)
def test_decimal_commas(tmp_path, content):
    table = opened(tmp_path, content, decimal=",")
    assert table.rows.tolist() == [[1.5, -22.5], [3.0, 4.0]]
    with pytest.raises(ValueError, match=r"'-2,25e1'.*decimal comma, add --decimal ,"):
        opened(tmp_path, content)


def test_decimal_commas_between_spaces_and_what_they_are_not(tmp_path):
    table = opened(tmp_path, "1,5 2\n3,25 4\n", "t.txt", decimal=",", labelled=False)
    assert table.rows.tolist() == [[1.5, 2.0], [3.25, 4.0]]
    with pytest.raises(ValueError, match=r"'1\.000,5' is not a number"):
        opened(tmp_path, "a;label\n1,5;x\n2,5;x\n1.000,5;y\n", decimal=",")
    with pytest.raises(ValueError, match="must be a point or a comma"):
        opened(tmp_path, "a;label\n1;x\n", decimal="x")
    with pytest.raises(ValueError, match=r"no column is clearly the labels.*--decimal ,"):
        opened(tmp_path, "a;b;kind\n1,5;2,5;x\n2,5;2,5;y\n")


def test_ids_are_given_back_as_they_are(tmp_path):
    for ids, kind in ((["3", "-12"], "i"), (["007", "8"], "U"), (["a b", ""], "U")):
        table = opened(tmp_path, f"n,a,label\n{ids[0]},1,x\n{ids[1]},2,y\n", id="n")
        assert list(map(str, table.ids)) == ids
        assert (table.ids.dtype.kind, table.id_name) == (kind, "n")
        assert table.feature_names == ["a"]


def test_an_open_file_is_read_as_text(tmp_path):
    content = io.BytesIO(b"a,b,label\n1,2,x\n3,4,y\n")
    table = open_table(content)
    assert table.rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    content = io.BytesIO(b"a,b,label\n1,2,x\n3,z,y\n")
    content.name = "<stdin>"
    with pytest.raises(ValueError, match=r"^<stdin>, line 3, column 'b': 'z'"):
        open_table(content)


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
        (["1", "0", "-3"], [1, 0, -3]),
        (["9007199254740993", "1"], [9007199254740993, 1]),
        (["9" * 30, "1"], ["9" * 30, "1"]),
        (["0.5", "2.0"], [0.5, 2.0]),
        (["0.5", "1e-07"], [0.5, 1e-07]),
        (["0.5", "2"], ["0.5", "2"]),
        (["1.0", "1.00"], ["1.0", "1.00"]),
        (["1E3", "1000"], ["1E3", "1000"]),
        (["1e3", "1000.0"], ["1e3", "1000.0"]),
        (["+5", "5"], ["+5", "5"]),
        (["5", "５"], ["5", "５"]),
        (["15", "1５"], ["15", "1５"]),
        (["-0", "0"], ["-0", "0"]),
        (["-0.0", "0.0"], ["-0.0", "0.0"]),
        (["0.1", "0.1000000000000000055"], ["0.1", "0.1000000000000000055"]),
        (["1_0", "10"], ["1_0", "10"]),
        (["true", "1.0"], ["true", "1.0"]),
        (["inf", "1.0"], ["inf", "1.0"]),
        (["007", "1"], ["007", "1"]),
        (["a", "1"], ["a", "1"]),
        (["nan", "1"], ["nan", "1"]),
    ],
)
def test_labels_are_numbers_only_where_nothing_is_lost(texts, labels):
    found = as_labels(np.array(texts))
    assert found.tolist() == labels
    assert [type(label) for label in found.tolist()] == [type(label) for label in labels]


@given(st.lists(st.one_of(st.text("+-.0123456789eE_５", min_size=1), st.floats().map(repr))))
def test_labels_of_text_are_given_back_letter_by_letter(texts):
    found = as_labels(np.array(texts, dtype=str))
    assert list(map(str, found.tolist())) == texts
    assert len(set(found.tolist())) == len(set(texts))


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t", " "])
def test_a_table_of_8000_columns_is_read(tmp_path, delimiter):
    rows = np.random.default_rng(0).standard_normal((3, 8_000))
    lines = [delimiter.join(map(repr, row.tolist())) for row in rows]
    assert min(map(len, lines)) > csv.field_size_limit()
    (tmp_path / "t.csv").write_text("\n".join(lines))
    file = open_text(tmp_path / "t.csv")
    np.testing.assert_array_equal(file.read(range(8_000))[0], rows)


def test_a_cell_too_long_for_any_delimiter_is_placed(tmp_path):
    with pytest.raises(ValueError, match=r"table\.csv, line 2 .* field limit"):
        opened(tmp_path, "1,2\n1," + "9" * 200_000)


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
