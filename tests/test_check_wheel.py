"""The tool that tries the wheel: which Pythons it takes, and what it refuses."""

import runpy
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "check_wheel.py"))
OWN = f"3.{sys.version_info.minor}"


def test_the_oldest_declared_version_is_the_required_one():
    declared = TOOL["declared_versions"](ROOT / "pyproject.toml")
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert required["project"]["requires-python"] == f">={declared[0]}"
    minors = [TOOL["minor"](version) for version in declared]
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_an_interpreter_must_be_of_its_version(tmp_path, monkeypatch):
    assert TOOL["interpreter"](OWN) == sys.executable
    assert TOOL["interpreter"]("3.1") is None
    monkeypatch.setattr("shutil.which", lambda name: sys.executable)
    assert TOOL["interpreter"]("3.2") is None, "it says another version"


def test_a_command_that_fails_ends_the_check(tmp_path):
    told = TOOL["run"](sys.executable, "-c", "print('well')", folder=tmp_path)
    assert told == "well\n"
    with pytest.raises(SystemExit, match=r"ended with 3:\nbadly"):
        TOOL["run"](sys.executable, "-c", "print('badly'); exit(3)", folder=tmp_path)


def test_the_oldest_and_the_newest_are_tried_and_missing_ones_named(tmp_path, monkeypatch, capsys):
    tried = []
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "made.whl").touch()
    installed = {"3.11": "eleven", "3.12": "twelve", "3.13": "thirteen"}
    names = {
        "ROOT": tmp_path,
        "declared_versions": lambda project: ["3.11", "3.12", "3.13", "3.14"],
        "interpreter": installed.get,
        "check": lambda python, wheel, folder: tried.append(python),
    }
    for name, value in names.items():
        monkeypatch.setitem(TOOL["main"].__globals__, name, value)
    TOOL["main"]()
    assert tried == ["eleven", "thirteen"]
    assert "not installed here, so not tried: Python 3.14" in capsys.readouterr().out
    installed.clear()
    with pytest.raises(SystemExit, match=r"no Python of 3\.11, .* is installed"):
        TOOL["main"]()
