"""Tables in text: delimiters, encodings, quotes, headers, labels as they are written."""

import csv
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.io import Choice, open_table
from latentmetric.io.columns import as_labels


def opened(folder, content, name="table.csv", **choice):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_table(path, choice=Choice(**choice))


def refused(folder, content, **choice):
    with pytest.raises(ValueError, match=r"table\.csv") as caught:
        opened(folder, content, **choice)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("1,2,x\n3,4,y\n", None),
        ("a,b,label\n1,2,x\n3,4,y\n", ["a", "b"]),
        ("0,1,label\n1,2,x\n3,4,y\n", ["0", "1"]),
        (",a,b,label\n0,1,2,x\n1,3,4,y\n", ["a", "b"]),
        ("a;b;label\n1;2;x\n3;4;y\n", ["a", "b"]),
        ('"a, really","b",label\n1,2,x\n3,4,y\n', ["a, really", "b"]),
        ('a,b,label\r\n"1",2,"x"\r\n3,4,y\r\n', ["a", "b"]),
        ("a,b,label\r1,2,x\r3,4,y\r", ["a", "b"]),
        ("\n\na , b, label\n\n 1 , 2 ,x\n3,4,y\n\n", ["a", "b"]),
        ("\ufeffa,b,label\n+1,2,x\n3,4e0,y", ["a", "b"]),
    ],
)
def test_layouts(tmp_path, content, names):
    table = opened(tmp_path, content)
    assert table.rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert (table.labels.tolist(), table.feature_names) == (["x", "y"], names)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv.gz", "T.CSV.GZ", "T.CSV"])
def test_packed_text_and_names_in_capitals(tmp_path, name):
    text = "a,b,label\n1,2,x\n3,4,é\n".replace(",", "\t" if ".tsv" in name else ",").encode()
    table = opened(tmp_path, gzip.compress(text) if name.lower().endswith("gz") else text, name)
    assert table.rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert table.labels.tolist() == ["x", "é"]


def test_damaged_packed_text_is_named(tmp_path):
    packed = gzip.compress(b"a,label\n" + b"".join(b"%d,x\n" % n for n in range(9999)))
    for content in (packed[:-20], packed[:5], packed[:50] + b"zz" + packed[52:]):
        with pytest.raises(ValueError, match=r"t\.csv\.gz cannot be read: "):
            opened(tmp_path, content, "t.csv.gz")
    with pytest.raises(ValueError, match=r"t\.csv\.gz, line 3, column 'a': 'two'"):
        opened(tmp_path, gzip.compress(b"a,label\n1,x\ntwo,y\n3,x\n4,x\n"), "t.csv.gz")


def test_spaces_and_tabs(tmp_path):
    np.savetxt(tmp_path / "rows.txt", [[1, 2.5], [3, 4]])
    table = open_table(tmp_path / "rows.txt", choice=Choice(labelled=False))
    assert table.rows.tolist() == [[1.0, 2.5], [3.0, 4.0]]
    assert opened(tmp_path, "a\tlabel\n1\tx, y\n", "t.tsv").labels.tolist() == ["x, y"]


