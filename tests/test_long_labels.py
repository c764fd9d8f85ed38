"""One very long label among many must not be padded to the length of all others."""

import tracemalloc

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric import Euclidean
from latentmetric.io import open_table
from latentmetric.validation import labels
from latentmetric.validation.parameters import check_counts_by_class

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
    assert peak < 600 * 4 * len(LONG) / 10
    assert table.labels[7] == LONG


def test_text_of_ordinary_length_has_a_fixed_width():
    assert labels.checked_labels(["a", "bcd"]).dtype == "U3"
    assert labels.checked_labels(("a", "bcd")).dtype == "U3"
    assert labels.text_array([], "y").shape == (0,)
    assert labels.text_array(["a" * 2**20], "y", 100).dtype == object


def test_counts_by_class_are_looked_up_not_searched():
    class Counted(str):
        compared = 0

        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.compared += 1
            return str.__eq__(self, other)

    names = [Counted(number) for number in range(5_000)]
    counts = {Counted(number): 1 for number in range(5_000)}
    Counted.compared = 0
    check_counts_by_class("n_latents", counts, names)
    assert Counted.compared < 10 * len(names)
    assert np.unique(labels.checked_labels(list(map(str, names)))).shape == (5_000,)
