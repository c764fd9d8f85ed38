"""The data sets of the benchmarks, read from a folder of .npz files.

The folder is named by the environment variable LATENTMETRIC_DATA; nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.core.types import Floats

FOLDER_VARIABLE = "LATENTMETRIC_DATA"


@dataclass(frozen=True)
class Split:
    """Rows in float32 and their labels, as their publishers divide them."""

    name: str
    X_train: Floats
    y_train: np.ndarray[Any, Any]
    X_test: Floats
    y_test: np.ndarray[Any, Any]


def load_benchmark(name: str, folder: str | Path | None = None) -> Split:
    """Read one of ``BENCHMARK_SETS``.

    Parameters
    ----------
    name : str
        "mnist", "cifar10", "cifar100", "banking77", "clinc150" or "letter".
    folder : path, default=None
        Where the files are; None takes the environment variable LATENTMETRIC_DATA.

    Returns
    -------
    Split
    """
    if name not in BENCHMARK_SETS:
        raise ValueError(f"name must be one of {sorted(BENCHMARK_SETS)}, got {name!r}")
    if folder is None:
        folder = os.environ.get(FOLDER_VARIABLE)
    if folder is None:
        raise FileNotFoundError(
            f"the environment variable {FOLDER_VARIABLE} must name the folder that holds the "
            "benchmark data, or pass folder="
        )
    file, read = BENCHMARK_SETS[name]
    return _read(name, Path(folder) / file, read)


def load_split(name: str, path: str | Path) -> Split:
    """Read any .npz that holds x_train, y_train, x_test and y_test.

    Parameters
    ----------
    name : str
        What the split is called.
    path : path

    Returns
    -------
    Split
    """
    return _read(name, Path(path), _embeddings)


def _read(name: str, path: Path, read: Reader) -> Split:
    if not path.is_file():
        raise FileNotFoundError(f"{name} is read from {path}, which does not exist")
    with np.load(path, allow_pickle=False) as arrays:
        try:
            X_train, y_train, X_test, y_test = read(arrays)
        except KeyError as error:
            raise ValueError(
                f"{name} is read from {path}, which holds {sorted(arrays)}: {error.args[0]}"
            ) from error
    return Split(name, X_train, y_train, X_test, y_test)


Reader = Callable[[Any], tuple[Any, Any, Any, Any]]


def _parts(arrays: Any, as_rows: Callable[[Any], Floats]) -> tuple[Any, Any, Any, Any]:
    return (
        as_rows(arrays["x_train"]),
        arrays["y_train"],
        as_rows(arrays["x_test"]),
        arrays["y_test"],
    )


def _pixels(arrays: Any) -> tuple[Any, Any, Any, Any]:
    return _parts(arrays, lambda x: x.reshape(len(x), -1).astype(np.float32) / 255)


def _scaled_features(arrays: Any) -> tuple[Any, Any, Any, Any]:
    scale = arrays["scale"].astype(np.float32)
    return _parts(arrays, lambda x: x * scale)


def _embeddings(arrays: Any) -> tuple[Any, Any, Any, Any]:
    return _parts(arrays, lambda x: x.astype(np.float32))


def _letter(arrays: Any) -> tuple[Any, Any, Any, Any]:
    X, y, n_train = arrays["x"].astype(np.float32), arrays["y"], int(arrays["n_train"])
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


BENCHMARK_SETS: dict[str, tuple[str, Reader]] = {
    "mnist": ("mnist.npz", _pixels),
    "cifar10": ("cifar10_features.npz", _scaled_features),
    "cifar100": ("cifar100_features.npz", _scaled_features),
    "clinc150": ("clinc150_embeddings.npz", _embeddings),
    "banking77": ("banking77_embeddings.npz", _embeddings),
    "letter": ("letter.npz", _letter),
}
"""Name to file and reader."""