BROKEN = {
    "empty": (b"", "table.csv is empty"),
    "too many": (b"a,b,label\n1,2,x\n\n1,2,3,y\n", "line 4: 4 cells, but 3 in the first line"),
    "a word": (
        b"a,b,label\n1,2,x\n1,two,y\n",
        "'two' is not a number; fix it, or fit without the column (--ignore)",
    ),
    "a hole": (b"a,b,label\n1,2,x\n,2,y\n", "line 3, column 'a': the value is missing"),
    "infinity": (b"a,b,label\n1,2,x\n1e999,1,y\n", "line 3, column 'a': inf is not a finite"),
    "no label": (b"a,b,label\n1,2,x\n1,3,\n", "line 3, column 'label': the label is missing"),
    "no names": (b"one,2\n3,4\n5,6\n", "(--ignore); if it names the column, add --header"),
    "latin-1": ("a,label\n1,x\n2,café\n".encode("latin-1"), "line 3: byte 0xe9 is not UTF-8; name"),
    "lines in a cell": (b'a,b,label\n1,2,"x\ny"\n1,z,"x"\n', "line 4, column 'b': 'z'"),
    "two text columns": (b"a,b,c\n1,x,y\n2,z,w\n", "no column is clearly the labels among a, b, c"),
    "words alone": (b"label\ncat\ndog\n", "no column of numbers for the features"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_text_is_refused_with_its_line(tmp_path, what):
    content, message = BROKEN[what]
    header = {"header": False, "labelled": False} if what == "no names" else {}
    assert message in refused(tmp_path, content, **header)


def test_booleans_are_numbers(tmp_path):
    words = ["true", "True", "TRUE", "false", "False", "FALSE"]
    lines = "".join(f"{word},{row},x\n" for row, word in enumerate(words))
    for header in ("", "wet,size,label\n"):
        assert opened(tmp_path, header + lines).rows[:, 0].tolist() == [1, 1, 1, 0, 0, 0]
    late = "wet,size,label\n" + "1,2,x\n" * 50 + " true ,2,x\n"
    assert opened(tmp_path, late).rows[-1].tolist() == [1.0, 2.0]
    assert opened(tmp_path, "a,label\n1,True\n2,False\n").labels.tolist() == ["True", "False"]


def test_what_most_of_the_first_cells_hold_is_the_kind_of_a_column(tmp_path):
    message = refused(tmp_path, "a,b,label\nNA,1,x\n2,3,y\n4,5,x\n")
    assert "line 2, column 'a': the value is missing" in message
    message = refused(tmp_path, "a,b,label\nNA,1,x\nNA,3,y\n4,5,x\n")
    assert "'NA' (if that is a missing number, fit with --impute), not numbers" in message
    message = refused(tmp_path, "a,b,label\n,1,x\nnorth,3,y\nsouth,5,x\n")
    assert (
        "column 'a' holds text such as 'north', not numbers; leave out with --ignore a" in message
    )


@pytest.mark.parametrize("date", ["2024-01-31", "2024-01-31T12:00", "31.1.2024", "1/31/2024"])
def test_a_column_of_dates_gets_advice(tmp_path, date):
    message = refused(tmp_path, f"when,b,label\n{date},1,x\n{date},3,y\n")
    assert message.endswith(
        f"'{date}', not numbers; turn dates into numbers first, such as days since the first one, "
        "or leave out with --ignore when"
    )


def test_a_mark_that_every_line_has_is_no_delimiter_where_another_gives_more_numbers(tmp_path):
    table = opened(tmp_path, "1,2,x;y\n2,3,y;z\n")
    assert table.rows[:].tolist() == [[1, 2], [2, 3]]
    assert table.labels.tolist() == ["x;y", "y;z"]
    assert opened(tmp_path, "1,5;x,y\n2,5;y,z\n", decimal=",").labels.tolist() == ["x,y", "y,z"]


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
    assert "decimal comma, add --decimal ," in refused(tmp_path, content)


def test_decimal_commas_between_spaces_and_what_they_are_not(tmp_path):
    table = opened(tmp_path, "1,5 2\n3,25 4\n", "t.txt", decimal=",", labelled=False)
    assert table.rows.tolist() == [[1.5, 2.0], [3.25, 4.0]]
    content = "a;label\n1,5;x\n2,5;x\n1.000,5;y\n"
    assert "'1.000,5' is not a number" in refused(tmp_path, content, decimal=",")
    with pytest.raises(ValueError, match="must be a point or a comma"):
        opened(tmp_path, content, decimal="x")


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(tmp_path, encoding):
    content = "größe,label\n1,café\n2,thé\n".encode(encoding)
    table = opened(tmp_path, content, encoding=encoding)
    assert (table.feature_names, table.labels.tolist()) == (["größe"], ["café", "thé"])
    assert "'klingon' is not an encoding" in refused(tmp_path, content, encoding="klingon")
    assert "is not UTF-16" in refused(tmp_path, b"a,label\n1,x\n2", encoding="utf-16")


LATE = "1,x\n2,y\n" * 50


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,label\n" + LATE + '3,"x\n' + LATE, 102),
        ('1,"x\n2,y\n3,x\n', 1),
        ('a,b,label\n1,"2,x\n3,4,y\n', 2),
        ("a,label\n1,x\n" + '3,"x\n' + "4,x\n" * 50_000, 3),
    ],
)
def test_a_quote_that_is_not_closed_is_refused_with_its_line(tmp_path, text, line):
    for end in ("\n", "\r\n"):
        assert f"table.csv, line {line}" in refused(tmp_path, text.replace("\n", end))


