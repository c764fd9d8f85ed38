"""Quoted cells: each is closed, and what it holds is kept letter by letter."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.io import Choice, open_table


def opened(folder, text, name="t.csv", **choice):
    path = folder / name
    path.write_bytes(text.encode())
    return open_table(path, choice=Choice(**choice))


def refused(folder, text, **choice):
    with pytest.raises(ValueError, match=r"t\.csv") as caught:
        opened(folder, text, **choice)
    message = str(caught.value)
    assert "\n" not in message
    assert "cannot be read as" not in message
    return message


ROWS = "1,x\n2,y\n" * 5
LATE = "1,x\n2,y\n" * 50


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,label\n" + ROWS + '3,"x\n' + LATE, 12),
        ("a,label\n" + LATE + '3,"x\n' + LATE, 102),
        ("a,label\n" + ROWS + '3,"x', 12),
        ("a,label\n" + ROWS + '3,"', 12),
        ("a,label\n" + ROWS + '"3,x\n' + LATE, 12),
        ('a,label\n1,x\n2,"\n3,y\n4,"\n5,z\n', 3),
        ('a,label\n1,x\n2,"\n3,"\n5,z\n', 3),
        ('a,label\n1,x\n2,"\n3,"y"\n5,z\n', 3),
        ('label,a,b\nx,1,2\n",3,4\ny,5,6\n",7,8\n', 3),
        ('1,"x\n2,y\n3,x\n', 1),
        ('"1,x\n2,y\n3,x\n', 1),
        ('a,"label\n1,x\n2,y\n', 1),
        ('a,b,label\n1,"2,x\n3,4,y\n', 2),
        ("a,label\n" + ROWS + '3,"x\n' + "4,x\n" * 50_000, 12),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_quote_that_is_not_closed_is_refused_with_its_line(tmp_path, text, line, end):
    message = refused(tmp_path, text.replace("\n", end))
    assert f"t.csv, line {line}" in message
    assert "quote" in message


def test_a_quote_of_a_file_of_labels_is_closed_too(tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n" * 5)
    (tmp_path / "t.csv").write_text('x\n"y\nx\ny\nx\n')
    with pytest.raises(ValueError, match=r"t\.csv, line 2: a quote opens a cell"):
        open_table(tmp_path / "rows.csv", tmp_path / "t.csv")


def test_text_after_a_closing_quote_is_refused(tmp_path):
    message = refused(tmp_path, 'a,label\n1,x\n2,"the "big" one"\n')
    assert "line 3: more text follows the quote" in message
    assert "twice" in message
    assert opened(tmp_path, 'a,label\n"1" ,"x" \n2,5" disk\n').labels.tolist() == ["x", '5" disk']


def test_quoted_labels_stay_apart(tmp_path):
    labels = ["x ", "x", "\u00a0x", "p\r\nq", "p\nq", "p\rq", " ", "\x1fx", 'say "x"', "\tx", "1 "]
    lines = "".join(
        f'{place},"{label.replace(chr(34), chr(34) * 2)}"\n' for place, label in enumerate(labels)
    )
    for end in ("\n", "\r\n", "\r"):
        head, body = f"a,label{end}", lines if end == "\n" else lines.replace('"\n', f'"{end}')
        table = opened(tmp_path, head + body)
        assert table.labels.tolist() == labels
        assert table.rows[:, 0].tolist() == list(range(len(labels)))
    table = opened(tmp_path, "a,label\n" + lines, id="label", labelled=False)
    assert table.ids.tolist() == labels


def test_spaces_around_cells_without_quotes_are_no_text(tmp_path):
    table = opened(tmp_path, 'a , label\n 1 , x \n2,x\n3,\u00a0x\n"4" ,"x"\n')
    assert (table.feature_names, set(table.labels.tolist())) == (["a"], {"x"})


def test_quoted_names_stay_apart(tmp_path):
    table = opened(tmp_path, '"a","a "," label"\n1,2,x\n3,4,y\n')
    assert (table.feature_names, table.labels.tolist()) == (["a", "a "], ["x", "y"])


def test_long_text_over_several_lines_is_no_fault(tmp_path):
    text = 'a,label,note\n1,x,"first, line\nsecond, 2\n\n7"\n2,y,"none"\n'
    assert opened(tmp_path, text, ignore=["note"]).rows.tolist() == [[1.0], [2.0]]
    first = 'note,a,b,label\n"one\ntwo",3,4,x\n"\n",5,6,y\n'
    assert opened(tmp_path, first, ignore=["note"]).rows.tolist() == [[3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_quoted_numbers_and_delimiters(tmp_path, delimiter):
    lines = [["a", "b", "label"], ['"1"', '"2.5"', f'"x{delimiter}"'], ["3", '"4"', '"y"']]
    table = opened(tmp_path, "\n".join(delimiter.join(line) for line in lines))
    assert table.rows.tolist() == [[1.0, 2.5], [3.0, 4.0]]
    assert table.labels.tolist() == [f"x{delimiter}", "y"]


CELLS = st.text(st.sampled_from('ab ",\n\r\t\u00a0\x1f;'), max_size=6)


