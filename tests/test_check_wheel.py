"""The tool that tries the wheel: which Pythons it takes, and what it refuses."""

import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "check_wheel.py"))


def test_the_oldest_declared_version_is_the_required_one():
    declared = TOOL["declared_versions"](ROOT / "pyproject.toml")
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert required["project"]["requires-python"] == f">={declared[0]}"
    minors = [TOOL["minor"](version) for version in declared]
    assert minors == list(range(minors[0], minors[-1] + 1))


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
