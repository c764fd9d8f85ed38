"""The questions of deep.py: rows to learn from, rows to choose parameters on, rows to be scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from data import load_benchmark, with_noise

Part = tuple[np.ndarray, np.ndarray]
"""Rows and their labels."""
MNIST_ROWS = 10_000
"""Training rows that networks learn from."""
HELD_BACK_ROWS = 10_000
"""Other training rows, at most, that parameters are chosen on."""
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


def some(X: np.ndarray, y: np.ndarray, n_rows: int, others: bool = False) -> Part:
    """A sample that is always the same; with ``others``, rows that are not in it."""
    order = np.random.default_rng(3).permutation(len(X))
    chosen = order[n_rows:][:HELD_BACK_ROWS] if others else order[:n_rows]
    return X[chosen], y[chosen].astype(np.int64)


# MNIST


def mnist(final: bool, noise: int = 0, wrong: float = 0.0) -> Rows:
    """Rows held back of the training rows have their noise and their wrong labels."""
    split = load_benchmark("mnist")
    learned = some(split.X_train, split.y_train, MNIST_ROWS)
    X, y = distorted(learned, noise, wrong, seed=5)
    if final:
        scored = split.X_test, split.y_test.astype(np.int64)
    else:
        held = some(split.X_train, split.y_train, MNIST_ROWS, others=True)
        scored = distorted(held, noise, wrong, seed=6)
    return Rows(as_images(X), y, as_images(scored[0]), scored[1], False)


def distorted(part: Part, noise: int, wrong: float, seed: int) -> Part:
    """With noise on the images, and with a share of wrong labels."""
    X, y = part
    X = with_noise(X, noise, seed) if noise else X
    generator = np.random.default_rng(seed)
    changed = generator.random(len(y)) < wrong
    return X, np.where(changed, (y + generator.integers(1, 10, size=len(y))) % 10, y)


def as_images(X: np.ndarray) -> np.ndarray:
    return X.reshape(-1, 1, 28, 28)


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


def features(name: str, n_rows: int, final: bool) -> Rows:
    """Columns of variance 1 over all rows that are learned from."""
    split = load_benchmark(name)
    X, y = some(split.X_train, split.y_train, n_rows)
    if final:
        scored, truth = split.X_test, split.y_test.astype(np.int64)
    else:
        scored, truth = some(split.X_train, split.y_train, n_rows, others=True)
    centre, spread = X.mean(axis=0), X.std(axis=0) + 1e-6
    return Rows((X - centre) / spread, y, (scored - centre) / spread, truth, False)


def features_zero_shot(name: str, n_rows: int, final: bool) -> Rows:
    """Learn the first half of the classes, search among test rows of the others.

    For the choice, learn the first three quarters of that half, and search the last quarter.
    """
    rows = features(name, n_rows, final)
    half = rows.n_classes // 2
    learned, searched = (half, 2 * half) if final else (3 * half // 4, half)
    learn = rows.y < learned
    X, y = rows.X_scored, rows.y_scored
    search = (y >= learned) & (y < searched)
    return Rows(rows.X[learn], rows.y[learn], X[search], y[search], True)


def feature_tasks(name: str, title: str, n_rows: int) -> dict[str, Task]:
    shot = partial(features_zero_shot, name, n_rows)
    return {
        name: Task(
            f"{title}, seen classes",
            False,
            partial(features, name, n_rows, final=False),
            partial(features, name, n_rows, final=True),
        ),
        f"{name} zero-shot": Task(
            f"{title}, zero-shot", False, partial(shot, final=False), partial(shot, final=True)
        ),
    }


TASKS: dict[str, Task] = {
    "mnist": Task(
        "MNIST, all classes", True, partial(mnist, final=False), partial(mnist, final=True)
    ),
    "mnist noise": Task(
        f"MNIST, noise {NOISE}/255 on training images",
        True,
        partial(mnist, final=False, noise=NOISE),
        partial(mnist, final=True, noise=NOISE),
    ),
    "mnist wrong labels": Task(
        f"MNIST, {WRONG_LABELS:.0%} wrong training labels",
        True,
        partial(mnist, final=False, wrong=WRONG_LABELS),
        partial(mnist, final=True, wrong=WRONG_LABELS),
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
