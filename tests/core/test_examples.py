"""The rows that references stand for, compared with a plain search."""

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric.core.distances import References
from latentmetric.core.examples import EXAMPLES, filled_ids, ids_of, nearer, nearest_rows, own_ids


@pytest.mark.parametrize("size", [7, 100, 240])
def test_nearest_rows_of_blocks_are_those_of_a_plain_search(size):
    X, y = make_blobs()
    codes = np.where(np.arange(240) % 5 == 0, -1, y)  # some rows are left out
    latents, of_latents = X[:20] + 0.1, np.arange(20) % 4  # no row is of class 3
    found = None
    for start in range(0, 240, size):
        block = slice(start, start + size)
        part = nearest_rows(References.of(latents), of_latents, X[block], codes[block], start)
        found = part if found is None else nearer(found, part)
    for latent, code, numbers in zip(latents, of_latents, found[1], strict=True):
        own = np.flatnonzero(codes == code)
        order = own[np.linalg.norm(X[own] - latent, axis=1).argsort()]
        assert numbers.tolist() == (order[:EXAMPLES].tolist() if code < 3 else [-1] * EXAMPLES)


def test_a_class_of_few_rows_has_few_examples():
    points, codes = np.array([[0.0], [3.0], [1.0]]), np.array([0, 1, 0])
    references = References.of(np.array([[2.0], [2.0]]))
    _, numbers = nearest_rows(references, np.array([0, 1]), points, codes)
    assert numbers.tolist() == [[2, 0, -1], [1, -1, -1]]
    assert ids_of(np.array([*"abc"]), numbers).tolist() == [["c", "a", None], ["b", None, None]]


def test_references_keep_the_ids_that_they_have():
    known, others = own_ids(np.array([4, 5]), np.array([1, -1])), own_ids(np.array([9, 9]), [0, 1])
    assert filled_ids(known, others)[:, 0].tolist() == [5, 9]
    assert filled_ids(None, others) is others
