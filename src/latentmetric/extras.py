"""What to install for an optional part of the package; imports nothing of it."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

REQUIREMENT = re.compile(r"([\w.-]+(?:\[[\w,-]+\])?).*\bextra == ['\"]([\w-]+)['\"]")
"""Name and extra of a requirement as metadata write it: ``onnx>=1.16; extra == 'onnx'``."""


def pip_install(extra: str, package: str = "") -> str:
    """The command that installs what an extra needs, or one package of it.

    It names packages, not the extra: ``pip install latentmetric[extra]`` would look for this
    package on an index, where a version installed from a clone need not be.
    """
    try:
        found = [REQUIREMENT.match(line) for line in requires("latentmetric") or ()]
    except PackageNotFoundError:
        return f'pip install ".[{extra}]" in the folder of pyproject.toml'
    names = [name[1] for name in found if name and name[2] == extra]
    chosen = [name for name in names if package == name] or names
    return " ".join(["pip install", *(f'"{name}"' if "[" in name else name for name in chosen)])


def import_optional(module: str, extra: str, what: str) -> Any:
    """An optional module, imported; its absence says what needs it and what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        raise ImportError(f"{what} needs {library}: {pip_install(extra, library)}") from error
