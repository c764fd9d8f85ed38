"""Which packages the core may import, and which names are private to a part of the library."""

import ast
import sys
from pathlib import Path

import latentmetric
from latentmetric import registry

SOURCE = Path(latentmetric.__file__).parent
CORE_IMPORTS = {"numpy", "scipy", "threadpoolctl", "latentmetric", *sys.stdlib_module_names}
OF_THE_LIBRARY = {"_check_against", "_learns", "_parameter_rules", "_voting"}
"""What estimators offer to the other packages, but not to users."""


def imported(path):
    """The packages that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def test_the_core_imports_only_numpy_scipy_and_threadpoolctl():
    for path in (SOURCE / "core").glob("*.py"):
        assert set(imported(path)) <= CORE_IMPORTS, path


def test_private_names_are_used_only_in_their_own_package():
    """Neither private modules and names of another package, nor private attributes of models."""
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("latentmetric"):
                hidden = [part for part in node.module.split(".") if part.startswith("_")]
                hidden += [name.name for name in node.names if name.name.startswith("_")]
                hidden = [name for name in hidden if not name.startswith("__")]
                assert not hidden or node.module.split(".")[1] == package, (path, hidden)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                reaches = node.attr.startswith("_") and not node.attr.startswith("__")
                reaches = reaches and node.attr not in OF_THE_LIBRARY
                if reaches and node.value.id in ("model", "fitted", "estimator"):
                    assert package == "estimators", (path, node.attr)


def test_the_registry_lists_every_estimator():
    from latentmetric.estimators.base import ReferenceClassifier

    for name in registry.ESTIMATORS:
        assert registry.estimator_class(name) is getattr(latentmetric, name)

    def below(kind):
        return {kind.__name__}.union(*map(below, kind.__subclasses__()))

    assert below(ReferenceClassifier) >= set(registry.ESTIMATORS)
    typed = Path(registry.__file__).read_text(encoding="utf-8")
    assert all(f"import {name} as {name}" in typed for name in registry.ESTIMATORS)


def test_every_vote_is_documented():
    from latentmetric.core.votes import VOTES

    described = latentmetric.MaPML.__doc__.split("weights :")[1].split("index :")[0]
    assert all(f'"{name}"' in described for name in VOTES)
