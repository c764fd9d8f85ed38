"""One very long label among many must not be padded to the length of all others."""

import tracemalloc

import pytest
from helpers import make_blobs

from latentmetric import Euclidean
from latentmetric.io import open_table
from latentmetric.validation import labels

LONG = "x" * 40_000


@pytest.fixture
def few_bytes(monkeypatch):
    monkeypatch.setattr(labels, "MAX_PADDED_BYTES", 2**20)


def peak_of(work):
    tracemalloc.start()
    try:
        found = work()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_long_label_in_a_list_is_not_padded(few_bytes):
    X, y = make_blobs(600)
    names = [LONG if row == 0 else f"class {label}" for row, label in enumerate(y)]
    model, peak = peak_of(lambda: Euclidean(n_neighbors=1).fit(X, names))
    assert peak < 600 * 4 * len(LONG) / 10
    assert model.predict(X).tolist() == names


def test_a_long_label_in_a_file_is_not_padded(few_bytes, tmp_path):
    lines = [f"{row},{LONG if row == 7 else 'a'}\n" for row in range(600)]
    (tmp_path / "table.csv").write_text("number,label\n" + "".join(lines))
    table, peak = peak_of(lambda: open_table(tmp_path / "table.csv"))
    assert peak < 600 * 4 * len(LONG) / 4
    assert table.labels[7] == LONG
