"""The rows of a cell: nested samples with classes in proportion, handed over as .npy files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from data import Split, load_benchmark
from side_by_side.plan import SETS
from sklearn.decomposition import PCA


def nested_order(codes: np.ndarray, seed: int = 0) -> np.ndarray:
    """An order of the rows whose every beginning has the classes in proportion.

    The rows of a class are shuffled and spread evenly over the interval from 0 to 1; the order
    is that of the positions.
    """
    generator = np.random.default_rng(seed)
    position = np.empty(len(codes))
    for code in np.unique(codes):
        own = generator.permutation(np.flatnonzero(codes == code))
        position[own] = (np.arange(len(own)) + generator.random()) / len(own)
    return np.argsort(position, kind="stable")


@lru_cache(maxsize=1)
def ordered(benchmark: str) -> Split:
    """A benchmark whose labels are codes and whose training rows are in nested order."""
    split = load_benchmark(benchmark)
    classes, codes = np.unique(split.y_train, return_inverse=True)
    order = nested_order(codes)
    truth = np.searchsorted(classes, split.y_test)
    return Split(split.name, split.X_train[order], codes[order], split.X_test, truth)


def n_rows(name: str) -> int:
    return len(ordered(SETS[name].benchmark).X_train)


def save(name: str, size: int, folder: Path) -> None:
    """Write the rows of a cell; principal components are those of its training rows."""
    split = ordered(SETS[name].benchmark)
    X, queries = split.X_train[:size], split.X_test
    if SETS[name].n_components:
        pca = PCA(SETS[name].n_components, svd_solver="covariance_eigh").fit(X)
        X, queries = pca.transform(X), pca.transform(queries)
    arrays = {"X_train": X, "y_train": split.y_train[:size], "X_test": queries}
    for array, values in {**arrays, "y_test": split.y_test}.items():
        dtype = np.float32 if array.startswith("X") else np.int64
        np.save(folder / f"{array}.npy", np.ascontiguousarray(values, dtype=dtype))
