from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from latentmetric.evaluation.significance import Paired, holm, paired


def test_only_rows_that_one_gets_right_count():
    right = np.array([True, True, False, False, True])
    other = np.array([True, False, True, False, False])
    assert paired(right, other) == Paired(5, gained=2, lost=1)
    assert paired(right, other).fewer == pytest.approx(1 / 5)


@pytest.mark.parametrize(("gained", "lost"), [(10, 2), (2, 10), (5, 5), (0, 7), (0, 0)])
def test_p_is_the_two_sided_binomial_tail(gained, lost):
    apart, fewer = gained + lost, min(gained, lost)
    expected = min(1.0, 2 * binom.cdf(fewer, apart, 0.5)) if apart else 1.0
    assert Paired(100, gained, lost).p_value == pytest.approx(expected)


def test_the_interval_holds_the_difference_of_equals_about_95_times_in_100(rng):
    inside = 0
    for _ in range(400):
        gained = rng.random(500) < 0.1
        lost = ~gained & (rng.random(500) < 0.1 / 0.9)
        low, high = Paired(500, int(gained.sum()), int(lost.sum())).interval
        inside += low <= 0 <= high
    assert 0.92 <= inside / 400 <= 0.98


def test_as_many_rows_as_would_tell_do_tell():
    match = Paired(450, gained=3, lost=5)
    needed = match.rows_to_tell
    assert not match.significant
    grown = Paired(needed, round(3 * needed / 450), round(5 * needed / 450))
    assert grown.p_value < 0.07
    assert Paired(450, 4, 4).rows_to_tell is None


@pytest.mark.parametrize("n_rows", [100, 1000])
def test_rows_that_did_not_tell_are_not_said_to_be_enough(n_rows):
    matches = [Paired(n_rows, gained, lost) for gained in range(30) for lost in range(30)]
    unsure = [match for match in matches if match.gained != match.lost and not match.significant]
    assert all(match.rows_to_tell > n_rows for match in unsure)
    matches = [replace(match, correction=3.0) for match in matches]
    unsure = [match for match in matches if match.gained != match.lost and not match.significant]
    assert all(match.rows_to_tell > n_rows for match in unsure)


def test_holms_correction_is_that_of_the_textbook():
    """p of 2^-9, 2^-5, 2^-4 and 1, times 4, 3, 2 and 1, and never below the one before."""
    matches = [Paired(99, 5, 0), Paired(99, 0, 10), Paired(99, 3, 3), Paired(99, 6, 0)]
    found = [match.p_value for match in holm(matches)]
    assert found == pytest.approx([2 / 16, 4 / 512, 1, 3 / 32])
    assert [match.p_value for match in holm([Paired(9, 4, 0), Paired(9, 0, 4)])] == [0.25, 0.25]
    assert holm([]) == []


def test_a_difference_beyond_all_doubt_can_be_corrected():
    right = np.ones(5000, dtype=bool)
    (match,) = holm([paired(right, ~right)])
    assert match.significant
    assert match.p_value == 0
