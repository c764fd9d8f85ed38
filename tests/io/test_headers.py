"""Whether the first line names the columns, in tables and in files of labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.io import Choice, open_table


def opened(folder, content, **choice):
    (folder / "table.csv").write_text(content, newline="")
    return open_table(folder / "table.csv", choice=Choice(**choice))


DATA = {
    "labels y and n": "1.0,2.0,y\n3.0,4.0,n\n5.0,6.0,y\n",
    "a label called class": "1.0,2.0,class\n3.0,4.0,other\n5.0,6.0,class\n",
    "counting up from 0, two columns": "0,1,x\n3,4,y\n5,6,x\n",
    "counting up from 1": "1,2,3\n3,4,1\n5,6,2\n",
    "Booleans": "true,x\nfalse,y\ntrue,x\n",
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
    "numbers of columns and an index": ",0,1,2\n0,5,6,7\n1,7,8,9\n",
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


@given(
    rows=st.lists(
        st.tuples(st.floats(-9, 9).map(repr), st.sampled_from(["a", "b", "y"])), min_size=2
    )
)
def test_rows_without_a_header_are_all_read(tmp_path_factory, rows):
    content = "".join(f"{cell},{label}\n" for cell, label in rows)
    table = opened(tmp_path_factory.mktemp("text"), content)
    assert table.rows.tolist() == [[float(cell)] for cell, _ in rows]
    assert table.labels.tolist() == [label for _, label in rows]


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
