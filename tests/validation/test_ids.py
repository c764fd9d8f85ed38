"""Ids of rows of every container, and what is refused."""

import numpy as np
import pandas
import polars
import pytest

from latentmetric.validation.ids import checked_ids


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "b", None],
        [1, 2**70, 3],
        range(3),
        np.array(["a", "b", "c"]),
        np.arange(3, dtype=np.uint8),
        pandas.Series(["a", "b", "c"]),
        pandas.Series([1, 2, 3], dtype="Int64"),
        polars.Series(["a", None, "c"]),
    ],
    ids=repr,
)
def test_strings_and_integers_are_accepted(ids):
    assert checked_ids(ids, 3).tolist() == list(ids)


def test_a_long_text_does_not_widen_the_others():
    assert checked_ids(["a", "b" * 10_000], 2).nbytes == 16


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (["a", "b"], ValueError, r"X has 3 rows, but row_ids has the shape \(2,\)"),
        ([["a"], ["b"], ["c"]], ValueError, r"the shape \(3, 1\)"),
        ("abc", ValueError, r"the shape \(\)"),
        (["a", 2.5, 1.5], TypeError, r"2 of 3 are not, such as 2.5 for row 1"),
        ([True, False, True], TypeError, "3 of 3 are not, such as True for row 0"),
        (np.ones(3), TypeError, "3 of 3"),
        (np.array([1, 2, 3], dtype="M8[ns]"), TypeError, "3 of 3"),
        ([b"a", "b", "c"], TypeError, "b'a' for row 0.*convert them with str"),
    ],
)
def test_others_are_refused_with_both_numbers(ids, error, message):
    with pytest.raises(error, match=message):
        checked_ids(ids, 3)
