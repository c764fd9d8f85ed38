"""Virtual environments of the methods whose requirements clash with ours."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from side_by_side.plan import MAIN

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("BLIS", "MKL", "NUMEXPR", "OMP", "OPENBLAS", "VECLIB_MAXIMUM")
} | {"LOKY_MAX_CPU_COUNT": "1"}


def make(folder: Path, environments: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """Create what is missing in the folder: what is installed into each environment, in steps."""
    for name, steps in environments.items():
        if (folder / name).exists():
            print(f"{folder / name} exists")
            continue
        print(f"{folder / name}: {'; '.join(' '.join(step) for step in steps)}")
        venv.create(folder / name, with_pip=True)
        for step in steps:
            command = [python_of(name, folder), "-m", "pip", "install", "--quiet", *step]
            subprocess.run(command, check=True)  # nosec B603


def python_of(name: str, folder: Path | None) -> str:
    """The interpreter of an environment."""
    if name == MAIN:
        return sys.executable
    path = (folder or Path()) / name / "bin" / "python"
    if folder is None or not path.exists():
        raise FileNotFoundError(f"{path} does not exist; make it with --make-environments FOLDER")
    return str(path)


def variables(name: str) -> dict[str, str]:
    """One thread; other environments must not see our modules."""
    kept = {key: value for key, value in os.environ.items() if name == MAIN or key != "PYTHONPATH"}
    return kept | ONE_THREAD
