"""What comes from outside is shown, never acted on: by a terminal, by rich, by a spreadsheet."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers import make_blobs
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import latentmetric
from latentmetric.characters import JOINERS, is_hidden, visible, visible_json
from latentmetric.cli._csv import as_text, write_csv
from latentmetric.cli.main import application

HOSTILE = [
    "\x1b]0;title\x07\x1b[2J\x1b]52;c;ZXZpbA==\x07",
    "\x9b31m\x85\u202egnp.exe\u2066",
    "[bold red]x[/]\nError: forged",
]

FILE = "\x1b[2J\u202e[bold]"


def call(*arguments, code=0):
    done = CliRunner().invoke(application(), [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def assert_visible(text):
    assert not [c for line in text.split("\n") for c in line if is_hidden(c)]
    assert "\nError: forged" not in text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose classes, columns and paths are hostile, and a table of its rows."""
    folder = tmp_path_factory.mktemp("terminal")
    X, y = make_blobs()
    names = [f"{name}{place}" for place in range(2) for name in HOSTILE]
    with open(folder / f"{FILE}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label"])
        writer.writerows([*row, HOSTILE[code]] for row, code in zip(X.tolist(), y, strict=True))
    call("fit", folder / f"{FILE}.csv", "-o", folder / FILE, "--estimator", "euclidean")
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="such names cannot be there")
@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "{table}", "-o", "{folder}/again", "--max-iter", "1", "--n-steps", "20"),
        ("info", "{model}"),
        ("evaluate", "{model}", "{table}"),
        ("compare", "{table}", "--methods", "euclid", "--folds", "2"),
        ("report", "{model}", "{table}", "-o", "{folder}/{file}.html"),
        ("export", "{model}", "-o", "{folder}/{file}.onnx"),
        ("predict", "{model}", "{table}", "-o", "{folder}/{file}answers.csv"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_shows_codes_for_hidden_characters(folder, arguments):
    known = {"model": folder / FILE, "table": folder / f"{FILE}.csv", "folder": folder}
    done = call(*[part.format(**known, file=FILE) for part in arguments])
    assert_visible(done.stdout)
    assert_visible(done.stderr)
    assert r"\x1b[2J\u202e[bold]" in done.output


@pytest.mark.skipif(sys.platform == "win32", reason="such names cannot be there")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("info", "/none/{file}"), 1),
        (("fit", "{table}", "-o", "/none/{file}"), 1),
        (("fit", "{table}", "-o", "m", "--label", "{file}"), 1),
        (("predict", "{model}", "{table}", "-o", "{file}"), 2),
        (("predict", "{model}", "{table}", "{file}"), 2),
        (("compare", "{table}", "--methods", "{file}"), 2),
        (("{file}",), 2),
        (("info", "--{file}"), 2),
        (("--{file}",), 2),
    ],
    ids=str,
)
def test_messages_show_codes_for_hidden_characters(folder, arguments, code):
    known = {"model": folder / FILE, "table": folder / f"{FILE}.csv", "file": FILE}
    done = call(*[part.format(**known) for part in arguments], code=code)
    assert_visible(done.output)
    assert "[bold]" in done.output


def test_json_has_the_same_values_and_nothing_hidden(folder):
    done = call("info", folder / FILE, "--json")
    assert_visible(done.stdout)
    assert sorted(json.loads(done.stdout)["classes"]) == sorted(HOSTILE)


@given(st.text(st.characters(codec=None)))
def test_visible_text_is_one_line_and_json_is_unchanged(text):
    assert not any(map(is_hidden, visible(text)))
    visible(text).encode()
    document = json.dumps(text, ensure_ascii=False)
    assert json.loads(visible_json(document)) == text
    assert not any(map(is_hidden, visible_json(document)))


def test_letters_of_any_script_stay_as_they_are():
    for text in ("cat", "日本語", "عربى", f"a{JOINERS}b", "C:\\x", "[x]", "é"):
        assert visible(text) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def written(labels, file):
    write_csv({"row": np.arange(len(labels)), "label": np.array(labels)}, file, ",")
    return file.getvalue()


def test_a_terminal_gets_codes_in_csv_and_a_file_the_labels():
    assert_visible(written(HOSTILE, Terminal()))
    rows = list(csv.reader(io.StringIO(written(HOSTILE, io.StringIO()), newline="")))
    assert [row[1] for row in rows[1:]] == HOSTILE


@pytest.mark.parametrize(
    ("label", "safe"),
    [
        ("=HYPERLINK(A1)", "'=HYPERLINK(A1)"),
        ("+cmd|x", "'+cmd|x"),
        ("-2+3", "'-2+3"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("＝1", "'＝1"),
        ("'=1", "''=1"),
        ("-1.5e3", "-1.5e3"),
        ("+", "+"),
        ("-", "-"),
        ("a=b", "a=b"),
        ("it's", "it's"),
    ],
)
def test_a_spreadsheet_runs_no_label(label, safe):
    assert as_text(label) == safe
    rows = list(csv.reader(io.StringIO(written([label], io.StringIO()), newline="")))
    assert rows[1] == ["0", safe]


def test_neither_names_of_columns_nor_ids_are_formulas(tmp_path):
    X, y = make_blobs()
    names = np.array(["=1+1", "@x", "-y"])
    with open(tmp_path / "table.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*"abcdef", "=id"])
        writer.writerows([*row, "=id()"] for row in X.tolist())
    latentmetric.save(latentmetric.Euclidean().fit(X, names[y]), tmp_path / "model")
    arguments = ("predict", tmp_path / "model", tmp_path / "table.csv", "--id", "=id", "--proba")
    rows = list(csv.reader(io.StringIO(call(*arguments).stdout, newline="")))
    assert rows[0] == ["'=id", "row", "label", "'-y", "'=1+1", "'@x"]
    assert {row[0] for row in rows[1:]} == {"'=id()"}
    assert {row[2] for row in rows[1:]} == {"'=1+1", "'@x", "'-y"}
    columns = call(*arguments, "--json").stdout
    assert set(json.loads(columns)["label"]) == set(names.tolist())


CALLS = [
    ["--help"],
    ["fit", "--help"],
    ["evaluate", "model", "τ.csv"],
    ["compare", "τ.csv", "--methods", "euclid", "--folds", "2"],
    ["predict", "model", "τ.csv"],
    ["fit", "τ.csv", "-o", "τ", "--estimator", "euclidean"],
    ["info", "none of τ"],
    ["info", "model", "--json"],
]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_most_letters_is_no_error(tmp_path, encoding):
    X, y = make_blobs(30)
    words = np.array(["τ", "é", "日本"])[y]
    lines = [",".join([*map(str, row), word]) for row, word in zip(X, words, strict=True)]
    (tmp_path / "τ.csv").write_text("\n".join(lines), encoding="utf-8")
    latentmetric.save(latentmetric.Euclidean().fit(X, words), tmp_path / "model")
    code = (
        "import sys; from latentmetric.cli.main import run\n"
        f"for arguments in {CALLS!a}:\n"
        "    sys.argv = ['latentmetric', *arguments]\n"
        "    try: run()\n"
        "    except SystemExit as ended: print('ended', ended.code, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        cwd=tmp_path,
    )
    err = done.stderr.decode(encoding)
    ended = [line for line in err.splitlines() if line.startswith("ended")]
    assert ended == ["ended 0"] * 6 + ["ended 1", "ended 0"], err
    out = done.stdout.decode(encoding)
    assert r"\u03c4" in out
    assert sorted(json.loads(out.splitlines()[-1])["classes"]) == sorted({*words.tolist()})
