"""What to install for an optional part of the package; imports nothing of it."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

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
    chosen = [name for name in names if package in ("", name)]
    return " ".join(["pip install", *(f'"{name}"' if "[" in name else name for name in chosen)])
