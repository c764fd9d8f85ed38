"""What messages say to install."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import latentmetric
from latentmetric import extras
from latentmetric.extras import pip_install

SOURCE = Path(latentmetric.__file__).parent
PROJECT = SOURCE.parents[1] / "pyproject.toml"


def declared(extra):
    """The packages of an extra in pyproject.toml, with those of the extras that it names."""
    for line in tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"][extra]:
        if own := re.fullmatch(r"latentmetric\[(.+)\]", line):
            yield from (name for part in own[1].split(",") for name in declared(part))
        else:
            yield re.split("[>=<]", line)[0]


def test_messages_name_packages_which_any_index_has():
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert "pip install 'latentmetric[" not in text
    assert 'pip install "latentmetric[' not in text
    used = set(re.findall(r"pip_install\('(\w+)'\)", text)) | set(
        re.findall(r'import_optional\("[\w.]+", "(\w+)"', text)
    )
    assert used == {"cli", "dask", "demo", "faiss", "files", "onnx", "plot", "torch"}
    for extra in used:
        command, install, *names = pip_install(extra).split()
        assert (command, install) == ("pip", "install")
        assert sorted(name.strip('"') for name in names) == sorted(declared(extra))
    assert pip_install("dask").startswith('pip install "dask[array]"')  # brackets mean files in zsh
    assert pip_install("cli", "pyarrow") == "pip install pyarrow"


def test_other_ways_to_write_and_to_have_no_metadata(monkeypatch):
    lines = [
        "numpy>=1.26",
        'h5py (>=3) ; python_version > "3" and extra == "files"',
        "zarr;extra == 'files'",
    ]
    monkeypatch.setattr(extras, "requires", lambda name: lines)
    assert pip_install("files") == "pip install h5py zarr"

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "requires", missing)
    assert pip_install("files").startswith('pip install ".[files]" in the folder')
