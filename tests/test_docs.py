"""The code in the documents runs."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latentmetric.cli.main import COMMANDS, application

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
BLOCKS = [
    pytest.param(block, id=f"{page.name} {number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_code_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "documentation", "exec"), {})


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_links_to_files_are_not_broken(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_commands_of_the_tutorial_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```(python|sh)\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), re.DOTALL
    )
    exec(compile(blocks[0][1], "documentation", "exec"), {})
    lines = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]
    for line in lines:
        name, *arguments = shlex.split(line)
        done = CliRunner().invoke(application(), arguments)
        assert (name, done.exit_code) == ("latentmetric", 0), done.output
    assert {shlex.split(line)[1] for line in lines} == set(COMMANDS) - {"demo"}
    made = {"digits.model", "answers.csv", "neighbors.csv", "report.html", "digits.joblib"}
    assert made <= {path.name for path in tmp_path.iterdir()}


def test_every_command_has_a_section():
    page = (ROOT / "docs" / "commands.md").read_text()
    for name in COMMANDS:
        assert re.search(rf"^## .*\b{name}\b", page, re.MULTILINE), name


def test_the_api_reference_is_up_to_date():
    made = runpy.run_path(str(ROOT / "docs" / "make_api.py"))["page"]()
    assert (ROOT / "docs" / "api.md").read_text() == made, "run python docs/make_api.py"
