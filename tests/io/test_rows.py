"""Rows that are read when they are sliced, whatever file they are in."""

import mmap
import sys

import numpy as np
import pytest

from latentmetric.io import open_rows
from latentmetric.io.rows import as_row_file


@pytest.fixture
def table():
    return np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)


def test_a_memory_map_is_rows_and_is_never_written_to(table, tmp_path):
    np.save(tmp_path / "rows.npy", table)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    for part in (mapped, mapped[10:40], mapped[:, 1:3], mapped[::-1]):
        rows = as_row_file(part)
        np.testing.assert_array_equal(rows[slice(2, 9)], part[2:9])
        rows[slice(2, 9)][:] = 7
    np.testing.assert_array_equal(mapped, table)
    assert as_row_file(rows) is rows
    with pytest.raises(ValueError, match="two dimensions"):
        as_row_file(mapped[0])


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_changes_of_a_memory_map_outlive_a_large_block(tmp_path, mode):
    np.save(tmp_path / "rows.npy", np.zeros((2**21, 2)))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode=mode)
    mapped[:] = 7
    for _ in range(2):
        assert (np.asarray(as_row_file(mapped)) == 7).all()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_large_file_passes_through_little_memory(tmp_path):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    np.save(tmp_path / "rows.npy", np.ones((2**21, 8)))
    rows = open_rows(tmp_path / "rows.npy")
    before = resident()
    for start in range(0, len(rows), 2**17):
        assert rows[start : start + 2**17].all()
    assert resident() - before < rows.nbytes / 2
