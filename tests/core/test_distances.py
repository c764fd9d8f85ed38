import numpy as np
import pytest
from scipy.spatial.distance import cdist

from latentmetric.core import distances
from latentmetric.core.distances import (
    References,
    k_nearest,
    paired_squared_distances,
    search,
    smallest,
)


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_search_in_small_tiles_finds_what_brute_force_finds(rng, monkeypatch, k, n_threads, dtype):
    monkeypatch.setattr(distances, "TILE_ROWS", 7)
    monkeypatch.setattr(distances, "BLOCK_BYTES", 7 * 5 * 8)
    queries = rng.standard_normal((53, 4)).astype(dtype)
    references = rng.standard_normal((41, 4)).astype(dtype)
    values, found = search(queries, References.of(references), k, n_threads=n_threads)
    brute = cdist(queries, references, "sqeuclidean")
    np.testing.assert_array_equal(found, np.argsort(brute, axis=1)[:, :k])
    full = values + np.square(queries).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(full, np.sort(brute, axis=1)[:, :k], rtol=1e-4, atol=1e-4)
    assert values.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_k_nearest_puts_a_known_row_at_exactly_zero(rng, dtype):
    rows = (1000 + rng.standard_normal((50, 30))).astype(dtype)
    squared, found = k_nearest(rows, References.of(rows), 3)
    np.testing.assert_array_equal(found[:, 0], np.arange(50))
    np.testing.assert_array_equal(squared[:, 0], 0)
    assert np.all(np.diff(squared, axis=1) >= 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-12, 1, 1e12])
def test_no_tie_is_overlooked(rng, dtype, scale):
    """The cheap bounds must keep all rows in which the rule of ties finds one."""
    queries = np.sqrt(scale * rng.random((4_000, 1))).astype(dtype)
    norms = np.square(queries[:, 0])
    starts = norms * 10.0 ** rng.uniform(-34, 0, 4_000)
    gaps = 10.0 ** rng.uniform(-17, -3, 4_000)
    squared = np.stack((starts, starts * (1 + gaps)), axis=1).astype(dtype)
    lengths = np.sqrt(squared, dtype=np.float64)
    reach = distances._tied_until(lengths, norms[:, None], squared.dtype)
    tied = np.flatnonzero((lengths[:, 1:] <= reach[:, :-1]).any(axis=1))
    assert 1_000 < len(tied) < 4_000
    given = np.tile([1, 0], (len(norms), 1))
    _, found = distances._sorted_by_distance(queries, squared, given, paired_squared_distances, 2)
    np.testing.assert_array_equal(np.flatnonzero(found[:, 0] == 0), tied)


@pytest.mark.parametrize("gap", [0, 300, 1e4, 1e6])
def test_groups_far_apart_do_not_blur_the_neighbours_within(rng, gap):
    references = rng.standard_normal((400, 5)).astype(np.float32)
    references[::2, 0] += np.float32(gap)
    queries = references[:60] + rng.standard_normal((60, 5)).astype(np.float32) / 10
    centre = references.mean(axis=0)
    queries, references = queries - centre, references - centre
    exact = np.square(queries[:, None] - references[None], dtype=np.float64).sum(axis=2)
    squared, found = k_nearest(queries, References.of(references), 3)
    assert squared.dtype == np.float32
    nearest = np.sort(exact, axis=1)[:, :3]
    np.testing.assert_allclose(np.take_along_axis(exact, found, 1), squared, rtol=1e-3)
    np.testing.assert_allclose(squared, nearest, rtol=0.03)  # ties within rounding may swap


def grid(n_features, side, dtype):
    """Whole-number rows in random order, measured from no whole number in no whole unit."""
    cells = np.indices((side,) * n_features).reshape(n_features, -1).T
    whole = np.random.default_rng(side).permutation(cells)
    return whole, ((whole - 1 / 3) / 1.7).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_features", "side", "k"), [(1, 90, 3), (2, 9, 60), (4, 3, 5), (2, 9, 1)]
)
def test_ties_go_to_the_smaller_index_in_any_block(monkeypatch, n_features, side, k, dtype):
    whole, rows = grid(n_features, side, dtype)
    squared = np.square(whole[:, None] - whole[None]).sum(axis=2)
    expected = np.argsort(squared, axis=1, kind="stable")[:, :k]
    for tile, batch in ((4096, 1), (4096, 1000), (7, 1000), (5, 8)):
        monkeypatch.setattr(distances, "TILE_ROWS", tile)
        references = References.of(rows)
        for start in range(0, len(rows), batch):
            here = slice(start, start + batch)
            exact, found = k_nearest(rows[here], references, k)
            np.testing.assert_array_equal(found, expected[here])
            tied = np.diff(np.take_along_axis(squared[here], found, axis=1), axis=1) == 0
            assert np.all((np.diff(exact, axis=1) == 0) == tied)


@pytest.mark.parametrize("n_values", [2, 12, None])
@pytest.mark.parametrize(
    ("n_rows", "n_columns", "k", "dtype"),
    [(0, 30, 1, np.float64), (0, 30, 20, np.float64), (1, 200, 21, np.float32),
     (40, 203, 25, np.float64), (40, 1003, 20, np.float32), (40, 30, 5, np.float32)],
)  # fmt: skip
def test_the_smallest_are_those_of_a_stable_sort(rng, n_values, n_rows, n_columns, k, dtype):
    block = rng.standard_normal((n_rows, n_columns)).astype(dtype)
    if n_values:
        block = rng.integers(0, n_values, block.shape).astype(dtype)
    values, columns = smallest(block.copy(), k)
    np.testing.assert_array_equal(values, np.sort(block, axis=1)[:, :k])
    np.testing.assert_array_equal(columns, np.argsort(block, axis=1, kind="stable")[:, :k])
    assert values.dtype == dtype


def test_hidden_entries_are_no_neighbours(rng):
    block = rng.standard_normal((30, 700))
    block[:20, rng.permutation(700)[:690]] = np.inf
    block[20:25] = np.inf
    values, columns = smallest(block.copy(), 20)
    np.testing.assert_array_equal(values, np.sort(block, axis=1)[:, :20])
    found = np.take_along_axis(block, columns, axis=1)
    np.testing.assert_array_equal(found[values < np.inf], values[values < np.inf])
    assert np.all(np.isinf(smallest(np.full((3, 700), np.inf), 20)[0]))
