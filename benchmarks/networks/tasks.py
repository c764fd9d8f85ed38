"""The questions of deep.py: rows to learn from, rows to choose parameters on, rows to be scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from data import load_benchmark, with_noise

HELD_BACK = 0.2
"""Share of the training rows, or of the classes, that parameters are chosen on."""
MNIST_ROWS = 10_000
NOISE = 150
"""Standard deviation of the noise of training images, in 255ths."""
WRONG_LABELS = 0.2
SEEN_DIGITS = 6
CHOSEN_DIGITS = 4


@dataclass(frozen=True)
class Rows:
    """Rows to learn from and rows to be scored; labels to learn from are codes from 0 on."""

    X: np.ndarray
    y: np.ndarray
    X_scored: np.ndarray
    y_scored: np.ndarray
    zero_shot: bool
    """Whether the rows that are scored are of other classes."""

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


@dataclass(frozen=True)
class Task:
    """``choice`` has no row, and without classes in common no class, that is scored at the end."""

    title: str
    images: bool
    choice: Callable[[], Rows]
    final: Callable[[], Rows]


def split_rows(X: np.ndarray, y: np.ndarray) -> Rows:
    """Hold back a share of the training rows."""
    order = np.random.default_rng(7).permutation(len(X))
    cut = round(HELD_BACK * len(X))
    held, rest = order[:cut], order[cut:]
    return Rows(X[rest], y[rest], X[held], y[held], False)


def some(X: np.ndarray, y: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A sample that is always the same."""
    chosen = np.random.default_rng(3).permutation(len(X))[:n_rows]
    return X[chosen], y[chosen]


# MNIST


def mnist(noise: int = 0, wrong: float = 0.0) -> Rows:
    split = load_benchmark("mnist")
    X, y = some(split.X_train, split.y_train.astype(np.int64), MNIST_ROWS)
    X = with_noise(X, noise) if noise else X
    generator = np.random.default_rng(5)
    changed = generator.random(len(y)) < wrong
    y = np.where(changed, (y + generator.integers(1, 10, size=len(y))) % 10, y)
    return Rows(as_images(X), y, as_images(split.X_test), split.y_test.astype(np.int64), False)


def as_images(X: np.ndarray) -> np.ndarray:
    return X.reshape(-1, 1, 28, 28)


def mnist_choice(**distortion: float) -> Rows:
    rows = mnist(**distortion)
    return split_rows(rows.X, rows.y)


def mnist_zero_shot(learned: int, searched: int, final: bool) -> Rows:
    """Learn the digits below ``learned``, search among those from there to ``searched``."""
    split = load_benchmark("mnist")
    y = split.y_train.astype(np.int64)
    first = y < learned
    X_learn, y_learn = some(split.X_train[first], y[first], MNIST_ROWS)
    X, y = (split.X_test, split.y_test.astype(np.int64)) if final else (split.X_train, y)
    search = np.flatnonzero((y >= learned) & (y < searched))[:4_000]
    return Rows(as_images(X_learn), y_learn, as_images(X[search]), y[search], True)


# Features of other networks


def features(name: str, n_rows: int) -> Rows:
    """Columns of variance 1 over all training rows."""
    split = load_benchmark(name)
    X, y = some(split.X_train, split.y_train.astype(np.int64), n_rows)
    centre, spread = X.mean(axis=0), X.std(axis=0) + 1e-6
    scored = (split.X_test - centre) / spread
    return Rows((X - centre) / spread, y, scored, split.y_test.astype(np.int64), False)


def features_choice(name: str, n_rows: int) -> Rows:
    rows = features(name, n_rows)
    return split_rows(rows.X, rows.y)


def features_zero_shot(name: str, n_rows: int, final: bool) -> Rows:
    """Learn the first half of the classes, search among test rows of the others.

    For the choice, learn the first three quarters of that half, and search the last quarter.
    """
    rows = features(name, n_rows)
    half = rows.n_classes // 2
    learned, searched = (half, 2 * half) if final else (3 * half // 4, half)
    learn = rows.y < learned
    X, y = (rows.X_scored, rows.y_scored) if final else (rows.X, rows.y)
    search = (y >= learned) & (y < searched)
    return Rows(rows.X[learn], rows.y[learn], X[search], y[search], True)


def feature_tasks(name: str, title: str, n_rows: int) -> dict[str, Task]:
    shot = partial(features_zero_shot, name, n_rows)
    return {
        name: Task(
            f"{title}, seen classes",
            False,
            partial(features_choice, name, n_rows),
            partial(features, name, n_rows),
        ),
        f"{name} zero-shot": Task(
            f"{title}, zero-shot", False, partial(shot, final=False), partial(shot, final=True)
        ),
    }


TASKS: dict[str, Task] = {
    "mnist": Task("MNIST, all classes", True, mnist_choice, mnist),
    "mnist noise": Task(
        f"MNIST, noise {NOISE}/255 on training images",
        True,
        partial(mnist_choice, noise=NOISE),
        partial(mnist, noise=NOISE),
    ),
    "mnist wrong labels": Task(
        f"MNIST, {WRONG_LABELS:.0%} wrong training labels",
        True,
        partial(mnist_choice, wrong=WRONG_LABELS),
        partial(mnist, wrong=WRONG_LABELS),
    ),
    "mnist zero-shot": Task(
        "MNIST, learn 0-5, search among 6-9",
        True,
        partial(mnist_zero_shot, CHOSEN_DIGITS, SEEN_DIGITS, final=False),
        partial(mnist_zero_shot, SEEN_DIGITS, 10, final=True),
    ),
    **feature_tasks("cifar100", "CIFAR-100 features", 15_000),
    **feature_tasks("imagenet200", "imagenet200 features", 20_000),
}
"""The questions by name, in the order of the run."""