def test_text_in_quotes_is_kept(tmp_path):
    labels = ["x ", "x", "p\nq", 'say "x"', "a,b", "\u00a0x", "1 ", "ö"]
    lines = [f'{row},"{label.replace(chr(34), chr(34) * 2)}"\n' for row, label in enumerate(labels)]
    assert opened(tmp_path, "a,label\n" + "".join(lines)).labels.tolist() == labels
    assert opened(tmp_path, 'a,label\n"1",x\n2,5" disk\n').labels.tolist() == ["x", '5" disk']
    text = 'a,label,note\n1,x,"first, line\nsecond, 2\n\n7"\n2,y,"none"\n'
    assert opened(tmp_path, text, ignore=["note"]).rows.tolist() == [[1.0], [2.0]]


def test_ids_are_given_back_as_they_are(tmp_path):
    for ids, kind in ((["3", "-12"], "i"), (["007", "8"], "U"), (["a b", ""], "U")):
        table = opened(tmp_path, f"n,a,label\n{ids[0]},1,x\n{ids[1]},2,y\n", id="n")
        assert list(map(str, table.ids)) == ids
        assert (table.ids.dtype.kind, table.id_name) == (kind, "n")
        assert table.feature_names == ["a"]


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["1", "2", "-3", "0"], [1, 2, -3, 0]),
        (["9007199254740993", "1"], [9007199254740993, 1]),
        (["0.5", "2.0", "1e-07"], [0.5, 2.0, 1e-07]),
        (["1.0", "1.00"], ["1.0", "1.00"]),
        (["1E3", "1000"], ["1E3", "1000"]),
        (["-0.0", "0.0"], ["-0.0", "0.0"]),
        (["inf", "1.0"], ["inf", "1.0"]),
        (["007", "1"], ["007", "1"]),
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


floats = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1)


@given(rows=st.lists(st.tuples(floats, floats, words.map("w{}".format)), min_size=1, max_size=12))
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows):
    """Floats to the last bit, and labels with quotes, delimiters and any letters."""
    path = tmp_path_factory.mktemp("text") / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("one", "two", "label"), *rows])
    table = open_table(path)
    assert table.rows.tolist() == [[row[0], row[1]] for row in rows]
    assert table.labels.tolist() == [row[2] for row in rows]


DATA = {
    "labels y and n": "1.0,2.0,y\n3.0,4.0,n\n5.0,6.0,y\n",
    "a label called class": "1.0,2.0,class\n3.0,4.0,other\n5.0,6.0,class\n",
    "counting up from 0, two columns": "0,1,x\n3,4,y\n5,6,x\n",
    "labels first": "y,1.5,2\nn,2.5,3\ny,3.5,4\n",
    "a label that occurs once": "0.5,1.5,cat\n3,4,dog\n5,6,dog\n",
}


@pytest.mark.parametrize("what", DATA)
def test_a_line_with_numbers_is_data(tmp_path, what):
    label = "1" if what == "labels first" else "-1"
    assert len(opened(tmp_path, DATA[what], label=label).rows) == 3
    assert len(opened(tmp_path, DATA[what], label=label, header=True, labelled=False).rows) == 2


