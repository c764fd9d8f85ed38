"""The public names, and the declared dependencies."""

import ast
import runpy
import sys
from pathlib import Path

import pytest

import latentmetric

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "oldest_versions.py"))
DISTRIBUTIONS = {"PIL": "pillow", "faiss": "faiss-cpu", "sklearn": "scikit-learn"}
"""Modules whose package has another name."""


def test_every_public_name_exists():
    for name in latentmetric.__all__:
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
    assert {"numpy", "dask"} <= set(declared)
    assert {DISTRIBUTIONS.get(name, name) for name in outside} <= set(declared)


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
