"""Print the oldest version that pyproject.toml allows of each dependency, as pip constraints.

``python tools/oldest_versions.py > oldest.txt && pip install -c oldest.txt -e ".[test]"`` makes
the environment that ``make test-oldest`` runs in.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[\w,.-]+\])?(>=(?P<floor>[\w.]+))?(,?[!<][^;]*)?")


def requirements(project: Path) -> list[str]:
    """What the package and its extras ask for, without the package itself."""
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = declared["optional-dependencies"].values()
    asked = [*declared["dependencies"], *(line for extra in extras for line in extra)]
    return [line for line in asked if not line.startswith(f"{declared['name']}[")]


def oldest(requirements: list[str]) -> dict[str, str]:
    """The floor of each name; a line that has none, or two floors for a name, is an error."""
    floors: dict[str, str] = {}
    for line in requirements:
        found = REQUIREMENT.fullmatch(line.replace(" ", ""))
        if found is None or found["floor"] is None:
            raise ValueError(f"{line!r} has no oldest version: write it as name>=version")
        name, floor = found["name"], found["floor"]
        if floors.setdefault(name, floor) != floor:
            raise ValueError(f"{name} has two oldest versions, {floors[name]} and {floor}")
    return floors


if __name__ == "__main__":
    for name, floor in sorted(oldest(requirements(PROJECT)).items()):
        sys.stdout.write(f"{name}=={floor}\n")
