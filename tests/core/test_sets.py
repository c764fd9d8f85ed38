"""Where the latent examples of each set stand."""

import numpy as np
import pytest

from latentmetric.core.sets import set_numbers, sets_of


def test_in_each_class_one_set_follows_the_other():
    """Two sets of two, one and three latent examples of three classes."""
    class_starts = np.array([0, 4, 6, 12])
    numbers = [0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(set_numbers(class_starts, 2), numbers)
    expected = [[0, 1, 4, 6, 7, 8], [2, 3, 5, 9, 10, 11]]
    np.testing.assert_array_equal(sets_of(class_starts, 2), expected)


@pytest.mark.parametrize("sizes", [[1], [3, 1, 7], [2] * 50])
def test_one_set_holds_all(sizes):
    class_starts = np.concatenate(([0], np.cumsum(sizes)))
    np.testing.assert_array_equal(sets_of(class_starts, 1), [np.arange(sum(sizes))])
