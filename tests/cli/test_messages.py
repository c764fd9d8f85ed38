"""What comes from outside is shown, never acted on: by a terminal, by rich."""

import csv
import io
import json
import re
import sys

import numpy as np
import pytest
from helpers import call, make_blobs
from rich.progress import Progress

from latentmetric.characters import is_hidden
from latentmetric.cli._messages import describe, note, print_table
from latentmetric.cli._output import _write_text
from latentmetric.cli._progress import FitProgress, show_progress

HOSTILE = [
    "\x1b]0;title\x07\x1b[2J\x1b]52;c;ZXZpbA==\x07",
    "\x9b31m\x85\u202egnp.exe\u2066",
    "[bold red]x[/]\nError: forged",
]
FILE = "\x1b[2J\u202e[bold]"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="such names cannot be there")


def assert_visible(text):
    assert not [c for line in text.split("\n") for c in line if is_hidden(c)]
    assert "\nError: forged" not in text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model whose classes, columns and paths are hostile, and a table of its rows."""
    folder = tmp_path_factory.mktemp("terminal")
    X, y = make_blobs()
    names = [f"{name}{number}" for number in range(2) for name in HOSTILE]
    with open(folder / f"{FILE}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label"])
        writer.writerows([*row, HOSTILE[code]] for row, code in zip(X.tolist(), y, strict=True))
    call("fit", folder / f"{FILE}.csv", "-o", folder / FILE, "--estimator", "euclidean")
    return {"model": folder / FILE, "table": folder / f"{FILE}.csv", "folder": folder}


@pytest.mark.parametrize(
    "arguments",
    [
        ("info", "{model}"),
        ("evaluate", "{model}", "{table}"),
        ("compare", "{table}", "--methods", "euclid", "--folds", "2"),
        ("predict", "{model}", "{table}", "-o", "{folder}/{file}answers.csv"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_shows_codes_for_hidden_characters(hostile, arguments):
    done = call(*[part.format(**hostile, file=FILE) for part in arguments])
    assert_visible(done.stdout)
    assert_visible(done.stderr)
    assert r"\x1b[2J\u202e[bold]" in done.output


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("info", "/none/{file}"), 1),
        (("fit", "{table}", "-o", "m", "--label", "{file}"), 1),
        (("predict", "{model}", "{table}", "-o", "{file}"), 2),
        (("info", "--{file}"), 2),
    ],
    ids=str,
)
def test_messages_show_codes_for_hidden_characters(hostile, arguments, code):
    done = call(*[part.format(**hostile, file=FILE) for part in arguments], code=code)
    assert "\x1b" not in done.output
    assert "[bold]" in done.output


def test_json_has_the_same_values_and_nothing_hidden(hostile):
    done = call("info", hostile["model"], "--json")
    assert_visible(done.stdout)
    assert sorted(json.loads(done.stdout)["classes"]) == sorted(HOSTILE)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_codes_in_csv_and_a_file_the_labels():
    columns = {"row": np.arange(3), "label": np.array(HOSTILE)}
    for file in (Terminal(), io.StringIO()):
        _write_text(columns, file, ",")
        if file.isatty():
            assert_visible(file.getvalue())
    rows = list(csv.reader(io.StringIO(file.getvalue(), newline="")))
    assert [row[1] for row in rows[1:]] == HOSTILE


def test_tables_fit_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "40")
    print_table(["name", "number"], [["x" * 60, "1"], ["[bold]", "2"]], title="A table")
    shown = re.sub("\x1b\\[[0-9;]*m", "", sys.stdout.getvalue())
    assert max(map(len, shown.splitlines())) <= 40
    assert "[bold]" in shown


def test_errors_are_described_in_one_line():
    assert describe(ValueError("two\n  lines")) == "two lines"
    assert describe(ValueError()) == "ValueError"
    assert describe(OSError(28, "No space left on device", "out")) == "out: no space left on device"
    assert describe(OSError(28, "No space left on device")) == "no space left on device"
    assert describe(MemoryError("8 GB")) == "there is not enough memory: 8 GB"


def test_progress_on_a_terminal_and_without_one(monkeypatch, capsys):
    history = [{"round": 0, "seconds": {}, "objective": 2.5}]
    with show_progress("trial") as progress:
        progress.begin("fit")
        progress.has_read(5, 10)
        progress.has_read(10, 10)
        assert progress.has_learned(history, 3) is False
    assert capsys.readouterr().err == "fit: read: 10 rows\nfit: round 0 of 3: objective 2.5\n"
    with show_progress(each_round=False) as progress:
        progress.begin("fold 1")
        progress.has_learned(history, 3)
    assert capsys.readouterr().err == "fold 1\n"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with show_progress("trial \x1b") as progress:
        progress.has_read(5, 10)
        progress.has_learned([*history, {"round": 1, "seconds": {}, "loo_error": 0.25}], 3)
        note("beside the bar")
        bar = progress._bar.tasks[0]
        assert bar.description == "trial \\x1b: round 1 of 3"
        assert bar.fields["detail"].startswith("error on training rows 25.00 %")
    assert "beside the bar" in sys.stderr.getvalue()


def test_the_first_interrupt_waits_for_a_round_and_the_second_does_not(capsys):
    progress = FitProgress(Progress(disable=True), each_round=True)
    with pytest.raises(KeyboardInterrupt):
        progress.interrupt(2, None)
    history = [{"round": 0, "seconds": {}}]
    assert not progress.has_learned(history, 3)
    progress.interrupt(2, None)
    assert progress.has_learned(history, 3)
    assert "Ending after this round" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        progress.interrupt(2, None)
