"""The data sets of the benchmarks: .npz files in a folder, or a download from OpenML.

The folder is ``--data`` of a script that has it, else the environment variable LATENTMETRIC_DATA.
MNIST and letter need no folder: scikit-learn downloads them once and keeps them in its cache.
benchmarks/README.md says how to make the other files.
"""

from __future__ import annotations

import os
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile

from latentmetric.core.types import Floats

FOLDER_VARIABLE = "LATENTMETRIC_DATA"

HOW_TO_NAME_THE_FOLDER = (
    f"name its folder with --data of reproduce.py or the environment variable {FOLDER_VARIABLE}; "
    "benchmarks/README.md says how to get the file"
)

Arrays = tuple[Any, Any, Any, Any]
"""X_train, y_train, X_test, y_test."""

DOWNLOAD_ERRORS = (OSError, HTTPException, ValueError, EOFError, zlib.error)
"""No connection, a broken connection, a refusal by OpenML, a damaged cache."""

Reader = Callable[[Any], Arrays]
"""Takes the arrays of an .npz file by their names."""


@dataclass(frozen=True)
class Split:
    """Rows in float32 and their labels, divided into training and test as published."""

    name: str
    X_train: Floats
    y_train: np.ndarray[Any, Any]
    X_test: Floats
    y_test: np.ndarray[Any, Any]


@dataclass(frozen=True)
class OpenML:
    """A data set on openml.org whose first rows are the training rows."""

    name: str
    n_train: int
    n_rows: int
    n_features: int
    divisor: float = 1.0
    """Features are divided by this number."""


@dataclass(frozen=True)
class Benchmark:
    """Where a data set comes from."""

    file: str
    read: Reader
    openml: OpenML | None = None


def load_benchmark(name: str, folder: str | Path | None = None) -> Split:
    """Read one of ``BENCHMARK_SETS``.

    Parameters
    ----------
    name : str
        "mnist", "cifar10", "cifar100", "imagenet200", "banking77", "clinc150" or "letter".
    folder : path, default=None
        Where the files are; None takes the environment variable LATENTMETRIC_DATA. MNIST and
        letter are downloaded from OpenML if there is no folder, or no file of theirs in it.

    Returns
    -------
    Split
    """
    if name not in BENCHMARK_SETS:
        raise ValueError(f"name must be one of {sorted(BENCHMARK_SETS)}, got {name!r}")
    benchmark = BENCHMARK_SETS[name]
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if folder and not Path(folder).is_dir():
        raise FileNotFoundError(f"the folder of data {folder} does not exist")
    path = Path(folder) / benchmark.file if folder else None
    if path and path.is_file():
        return _read(name, path, benchmark.read)
    if benchmark.openml:
        return _from_openml(name, benchmark.openml)
    missing = f"{path} does not exist" if path else f"{benchmark.file} is needed"
    raise FileNotFoundError(f"{name}: {missing}; {HOW_TO_NAME_THE_FOLDER}")


def load_noisy_mnist(noise: int = 250, folder: str | Path | None = None) -> Split:
    """MNIST with noise on the training images; the test images have none.

    Parameters
    ----------
    noise : int, default=250
        Standard deviation of the noise, out of 255.
    folder : path, default=None
        See ``load_benchmark``.

    Returns
    -------
    Split
    """
    split = load_benchmark("mnist", folder)
    return replace(split, X_train=with_noise(split.X_train, noise))


def with_noise(X: Floats, noise: int, seed: int = 0) -> Floats:
    """Rows plus normal noise of the standard deviation ``noise`` / 255, always the same."""
    normal = np.random.default_rng(seed).standard_normal(X.shape, dtype=np.float32)
    noisy: Floats = X + np.float32(noise / 255) * normal
    return noisy


def load_split(name: str, path: str | Path) -> Split:
    """Read any .npz that holds x_train, y_train, x_test and y_test.

    Rows are multiplied by the array ``scale`` if there is one.

    Parameters
    ----------
    name : str
        Name of the split.
    path : path

    Returns
    -------
    Split
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{name} is read from {path}, which does not exist")
    return _read(name, Path(path), _features)


def _read(name: str, path: Path, read: Reader) -> Split:
    try:
        # The file is opened here because NumPy leaves a damaged one open.
        with path.open("rb") as file:
            arrays = np.load(file, allow_pickle=False)
            if not isinstance(arrays, NpzFile):
                raise ValueError("it is a single array")
            try:
                return Split(name, *read(arrays))
            except KeyError as error:
                raise ValueError(f"it holds {sorted(arrays)}: {error.args[0]}") from error
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{name} cannot be read from {path}: {error}") from error


@lru_cache(maxsize=1)
def _from_openml(name: str, source: OpenML) -> Split:
    """From scikit-learn's cache, which a first call fills; parsing it takes seconds."""
    from sklearn.datasets import fetch_openml

    print(f"{name}: from OpenML ({source.name}), or the cache of scikit-learn", file=sys.stderr)
    try:
        with warnings.catch_warnings():
            # Each retry warns; the error of the last one says the same.
            warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
            found = fetch_openml(source.name, version=1, as_frame=False, parser="auto")
    except ImportError as error:
        message = f"{name}: a download from OpenML needs pandas: pip install pandas"
        raise ImportError(message) from error
    except DOWNLOAD_ERRORS as error:
        raise ConnectionError(
            f"{name} could not be downloaded from OpenML ({error}): try again later, or, if you "
            f"have {BENCHMARK_SETS[name].file}, {HOW_TO_NAME_THE_FOLDER}"
        ) from error
    X, expected = found.data, (source.n_rows, source.n_features)
    if X.shape != expected:
        raise ValueError(f"{name} from OpenML has the shape {X.shape}, expected {expected}")
    X = np.asarray(X, dtype=np.float32) / np.float32(source.divisor)
    y = np.unique(found.target, return_inverse=True)[1]
    n = source.n_train
    return Split(name, X[:n], y[:n], X[n:], y[n:])


def _parts(arrays: Any, as_rows: Callable[[Any], Floats]) -> Arrays:
    return (
        as_rows(arrays["x_train"]),
        arrays["y_train"],
        as_rows(arrays["x_test"]),
        arrays["y_test"],
    )


def _pixels(arrays: Any) -> Arrays:
    return _parts(arrays, lambda x: x.reshape(len(x), -1).astype(np.float32) / 255)


def _features(arrays: Any) -> Arrays:
    """Rows as they are, or small integers with a scale for each column."""
    if "scale" not in arrays:
        return _parts(arrays, lambda x: x.astype(np.float32))
    scale = arrays["scale"].astype(np.float32)
    return _parts(arrays, lambda x: x * scale)


def _letter(arrays: Any) -> Arrays:
    X, y, n_train = arrays["x"].astype(np.float32), arrays["y"], int(arrays["n_train"])
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


BENCHMARK_SETS: dict[str, Benchmark] = {
    "mnist": Benchmark("mnist.npz", _pixels, OpenML("mnist_784", 60_000, 70_000, 784, divisor=255)),
    "cifar10": Benchmark("cifar10_features.npz", _features),
    "cifar100": Benchmark("cifar100_features.npz", _features),
    "imagenet200": Benchmark("imagenet200_features.npz", _features),
    "clinc150": Benchmark("clinc150_embeddings.npz", _features),
    "banking77": Benchmark("banking77_embeddings.npz", _features),
    "letter": Benchmark("letter.npz", _letter, OpenML("letter", 16_000, 20_000, 16)),
}
"""The data sets by name."""
