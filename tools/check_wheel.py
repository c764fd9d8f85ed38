"""Install the wheel of dist/ into new environments and use it, with each Python that is declared.

``python tools/check_wheel.py`` runs after ``python -m build``. The versions of Python are those of
the classifiers in pyproject.toml; the oldest and the newest of them that are installed here are
tried, first without extras, then with the commands. Versions that are not installed are named.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")

WITHOUT_EXTRAS = """
from pathlib import Path
from sklearn.datasets import load_iris
import latentmetric
assert "site-packages" in latentmetric.__file__, latentmetric.__file__
assert (Path(latentmetric.__file__).parent / "py.typed").exists()
X, y = load_iris(return_X_y=True)
model = latentmetric.MaPML(random_state=0).fit(X, y)
latentmetric.save(model, "iris.model")
assert (latentmetric.load("iris.model").predict(X) == model.predict(X)).all()
assert model.score(X, y) > 0.9
"""
TABLE = """
import numpy as np
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
np.savetxt("iris.csv", np.c_[X, y], "%g", ",", header="a,b,c,d,label", comments="")
"""
COMMANDS = (
    "--version",
    "compare iris.csv --methods euclid,mapml --folds 2",
    "fit iris.csv -o iris.model",
    "report iris.model iris.csv -o report.html",
)


def declared_versions(project: Path) -> list[str]:
    """The versions of Python among the classifiers, the oldest first."""
    listed = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["classifiers"]
    found = [match[1] for line in listed if (match := CLASSIFIER.fullmatch(line))]
    return sorted(found, key=minor)


def minor(version: str) -> int:
    """The 11 of 3.11."""
    return int(version.split(".")[1])


def interpreter(version: str) -> str | None:
    """The path of a Python of this version that works; None if there is none."""
    own = ".".join(map(str, sys.version_info[:2]))
    path = sys.executable if version == own else shutil.which(f"python{version}")
    if path is None:
        return None
    asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(asked, capture_output=True, text=True)  # nosec B603
    return path if done.stdout.strip() == version else None


def run(*command: str, folder: Path, expect: int = 0) -> str:
    """Run a command in a folder; what it printed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)  # nosec B603
    if done.returncode != expect:
        printed = f"{done.stdout}{done.stderr}"
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{printed}")
    return done.stdout + done.stderr


def check(python: str, wheel: Path, folder: Path) -> None:
    """Install the wheel without extras and use it; then with the commands."""
    run(python, "-m", "venv", "clean", folder=folder)
    scripts = folder / "clean" / ("Scripts" if sys.platform == "win32" else "bin")
    own, command = str(scripts / "python"), str(scripts / "latentmetric")
    run(own, "-m", "pip", "install", "--quiet", str(wheel), folder=folder)
    run(own, "-c", WITHOUT_EXTRAS, folder=folder)
    told = run(command, folder=folder, expect=1)
    if "pip install 'latentmetric[cli]'" not in told:
        raise SystemExit(f"latentmetric without its extra does not name it: {told}")
    run(own, "-m", "pip", "install", "--quiet", f"{wheel}[cli]", folder=folder)
    run(own, "-c", TABLE, folder=folder)
    for arguments in COMMANDS:
        run(command, *arguments.split(), folder=folder)


def main() -> None:
    """Check the wheel with the oldest and the newest Python that are declared and installed."""
    wheels = list((ROOT / "dist").glob("*.whl"))
    if len(wheels) != 1:
        raise SystemExit(f"dist/ holds {len(wheels)} wheels instead of one: run make dist")
    declared = declared_versions(ROOT / "pyproject.toml")
    installed = {version: path for version in declared if (path := interpreter(version))}
    missing = [version for version in declared if version not in installed]
    if missing:
        say(f"not installed here, so not tried: Python {', '.join(missing)}")
    if not installed:
        raise SystemExit(f"no Python of {', '.join(declared)} is installed")
    for version in dict.fromkeys((min(installed, key=minor), max(installed, key=minor))):
        say(f"Python {version}: install {wheels[0].name} into a new environment and use it")
        with tempfile.TemporaryDirectory() as folder:
            check(installed[version], wheels[0], Path(folder))
        say(f"Python {version}: it works")


def say(line: str) -> None:
    """A line at once, also into a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
