"""Small sets for cross-validation, with raw features: four of scikit-learn, six made or cut here.

Everything has a fixed seed. ``letter 3k`` and ``banking 4k`` are samples of training rows of the
sets in data.py; the other sets need no files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from data import load_benchmark
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.model_selection import StratifiedKFold, train_test_split

N_FOLDS = 5

Labelled = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Rows and their labels."""


def load_small(name: str) -> Labelled:
    """Rows and labels of one of ``SMALL_SETS``."""
    if name not in SMALL_SETS:
        raise ValueError(f"name must be one of {list(SMALL_SETS)}, got {name!r}")
    return SMALL_SETS[name]()


def folds(name: str, y: Any) -> list[Labelled]:
    """Indices of training and test rows, stratified; always the same for a set."""
    if name not in SMALL_SETS:
        raise ValueError(f"name must be one of {list(SMALL_SETS)}, got {name!r}")
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(y)), y))


def _twenty_features() -> Labelled:
    """Classes of several clusters, which no straight line separates."""
    return make_classification(
        2000, 20, n_informative=10, n_redundant=4, n_classes=4, n_clusters_per_class=4,
        class_sep=1.5, flip_y=0.02, random_state=0,
    )  # fmt: skip


def _hundred_features() -> Labelled:
    """Most columns are noise."""
    return make_classification(
        2000, 100, n_informative=18, n_redundant=10, n_classes=3, n_clusters_per_class=2,
        class_sep=1.5, flip_y=0.02, random_state=0,
    )  # fmt: skip


def _moons() -> Labelled:
    """Two crescents in two columns; the other eight are noise of about the same scale."""
    X, y = make_moons(1500, noise=0.25, random_state=0)
    noise = np.random.default_rng(0).standard_normal((len(X), 8))
    return np.hstack([X, noise]), y


def _nuisance() -> Labelled:
    """Three classes far apart in four columns; three more columns have a thousand times the scale.

    Raw distances only see the large columns; after standardising, all columns count alike.
    """
    generator = np.random.default_rng(0)
    y = np.arange(1200) % 3
    centres = 8 * generator.standard_normal((3, 4))
    informative = centres[y] + generator.standard_normal((len(y), 4))
    return np.hstack([informative, 1000 * generator.standard_normal((len(y), 3))]), y


def _sample(name: str, n_rows: int) -> Labelled:
    """Training rows of a published set, with classes in proportion."""
    split = load_benchmark(name)
    X, _, y, _ = train_test_split(
        split.X_train, split.y_train, train_size=n_rows, stratify=split.y_train, random_state=0
    )
    return X, y


SMALL_SETS: dict[str, Callable[[], Labelled]] = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "20 features": _twenty_features,
    "100 features": _hundred_features,
    "moons": _moons,
    "nuisance": _nuisance,
    "letter 3k": lambda: _sample("letter", 3000),
    "banking 4k": lambda: _sample("banking77", 4000),
}
"""The small sets by name."""
