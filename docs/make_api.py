"""Write docs/api.md, the list of public names, from the package itself: python docs/make_api.py."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import latentmetric

ROOT = Path(__file__).parent.parent
HEAD = """# Reference

The public names, by the module to import them from. Each has its parameters, attributes and an
example in its docstring: `help(latentmetric.MaPML)`. All estimators have the methods that are
listed with MaPML. Made by `python docs/make_api.py`."""
ALSO = {
    "latentmetric.comparison": ("METHODS", "Outcome", "compare"),
}
"""Public names of modules without ``__all__``."""


def page() -> str:
    """The whole page."""
    names = {"latentmetric": tuple(latentmetric.__all__)}
    for found in iter_modules(latentmetric.__path__, "latentmetric."):
        listed = getattr(import_module(found.name), "__all__", ()) if found.ispkg else ()
        if listed:
            names[found.name] = tuple(listed)
    parts = [HEAD]
    for module, listed in sorted((names | ALSO).items()):
        parts.append(f"\n## {module}\n")
        parts += [_line(module, name) for name in listed if not name.startswith("_")]
    return "\n".join(parts) + "\n"


def _line(module: str, name: str) -> str:
    value = getattr(import_module(module), name)
    if not callable(value):
        return f"- `{name}`"
    summary = _summary(value)
    call = f"{name}{_parameters(value)}"
    source = Path(inspect.getfile(value)).relative_to(Path(latentmetric.__file__).parent)
    lines = [f"- [`{call}`](../src/latentmetric/{source.as_posix()}): {summary}"]
    for method in _methods(value):
        called = getattr(value, method)
        lines.append(f"  - `{method}{_parameters(called)}`: {_summary(called)}")
    return "\n".join(lines)


def _summary(value: Any) -> str:
    return (inspect.getdoc(value) or "").splitlines()[0].replace("``", "`")


def _parameters(value: Any) -> str:
    """The names of parameters; defaults are in the docstring."""
    if inspect.isclass(value) and issubclass(value, Exception):
        return ""
    names = [
        name
        for name in inspect.signature(value).parameters
        if name.strip("_") == name and name != "self"
    ]
    return f"({', '.join(names)})"


def _methods(value: Any) -> list[str]:
    """What users call on an estimator, in alphabetical order; it is the same for all."""
    if value is not latentmetric.MaPML:
        return []
    own = [
        name
        for kind in value.__mro__
        if kind.__module__.startswith("latentmetric")
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith(("_", "check_"))
    ]
    return sorted(set(own))


if __name__ == "__main__":
    (ROOT / "docs" / "api.md").write_text(page())
