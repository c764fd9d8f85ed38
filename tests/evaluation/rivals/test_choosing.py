"""Folds and scalings of a choice."""

import numpy as np
from sklearn.preprocessing import StandardScaler

from latentmetric.evaluation.rivals.choosing import FOLDS, Task, choose, folds, scaled


def test_every_row_judges_once_and_never_where_it_was_fitted(rng):
    codes = rng.integers(0, 4, 50)
    parts = list(folds(codes, rng))
    assert len(parts) == FOLDS
    assert sorted(np.concatenate([judged for _, judged in parts])) == list(range(50))
    for fitted, judged in parts:
        assert not set(fitted) & set(judged)
        assert set(codes[fitted]) == set(codes)


def test_folds_without_two_classes_are_left_out(rng):
    assert list(folds(np.array([0, 1]), rng)) == []


def test_rows_are_standardised_by_the_first_and_constants_stay_finite(rng):
    X = rng.standard_normal((30, 3)) * (1, 50, 0) + (3, -4, 7)
    rows, others = scaled(True, X[:20], X[20:])
    scaler = StandardScaler().fit(X[:20])
    np.testing.assert_array_equal(rows, scaler.transform(X[:20]))
    np.testing.assert_array_equal(others, scaler.transform(X[20:]))
    assert np.isfinite(others).all()
    assert scaled(False, X)[0] is X


def test_the_fewest_errors_win_and_of_equals_the_first(rng):
    codes = np.arange(60) % 3
    task = Task(np.full((60, 1), 5.0), codes, rng)

    def answers(known, known_codes, asked):
        """Standardised rows are 0 and all are called 1; others are called as the candidate says."""
        for code in (0, 2):
            yield np.full(len(asked), 1 if asked[0] == 0 else code)

    assert choose(task, (False, True), "ac", answers) == (False, "a")
    assert choose(task, (True, False), "ac", answers) == (True, "a")
    codes = np.where(np.arange(60) % 3, 2, codes)
    assert choose(Task(task.rows, codes, rng), (True, False), "ac", answers) == (False, "c")


def test_a_sample_is_in_float64_and_has_every_class(rng):
    codes = np.repeat([0, 1, 2], [80, 15, 5])
    some = Task(np.arange(100)[:, None], codes, rng).some(20)
    assert some.rows.shape == (20, 1)
    assert some.rows.dtype == np.float64
    np.testing.assert_array_equal(codes[some.rows[:, 0].astype(int)], some.codes)
    assert set(some.codes) == {0, 1, 2}