HEADERS = {
    "names": "a,b,kind\n1,2,x\n3,4,y\n",
    "a name that is also a label": "a,x\n1,x\n2,y\n",
    "numbers of columns, as pandas writes them": "0,1,2\n5,6,7\n8,9,1\n",
    "wavelengths and a label": "400,410,label\n0.1,0.2,x\n0.3,0.4,y\n",
    "sodium": "Na,label\n1,x\n2,y\n",
}


@pytest.mark.parametrize("what", HEADERS)
def test_a_line_of_names_is_a_header(tmp_path, what):
    assert len(opened(tmp_path, HEADERS[what], labelled=False).rows) == 2


@pytest.mark.parametrize("word", ["NA", "?", "null"])
def test_a_missing_number_of_the_first_row_is_refused_with_its_line(tmp_path, word):
    for content in (f"{word},2.0,a\n3.0,4.0,b\n5.0,6.0,a\n", f"{word}\n3.0\n4.0\n"):
        with pytest.raises(ValueError, match=r"line 1, column 'column 1'"):
            opened(tmp_path, content, labelled=False)


def test_names_that_a_model_or_the_user_knows_make_a_header(tmp_path):
    content = "400,410,kind\n1,2,x\n3,4,y\n"
    table = opened(tmp_path, content, names=["410", "400"], labelled=False)
    assert table.rows.tolist() == [[2, 1], [4, 3]]
    for choice in ({"label": "kind"}, {"id": "kind"}, {"ignore": ["1,kind"]}):
        table = opened(tmp_path, content, **{"labelled": "label" in choice, **choice})
        assert table.feature_names[-1] == "410"
    assert len(opened(tmp_path, content, label="3").rows) == 3


def labelled(folder, lines, n_rows=10, **choice):
    np.save(folder / "rows.npy", np.arange(2.0 * n_rows).reshape(n_rows, 2))
    (folder / "labels.txt").write_text("\n".join(lines) + "\n")
    return open_table(folder / "rows.npy", folder / "labels.txt", Choice(**choice))


TEN = {
    "digits": list("0101010101"),
    "letters": list("ynynynynyn"),
    "a word that occurs once": ["eel", *["cat", "dog"] * 4, "cat"],
}


@pytest.mark.parametrize("what", TEN)
def test_the_number_of_lines_tells_whether_a_file_of_labels_has_a_header(tmp_path, what):
    assert list(map(str, labelled(tmp_path, TEN[what]).labels)) == TEN[what]
    for header in ("label", "animal"):
        table = labelled(tmp_path, [header, *TEN[what]])
        assert list(map(str, table.labels)) == TEN[what]
        assert f"labels: column '{header}' of " in table.notes[-1]


@pytest.mark.parametrize("what", ["digits", "letters"])
def test_a_label_too_many_is_refused_with_both_numbers(tmp_path, what):
    lines = [*TEN[what], TEN[what][0]]
    with pytest.raises(ValueError, match=r"has 10 rows, but .* has 11 labels.* --header or --no"):
        labelled(tmp_path, lines)
    with pytest.raises(ValueError, match=r"has 10 rows, but .* has 11 labels$"):
        labelled(tmp_path, lines, header=False)
    assert len(labelled(tmp_path, lines, header=True).labels) == 10


def test_a_label_file_of_several_columns(tmp_path):
    lines = ["name,kind", *(f"r{row},{word}" for row, word in enumerate(TEN["letters"]))]
    assert labelled(tmp_path, lines, label="2").labels.tolist() == TEN["letters"]
    assert labelled(tmp_path, lines, label="kind").labels.tolist() == TEN["letters"]
    with pytest.raises(ValueError, match=r"has 9 labels; is its first line a header"):
        labelled(tmp_path, lines[1:], label="2")
    assert labelled(tmp_path, lines[1:], label="2", header=False).labels.tolist() == TEN["letters"]


def test_a_file_of_one_label(tmp_path):
    assert labelled(tmp_path, ["cat"], n_rows=1).labels.tolist() == ["cat"]
