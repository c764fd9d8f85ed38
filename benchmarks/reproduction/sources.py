"""Where the rows of a setting come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from data import Split, load_benchmark, load_split, with_noise
from image_like import IMAGENET, IMAGENET_TEST_ROWS, make_image_like
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from latentmetric.core.types import Floats
from reproduction.plan import LARGE_SET, Setting

LARGE_TEST_ROWS = 10_000
"""Of the 50,000 test rows of the image-like set: enough to see a difference of half a point."""

LARGE_ROWS = IMAGENET | {"decay": 1.0, "distortion": 0.42, "shared_distortion": 1.0, "noise": 1.13}
"""The rows that the stored results are for, with a distortion that all classes share: any metric
gains on them. They are here for their number; claims about errors are judged on other sets."""

QUICK_ROWS_PER_CLASS = 100


@dataclass(frozen=True)
class Source:
    """The folder of the data sets, and a file of ImageNet features if there is one."""

    folder: Path | None = None
    imagenet: Path | None = None

    def check(self, experiments: list[str]) -> None:
        """Read the data of all experiments, to fail before any work is done."""
        for name in experiments:
            if name != LARGE_SET:
                load_benchmark(name, self.folder)
            elif self.imagenet:
                load_split(LARGE_SET, self.imagenet)

    def is_synthetic(self, setting: Setting) -> bool:
        """Whether the rows are image-like ones and not features of images."""
        return setting.dataset == LARGE_SET and self.imagenet is None

    def tag(self, setting: Setting) -> str:
        """Part of the names of result files: each file of ImageNet features has its own results."""
        if setting.dataset != LARGE_SET or self.imagenet is None:
            return ""
        return f"--{self.imagenet.stem}"

    def load(self, setting: Setting) -> Split:
        """The rows of a setting: noise on the training rows, a sample, principal components."""
        return _load(self, setting)


def _read(source: Source, setting: Setting) -> Split:
    if setting.dataset != LARGE_SET:
        return load_benchmark(setting.dataset, source.folder)
    if source.imagenet:
        return load_split(LARGE_SET, source.imagenet)
    return _image_like(setting.n_rows)


def _image_like(n_rows: int | None) -> Split:
    """The preset of ImageNet's size, or fewer rows of fewer classes."""
    n_train = n_rows or IMAGENET["n_samples"] - IMAGENET_TEST_ROWS
    n_classes = IMAGENET["n_classes"] if n_rows is None else n_rows // QUICK_ROWS_PER_CLASS
    n_test = min(LARGE_TEST_ROWS, n_train)
    sizes = {"n_samples": n_train + n_test, "n_classes": n_classes}
    made = make_image_like(**LARGE_ROWS | sizes)
    return Split(LARGE_SET, made.X[:n_train], made.y[:n_train], made.X[n_train:], made.y[n_train:])


def sample(X: Floats, y: Any, n_rows: int | None, seed: int) -> tuple[Floats, Any]:
    """A sample with classes in proportion; all rows if ``n_rows`` is nearly all of them."""
    if n_rows is None or n_rows + len(np.unique(y)) > len(X):
        return X, y
    X, _, y, _ = train_test_split(X, y, train_size=n_rows, stratify=y, random_state=seed)
    return X, y


@lru_cache(maxsize=1)
def _load(source: Source, setting: Setting) -> Split:
    split = _read(source, setting)
    X_train, y_train, X_test = split.X_train, split.y_train, split.X_test
    X_train, y_train = sample(X_train, y_train, setting.n_rows, seed=0)
    if setting.noise:
        X_train = with_noise(X_train, setting.noise)
    if setting.n_features and setting.n_features < X_train.shape[1]:
        pca = PCA(setting.n_features, svd_solver="covariance_eigh").fit(X_train)
        X_train, X_test = pca.transform(X_train), pca.transform(X_test)
    return Split(split.name, X_train, y_train, X_test, split.y_test)
