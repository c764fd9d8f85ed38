"""Ugly but valid data that every estimator must fit."""

import numpy as np


def hard_cases():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((60, 4))
    y = np.arange(60) % 3
    wide = generator.standard_normal((12, 50))
    yield "collinear", np.column_stack((X, X @ generator.standard_normal((4, 4)))), y
    yield "constant features", np.column_stack((X, np.full((60, 2), 7.0))), y
    yield "duplicate features", np.column_stack((X, X, X)), y
    yield "all features constant", np.ones((60, 3)), y
    yield "duplicate rows", np.repeat(X[:3], 20, axis=0), np.repeat(np.arange(3), 20)
    yield "same rows in every class", np.tile(X[:20], (3, 1)), np.repeat(np.arange(3), 20)
    yield "fewer rows than features", wide, np.arange(12) % 2
    yield "one row a class", X[:5], np.arange(5)
    yield "one class of one row", X, np.r_[0, np.ones(59, int)]
    yield "one feature", X[:, :1], y
    yield "two rows", X[:2], np.array([0, 1])
    yield "tiny spread far out", 1e6 + 1e-3 * X, y
    yield "one huge outlier", np.concatenate((X, [[1e9] * 4])), np.r_[y, 0]
    yield "many classes", X, np.arange(60) // 2
    yield "huge numbers", 1e30 * X, y
    yield "tiny numbers", 1e-30 * X, y
