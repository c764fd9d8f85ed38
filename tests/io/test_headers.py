"""Whether the first line names the columns: no row may be lost, and no name become one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.io import Choice, open_table
from latentmetric.io.text import is_header

LABEL_LETTERS = "abcxy"


def opened(folder, content, name="table.csv", **choice):
    path = folder / name
    path.write_text(content, newline="")
    return open_table(path, choice=Choice(**choice))


DATA = {
    "labels y and n": "1.0,2.0,y\n3.0,4.0,n\n5.0,6.0,y\n",
    "a label called class": "1.0,2.0,class\n3.0,4.0,other\n5.0,6.0,class\n",
    "one column and y": "1.5,y\n2.5,n\n3.5,y\n",
    "labels A and 1": "0.1,2.0,A\n3.0,4.0,1\n5.0,6.0,A\n",
    "counting up with a label that occurs again": "0,1,x\n3,4,y\n5,6,x\n",
    "counting up from 1": "1,2\n3,4\n5,6\n",
    "one column from 0": "0,x\n1,y\n2,x\n",
    "Booleans": "true,1,x\nfalse,2,y\ntrue,3,x\n",
    "labels first": "y,1.5,2\nn,2.5,3\ny,3.5,4\n",
}


@pytest.mark.parametrize("what", DATA)
def test_no_row_is_lost(tmp_path, what):
    label = "1" if what == "labels first" else "-1"
    assert len(opened(tmp_path, DATA[what], label=label).rows) == 3
    assert len(opened(tmp_path, DATA[what], label=label, header=False).rows) == 3


HEADERS = {
    "names": "a,b,kind\n1,2,x\n3,4,y\n",
    "names that are numbers, and a label": "0,1,label\n1,2,x\n3,4,y\n",
    "numbers of many columns": ",".join(map(str, range(9))) + "\n" + "5,6,7,8,9,1,2,3,4\n" * 2,
    "numbers above fractions": "0,1\n0.5,1.5\n2.5,3.5\n",
    "numbers above words": "0,1,2\n5,6,x\n7,8,y\n",
    "numbers and an index": ",0,1\n0,5,6\n1,7,8\n",
    "sodium": "Na,label\n1,x\n2,y\n",
    "a missing value below": "a,b\nNA,1\n2,3\n4,5\n",
    "labels that are numbers": "a,y\n1.5,0\n2.5,1\n",
    "numbers of columns and labels that are numbers": "0,1,y\n5.5,6.5,0\n7.5,8.5,1\n",
}


@pytest.mark.parametrize("what", HEADERS)
def test_what_cannot_be_data_is_a_header(what):
    assert is_header([line.split(",") for line in HEADERS[what].splitlines()], ".") is True


DOUBTS = {
    "two whole numbers": "0,1\n1,0\n1,1\n",
    "column numbers of pandas above whole numbers": "0,1,2\n5,6,7\n8,9,1\n",
    "a label that occurs once": "0,1,cat\n3,4,dog\n5,6,dog\n",
    "y above other letters": "1.5,2.5,y\n3.5,4.5,n\n",
    "wavelengths and a label": "400,410,label\n0.1,0.2,x\n0.3,0.4,y\n",
    "a name beside a number": "width,2019\n1.5,2.5\n3.5,4.5\n",
    "a number that is missing, and a label": "NA,label\n1.5,x\n2.5,y\n",
    "a number above words": "0,1\n2,A\n0,A\n",
    "years above fractions": "2019,2020,species\n0.1,0.2,x\n0.3,0.4,y\n",
    "a word that occurs again": "none of it,x\n1,x\n2,y\n",
}


@pytest.mark.parametrize("what", DOUBTS)
def test_what_may_be_both_is_asked_about(tmp_path, what):
    content, choice = DOUBTS[what], {"labelled": False}
    with pytest.raises(ValueError, match=r"table\.csv: the first line, .* --header or --no-header"):
        opened(tmp_path, content, **choice)
    assert len(opened(tmp_path, content, header=True, **choice).rows) == content.count("\n") - 1


@pytest.mark.parametrize("word", ["NA", "?", "null", "-", ""])
def test_a_missing_number_of_the_first_row_is_refused_with_its_line(tmp_path, word):
    for content in (f"{word},2.0,a\n3.0,4.0,b\n5.0,6.0,a\n", f"{word}\n3.0\n4.0\n" if word else ""):
        with pytest.raises(ValueError, match=r"line 1, column 'column 1'|is empty"):
            opened(tmp_path, content, labelled=False)


def test_a_model_that_knows_the_names_settles_the_doubt(tmp_path):
    names = [str(400 + 10 * place) for place in range(9)]
    content = ",".join([*names, "label"]) + "\n" + ",".join(["0.5"] * 9 + ["x"]) + "\n"
    table = opened(tmp_path, content, names=names[::-1], labelled=False)
    assert table.feature_names == names[::-1]
    with pytest.raises(ValueError, match="--header or --no-header"):
        opened(tmp_path, "0,1\n1,0\n1,1\n", names=["0", "1"], labelled=False)


def test_a_column_that_is_asked_for_by_name_is_named(tmp_path):
    content = "400,410,kind\n1,2,x\n3,4,y\n"
    for choice in ({"label": "kind"}, {"id": "kind"}, {"ignore": ["1,kind"]}):
        table = opened(tmp_path, content, **{"labelled": "label" in choice, **choice})
        assert table.feature_names[-1] == "410"
    assert len(opened(tmp_path, content, label="3").rows) == 3
    with pytest.raises(ValueError, match="--header or --no-header"):
        opened(tmp_path, "1,2,kind\n3,4,x\n5,6,kind\n", label="kind")


numbers = st.one_of(
    st.integers(0, 3).map(str), st.floats(allow_nan=False, allow_infinity=False).map(repr)
)


@given(
    rows=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.tuples(
                st.lists(numbers, min_size=width, max_size=width),
                st.one_of(st.sampled_from(LABEL_LETTERS), st.sampled_from(["class", "label", "1"])),
            ),
            min_size=2,
            max_size=30,
        )
    )
)
def test_rows_without_a_header_are_all_read_or_none(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("text")
    content = "".join(",".join([*cells, label]) + "\n" for cells, label in rows)
    try:
        table = opened(folder, content, label="-1")
    except ValueError as error:
        assert "--no-header" in str(error)  # noqa: PT017 most rows are read
        table = opened(folder, content, label="-1", header=False)
    assert table.rows.tolist() == [[float(cell) for cell in cells] for cells, _ in rows]
    assert list(map(str, table.labels)) == [label for _, label in rows]


def labelled(folder, lines, n_rows=10, **choice):
    np.save(folder / "rows.npy", np.arange(2.0 * n_rows).reshape(n_rows, 2))
    (folder / "labels.txt").write_text("\n".join(lines) + "\n")
    return open_table(folder / "rows.npy", folder / "labels.txt", Choice(**choice))


TEN = {
    "digits": list("0101010101"),
    "letters": list("ynynynynyn"),
    "words": ["cat", "dog"] * 5,
    "a word that occurs once": ["eel", *["cat", "dog"] * 4, "cat"],
}


@pytest.mark.parametrize("what", TEN)
def test_labels_of_all_rows_are_all_labels(tmp_path, what):
    assert list(map(str, labelled(tmp_path, TEN[what]).labels)) == TEN[what]


@pytest.mark.parametrize("what", ["digits", "letters", "words"])
@pytest.mark.parametrize("header", ["label", "Class", "animal"])
def test_a_header_of_labels_is_dropped_and_named(tmp_path, what, header):
    table = labelled(tmp_path, [header, *TEN[what]])
    assert list(map(str, table.labels)) == TEN[what]
    assert f"the first line, '{header}', read as a header" in table.notes[-1]


@pytest.mark.parametrize("what", ["digits", "letters", "words"])
def test_a_label_too_many_is_refused_with_both_numbers(tmp_path, what):
    for lines in ([*TEN[what], TEN[what][0]], [TEN[what][-1], *TEN[what]]):
        with pytest.raises(ValueError, match=r"has 10 rows, but .* has 11 labels.*add --header"):
            labelled(tmp_path, lines)
        with pytest.raises(ValueError, match=r"has 10 rows, but .* has 11 labels$"):
            labelled(tmp_path, lines, header=False)
        assert len(labelled(tmp_path, lines, header=True).labels) == 10


@pytest.mark.parametrize("lines", [[*"yabcdefghij"], ["eel", *["cat", "dog"] * 4, "cat", "ox"]])
def test_a_first_label_that_is_not_clearly_a_header_is_not_dropped(tmp_path, lines):
    with pytest.raises(ValueError, match=r"has 10 rows, but .* has 11 labels"):
        labelled(tmp_path, lines)


def test_a_header_in_place_of_a_label_is_noticed(tmp_path):
    for lines in (["label", *TEN["words"][1:]], ["kind", *TEN["digits"][1:]]):
        with pytest.raises(ValueError, match=r"has 10 lines for 10 rows, but the first, .* header"):
            labelled(tmp_path, lines)
        assert labelled(tmp_path, lines, header=False).labels[0] == lines[0]


def test_a_label_file_of_several_columns(tmp_path):
    lines = ["name,kind", *(f"r{place},{word}" for place, word in enumerate(TEN["words"]))]
    table = labelled(tmp_path, lines, label="2")
    assert (table.labels.tolist(), "'kind', read as" in table.notes[-1]) == (TEN["words"], True)
    table = labelled(tmp_path, ["name,label", *lines[1:]])
    assert table.labels.tolist() == TEN["words"]
