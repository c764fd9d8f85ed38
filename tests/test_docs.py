"""The documents match the code: examples run, links resolve, quoted constants are the code's.

A number that a page quotes from the code is followed by a comment with its name, which is not
rendered: ``128<!-- latentmetric.core.metric.STEPS_PER_BLOCK -->``. The name is a constant, an
entry of a constant, ``NAME[key]``, or the default of a parameter, ``function(parameter)``.

The blocks of a tutorial, ``docs/tutorial-*.md``, follow each other: one may use what those before
it defined, and a block of text after it shows what it prints. Every other block stands alone.

A number from benchmarks/results is followed by the file and the path to its cell, of which the mean
error is meant, or to other figures: ``4.86<!-- result quality / MNIST, noise 250/255 -->``.
"""

import inspect
import io
import json
import re
import shlex
from contextlib import redirect_stdout
from itertools import pairwise
from math import isclose
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest
from typer.testing import CliRunner

from latentmetric.cli.main import COMMANDS, app

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "RELEASING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)} {number}")
    for page in PAGES
    if page not in TUTORIALS
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
]
UNITS = {"": 1, "%": 0.01, "MB": 2**20, "GB": 2**30}
QUOTED_NUMBER = re.compile(
    r"(?P<digits>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*)"
    r"(?:th)?[`*]* ?(?P<unit>%|MB|GB|)[`*]*$"
)
CONSTANT = re.compile(r"([\w.]+)(?:\[(\w+)\]|\((\w+)\))?")
FEWEST_QUOTED = 40
"""A page that drops the comment of a number would escape the comparison."""
RESULTS = ROOT / "benchmarks" / "results"
RESULT = "result "


def quoted_constants():
    """Each comment in the pages, with the text before it on its line."""
    for page in PAGES:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for comment in re.finditer(r"<!--(.*?)-->", line):
                name = comment[1].strip()
                place = f"{page.relative_to(ROOT)}:{number} {name}"
                yield pytest.param(line[: comment.start()], name, id=place)


ALL_QUOTED = list(quoted_constants())
QUOTED = [found for found in ALL_QUOTED if not found.values[1].startswith(RESULT)]
QUOTED_RESULTS = [found for found in ALL_QUOTED if found.values[1].startswith(RESULT)]


def number_at_end(text):
    """The number that a text ends with, its unit taken into account."""
    found = QUOTED_NUMBER.search(text)
    assert found, f"no number before the comment: {text[-40:]!r}"
    value = float(found["digits"].replace(",", ""))
    if found["power"]:
        value **= int(found["power"].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    return value * UNITS[found["unit"]]


def value_in_code(name):
    """The value of a constant, of an entry of one, or of the default of a parameter."""
    path, key, parameter = CONSTANT.fullmatch(name).groups()
    found = resolve_name(path)
    if parameter is not None:
        return inspect.signature(found).parameters[parameter].default
    return found if key is None else found[key]


OPTIONAL = {"latentmetric.torch": "torch", "qdrant_client": "qdrant_client", "lancedb": "lancedb"}
"""What a text names, and the package that it needs and that need not be installed."""


def needs_optional(text):
    """Skip what is about packages that are not installed."""
    for name, package in OPTIONAL.items():
        if name in text:
            pytest.importorskip(package)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_code_block_runs(block, tmp_path, monkeypatch):
    needs_optional(block)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "documentation", "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(\w+)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    known, compared = {}, 0
    for (kind, block), (next_kind, shown) in pairwise([*blocks, ("", "")]):
        if kind != "python":
            continue
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, page.name, "exec"), known)
        shown = shown if next_kind == "text" else ""
        assert words(printed.getvalue()) == words(shown), block
        compared += bool(shown)
    assert compared


def words(text):
    """The words of a text; its numbers up to what other processors and versions may change."""
    number = r"\d+(?:\.\d+)?"
    found = re.findall(rf"{number}|[^\s\d]+", text)
    return [Roughly(word) if re.fullmatch(number, word) else word for word in found]


class Roughly(float):
    """A number that equals others near it."""

    def __eq__(self, other):
        return isclose(self, float(other), rel_tol=0.3, abs_tol=0.1)

    __hash__ = None


def anchors(page):
    """What links to the headings of a page are called."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_resolve(page):
    for path, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        if "://" not in path:
            target = (page.parent / path) if path else page
            assert target.exists(), path
            assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize(("before", "name"), QUOTED)
def test_quoted_constant_is_that_of_the_code(before, name):
    needs_optional(name)
    assert isclose(number_at_end(before), value_in_code(name), rel_tol=1e-12)


@pytest.mark.parametrize(("before", "name"), QUOTED_RESULTS)
def test_quoted_result_is_the_measured_one(before, name):
    file, *path = name.removeprefix(RESULT).split(" / ")
    stored = RESULTS / f"{file}.json"
    if not stored.exists():
        pytest.skip("the source archive does not hold the results")
    cell = json.loads(stored.read_text(encoding="utf-8"))["cells"]
    for key in path:
        cell = cell[key]
    digits = QUOTED_NUMBER.search(before)["digits"]
    decimals = len(digits.partition(".")[2])
    figures = cell["error"] if isinstance(cell, dict) else cell
    assert f"{np.mean(figures):.{decimals}f}" == digits


def test_constants_stay_quoted():
    assert len(QUOTED) >= FEWEST_QUOTED


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("blocks of 192", 192),
        ("up to 6,144", 6144),
        ("S/32", 32),
        ("1.7", 1.7),
        ("its 4th", 4),
        ("`0.01 %`", 1e-4),
        ("at most 8 MB", 8 * 2**20),
        ("**10¹⁴⁰**", 1e140),
        ("by 10⁻⁶", 1e-6),
    ],
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert isclose(number_at_end(text), value, rel_tol=1e-12)


@pytest.mark.slow
def test_the_commands_of_the_tutorial_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(python|sh)\n(.*?)```", text, re.DOTALL)
    exec(compile(blocks[0][1], "documentation", "exec"), {})
    lines = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]
    for line in lines:
        name, *arguments = shlex.split(line)
        done = CliRunner().invoke(app, arguments)
        assert (name, done.exit_code) == ("latentmetric", 0), done.output
    assert {shlex.split(line)[1] for line in lines} == set(COMMANDS) - {"demo"}
    written = {"digits.model", "answers.csv", "neighbors.csv", "report.html", "digits.joblib"}
    assert written <= {path.name for path in tmp_path.iterdir()}


def test_every_command_has_a_section():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert re.search(rf"^## .*\b{name}\b", page, re.MULTILINE), name


def test_every_page_is_in_the_nav_once():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL)
    entries = [line for block in blocks for line in block.splitlines() if line[:1] not in ("", ":")]
    pages = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
    written = [page.stem for page in (ROOT / "docs").glob("*.md") if page.stem != "index"]
    assert sorted(page for page in pages if "/" not in page) == sorted(written)
    assert all((ROOT / "docs" / f"{page}.md").exists() for page in pages if page[:3] == "../")
