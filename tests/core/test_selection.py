import numpy as np
import pytest

from latentmetric.core.distances import grouped_smallest, repeated_argmin


def assert_smallest(found, block, k):
    values, columns = found
    np.testing.assert_array_equal(values, np.sort(block, axis=1)[:, :k])
    np.testing.assert_array_equal(columns, np.argsort(block, axis=1, kind="stable")[:, :k])
    assert values.dtype == block.dtype


@pytest.mark.parametrize("select", [repeated_argmin, grouped_smallest])
@pytest.mark.parametrize("n_rows", [0, 1, 40])
@pytest.mark.parametrize("n_columns", [30, 200, 203])
@pytest.mark.parametrize("k", [1, 21, 25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_they_are_those_of_a_sort(rng, select, n_rows, n_columns, k, dtype):
    block = rng.standard_normal((n_rows, n_columns)).astype(dtype)
    assert_smallest(select(block.copy(), k), block, k)


@pytest.mark.parametrize("n_values", [1, 2, 12, 150])
@pytest.mark.parametrize("n_rows", [1, 40])
def test_of_equal_entries_the_first_are_taken(rng, n_values, n_rows):
    block = rng.integers(0, n_values, (n_rows, 300)).astype(float)
    assert_smallest(grouped_smallest(block.copy(), 21), block, 21)


@pytest.mark.parametrize("n_rows", [1, 40])
def test_infinities_are_taken_as_by_argmin(rng, n_rows):
    block = rng.standard_normal((n_rows, 300))
    block[::2, 5:] = np.inf
    found, expected = grouped_smallest(block.copy(), 21), repeated_argmin(block.copy(), 21)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)
