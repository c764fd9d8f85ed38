"""The reference lists every public name, and every name describes its parameters and results."""

import ast
import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules

import latentmetric
from latentmetric.registry import ESTIMATORS

PAGE = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")


def public_names():
    """Every public name with its module: of the package, and of those parts that list theirs."""
    modules = {"latentmetric": latentmetric.__all__}
    for found in iter_modules(latentmetric.__path__, "latentmetric."):
        if found.name == "latentmetric.torch" and find_spec("torch") is None:
            continue
        listed = getattr(import_module(found.name), "__all__", ()) if found.ispkg else ()
        modules |= {found.name: listed} if listed else {}
    for module, names in modules.items():
        yield from ((module, name) for name in names if not name.startswith("_"))


def callables():
    """Every public function, class, and method that a class of this package defines."""
    for module, name in public_names():
        value = getattr(import_module(module), name)
        if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
            continue
        yield f"{module}.{name}", value
        for method, member in inspect.getmembers(value) if inspect.isclass(value) else ():
            home = getattr(member, "__module__", None) or ""
            if (
                inspect.isroutine(member)
                and home.startswith("latentmetric")
                and not method.startswith(("_", "check_"))
            ):
                yield f"{module}.{name}.{method}", member


def entries(text, section):
    """The names that a section of a docstring lists, and whether text follows each of them."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n\w[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.M)
    lines = found[1].splitlines() if found else []
    return {
        name.strip(" *"): following.startswith(" ")
        for line, following in pairwise([*lines, ""])
        if re.match(r"\S", line)
        for name in line.split(" : ")[0].split(",")
    }


def described(value):
    """The names that a docstring describes, or for a class the text below a field."""
    text = inspect.getdoc(value) or ""
    names = {name for name, has_text in entries(text, "Parameters").items() if has_text}
    if inspect.isclass(value):
        body = ast.parse(inspect.getsource(value)).body[0].body
        names |= {name for name, has_text in entries(text, "Attributes").items() if has_text}
        names |= {
            field.target.id
            for field, following in pairwise(body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(getattr(following, "value", None), ast.Constant)
        }
    return names


def parameters(value):
    """The names that a caller may pass."""
    names = inspect.signature(value).parameters
    return {name for name in names if not name.startswith("_") and name not in ("self", "cls")}


def test_every_public_name_is_on_the_page():
    missing = [
        f"{module}.{name}"
        for module, name in public_names()
        if not re.search(rf"{re.escape(module)}\.{name}\b", PAGE)
    ]
    assert missing == []


def test_every_parameter_is_described():
    for name, value in callables():
        assert inspect.getdoc(value), f"{name} has no docstring"
        assert parameters(value) - described(value) == set(), name


def test_every_fitted_attribute_is_described():
    for name in ESTIMATORS:
        listed = entries(inspect.getdoc(getattr(latentmetric, name)), "Attributes")
        assert [attribute for attribute, has_text in listed.items() if not has_text] == []
        assert {"classes_", "history_", "n_features_in_"} <= set(listed)
