"""BLAS routines for triangles against plain products."""

import _ctypes

import numpy as np
import pytest

from latentmetric.core.blas import _name_of, _routine, add_squares, times_triangle

CASES = pytest.mark.parametrize(
    ("dtype", "close", "shape"),
    [(np.float32, 1e-5, (7, 5)), (np.float64, 1e-13, (130, 33)), (np.float64, 1e-13, (0, 4))],
)


def triangle(rng, n_features, dtype):
    """A matrix with numbers on both sides of the diagonal, of which one must not matter."""
    return np.asfortranarray(rng.standard_normal((n_features, n_features)).astype(dtype))


@CASES
def test_squares_are_added_to_the_upper_triangle_only(rng, dtype, close, shape):
    rows = rng.standard_normal(shape).astype(dtype)
    matrix = triangle(rng, shape[1], dtype)
    exact = rows.astype(np.float64)
    expected = np.triu(0.5 * matrix - 2 * exact.T @ exact) + np.tril(matrix, -1)
    add_squares(matrix, rows, -2.0, 0.5)
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=close * (2 + 2 * len(rows)))


@CASES
def test_rows_times_the_upper_triangle(rng, dtype, close, shape):
    rows = rng.standard_normal(shape).astype(dtype)
    matrix, before = triangle(rng, shape[1], dtype), rows.copy()
    turned = times_triangle(matrix, rows)
    expected = rows.astype(np.float64) @ np.triu(matrix).T
    np.testing.assert_allclose(turned, expected, rtol=0, atol=close * (2 + shape[1]))
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("function", [lambda *arrays: add_squares(*arrays, 1.0), times_triangle])
@pytest.mark.parametrize(
    ("matrix", "rows"),
    [
        (np.zeros((4, 4), order="F"), np.zeros((3, 5))),
        (np.zeros((5, 5), "f4", order="F"), np.zeros((3, 5))),
        (np.zeros((5, 5)), np.zeros((3, 5))),
        (np.zeros((5, 5), order="F"), np.zeros((5, 3)).T),
    ],
    ids=["shape", "dtype", "order of the matrix", "order of the rows"],
)
def test_arrays_that_blas_would_misread_are_refused(function, matrix, rows):
    with pytest.raises(ValueError, match=r"fit|order"):
        function(matrix, rows)


@pytest.mark.parametrize("name", ["syrk", "trmm"])
def test_the_routines_do_not_keep_the_lock_of_python(name):
    """ctypes keeps the lock only for functions with this flag."""
    routine, _ = _routine(name, np.dtype(np.float32))
    assert not routine._flags_ & _ctypes.FUNCFLAG_PYTHONAPI
    assert _name_of._flags_ & _ctypes.FUNCFLAG_PYTHONAPI
