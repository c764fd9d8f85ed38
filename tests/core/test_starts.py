"""The starts of the metric, against their definitions."""

import numpy as np
import pytest

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.starts import SHRINKAGE, STARTS, feature_factors, start_from


def rows_of_classes(n_rows=200, n_features=5, seed=0, dtype=np.float64):
    """Correlated rows of four classes with different means, features of different units."""
    generator = np.random.default_rng(seed)
    y = np.arange(n_rows) % 4
    X = generator.standard_normal((n_rows, 8)) @ generator.standard_normal((8, n_features))
    X = (X + 4 * generator.standard_normal((4, n_features))[y]) * 3.0 ** (np.arange(n_features) % 5)
    return X.astype(dtype), y


def covariance_within(X, y):
    """The mean of (x − mean of the class)(x − mean of the class)ᵀ."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for label in np.unique(y):
        away = X[y == label] - X[y == label].mean(axis=0)
        total += away.T @ away
    return total / len(X)


def metric_of(start):
    return start.fold(np.eye(len(start.factor))).T @ start.fold(np.eye(len(start.factor)))


def mean_squared_norm(X):
    return np.square(X - X.mean(axis=0)).sum(axis=1).mean()


def scaled_to(X, metric):
    """The multiple of the metric under which the rows keep their mean squared norm."""
    centred = X - X.mean(axis=0)
    return metric * mean_squared_norm(X) / np.einsum("ij,jk,ik->i", centred, metric, centred).mean()


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_keep_their_mean_squared_norm_and_their_dtype(name, dtype):
    X, y = rows_of_classes(dtype=dtype)
    start = start_from(name, X, y)
    assert start.name == name
    assert start.transform(X).dtype == start.factor.dtype == dtype
    assert mean_squared_norm(start.transform(X)) == pytest.approx(mean_squared_norm(X), rel=1e-5)


def test_standardized_is_the_inverse_of_the_variances():
    X, y = rows_of_classes()
    expected = scaled_to(X, np.diag(1 / X.var(axis=0)))
    np.testing.assert_allclose(metric_of(start_from("standardized", X, y)), expected, rtol=1e-9)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-3), (np.float64, 1e-9)])
def test_within_is_the_inverse_of_the_shrunk_covariance(dtype, rtol):
    X, y = rows_of_classes(dtype=dtype)
    within = covariance_within(X.astype(np.float64), y)
    shrunk = (1 - SHRINKAGE) * within + SHRINKAGE * np.diag(np.diag(within))
    expected = scaled_to(X.astype(np.float64), np.linalg.inv(shrunk))
    found = metric_of(start_from("within", X, y))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("name", STARTS)
def test_neither_position_nor_order_nor_names_of_classes_matter(name, rng):
    X, y = rows_of_classes()
    expected = metric_of(start_from(name, X, y))
    order = rng.permutation(len(X))
    if name == "denoised":  # its groups begin at rows in their order, which populations fix
        order = np.arange(len(X))
    for rows, labels in ((X + 100, y), (X[order], y[order]), (X, np.array([7, 2, 30, 11])[y])):
        found = metric_of(start_from(name, rows, labels))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e8 / 3, 1e-33 * np.arange(200)])
def test_a_constant_feature_does_not_change_the_others(name, constant):
    X, y = rows_of_classes()
    wide = np.insert(X, 2, constant, axis=1)
    coordinates = Coordinates.of(wide)
    X, wide = np.delete(coordinates.transform(wide), 2, axis=1), coordinates.transform(wide)
    factors, start = feature_factors(name, wide, y), start_from(name, wide, y)
    expected = feature_factors(name, X, y)
    np.testing.assert_allclose(np.delete(factors, 2), expected, rtol=1e-9)
    assert factors.min() > 0
    assert np.isfinite(metric_of(start)).all()
    assert np.linalg.eigvalsh(metric_of(start)).min() > 0
    assert mean_squared_norm(start.transform(wide)) == pytest.approx(mean_squared_norm(X))


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_rows_that_are_all_equal_get_the_euclidean_start(name, value):
    start = start_from(name, np.full((6, 3), value), np.arange(6) % 2)
    np.testing.assert_allclose(metric_of(start), np.eye(3))


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-3), (np.float64, 1e-9)])
def test_rows_come_back_from_the_coordinates_of_a_start(name, dtype, rtol):
    X, y = rows_of_classes(dtype=dtype)
    start = start_from(name, X, y)
    back = start.inverse_transform(start.transform(X))
    assert back.dtype == dtype
    np.testing.assert_allclose(back / X.std(axis=0), X / X.std(axis=0), atol=rtol)
