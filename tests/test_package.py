"""The public names, and the declared dependencies."""

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import latentmetric

ROOT = Path(__file__).parent.parent
OLDEST = ROOT / "tools" / "oldest_versions.py"
TOOL = runpy.run_path(str(OLDEST))
DISTRIBUTIONS = {"PIL": "pillow", "faiss": "faiss-cpu", "sklearn": "scikit-learn"}
"""Modules whose package has another name."""


@pytest.mark.parametrize("name", latentmetric.__all__)
def test_every_public_name_exists(name):
    assert getattr(latentmetric, name) is getattr(latentmetric, name)
    assert name in dir(latentmetric)


def test_subpackages_exist_and_unknown_names_do_not():
    assert latentmetric.io.open_rows is not None
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = latentmetric.magic


def imported(path):
    """The packages that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def test_every_import_is_of_a_declared_dependency():
    files = sorted((ROOT / "src").rglob("*.py"))
    found = {name for path in files for name in imported(path)}
    outside = found - sys.stdlib_module_names - {"latentmetric"}
    declared = TOOL["oldest"](TOOL["requirements"](ROOT / "pyproject.toml"))
    assert len(outside) > 5
    assert {DISTRIBUTIONS.get(name, name) for name in outside} <= set(declared)


def test_oldest_versions_are_printed_as_constraints():
    done = subprocess.run(
        [sys.executable, str(OLDEST)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert any(line.startswith("numpy==") for line in done)
    assert any(line.startswith("dask==") for line in done), "without its extra"
    assert not any(line.startswith("latentmetric") for line in done)


def test_oldest_versions_of_requirements():
    oldest = TOOL["oldest"]
    assert oldest(["a>=1.2", "b[c,d] >= 2024.8", "e-f>=3,<4", "a>=1.2"]) == {
        "a": "1.2", "b": "2024.8", "e-f": "3",
    }  # fmt: skip
    for line in ("a", "a<2", "a==1"):
        with pytest.raises(ValueError, match="has no oldest version: write it as name>=version"):
            oldest([line])
    with pytest.raises(ValueError, match=r"a has two oldest versions, 1 and 2"):
        oldest(["a>=1", "a>=2"])
