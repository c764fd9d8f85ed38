"""The examples run, draw a picture and download nothing; the notebooks are theirs."""

import ast
import json
import re
import runpy
import socket
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture
def no_downloads(monkeypatch):
    """The name of another machine cannot be looked up; a cluster in this process needs its own."""
    look_up = socket.getaddrinfo

    def own_only(host, *arguments, **options):
        own = (None, "", "localhost", socket.gethostname())
        if host not in own and not re.fullmatch(r"[\d.]+|[\da-f:]+", str(host)):
            raise OSError(f"an example asked for the address of {host}")
        return look_up(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", own_only)


@pytest.fixture
def shown(monkeypatch):
    """How many figures each call of ``plt.show`` has found."""
    numbers = []
    plt.switch_backend("agg")
    plt.close("all")
    monkeypatch.setattr(plt, "show", lambda: numbers.append(len(plt.get_fignums())))
    yield numbers
    plt.close("all")


@pytest.mark.slow
@pytest.mark.usefixtures("no_downloads")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_runs_and_draws(script, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script))
    assert shown == [1]
    assert list(tmp_path.iterdir()) == []


def test_every_example_is_a_question_on_the_page_of_the_gallery():
    for script in SCRIPTS:
        text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
        title, line, *_ = text.splitlines()
        assert title.endswith("?")
        assert line == "=" * len(title)


def cells_of(script):
    """The texts and the code of a script, in turn, by the marks between them."""
    head, *blocks = re.split(r"^# %%\n", script.read_text(encoding="utf-8"), flags=re.MULTILINE)
    cells = [head.strip().strip('"')]
    for block in blocks:
        text = re.match(r"(# .*\n|#\n)*", block)[0]
        cells += [re.sub(r"^# ?", "", text, flags=re.MULTILINE), block[len(text) :]]
    return cells


def plain(text):
    """A text without its markup."""
    return re.sub(r"[`=#\s]+", " ", text).strip()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_is_its_script(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    expected = cells_of(notebook.with_suffix(".py"))
    assert plain(cells[0]["source"][0]) == plain(expected[0])
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert ["".join(cell["source"]).strip() for cell in code] == [
        cell.strip() for cell in expected[2::2]
    ]
    texts = [cell for cell in cells if cell["cell_type"] == "markdown"]
    assert [plain("".join(cell["source"])) for cell in texts] == [
        plain(cell) for cell in expected[:1] + expected[1::2]
    ]
    assert all(cell["outputs"] == [] for cell in code)
