"""Data that tests make themselves."""

import numpy as np


def make_blobs(n_rows=240, n_classes=3, n_features=6, seed=0):
    generator = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    X = generator.standard_normal((n_rows, n_features)) * np.linspace(3, 1, n_features)
    angle = 2 * np.pi * y / n_classes
    X[:, -2] += 2.5 * np.cos(angle)
    X[:, -1] += 2.5 * np.sin(angle)
    return X, y
