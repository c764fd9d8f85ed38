"""Scores of rows like known ones, and how far new rows are."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from latentmetric.core.distances import References
from latentmetric.core.tuning import KEPT_ROWS
from latentmetric.core.unknown import (
    Distances,
    Usual,
    kept_out,
    usual_from_references,
)


@pytest.fixture
def left_out(rng):
    return Distances(rng.chisquare(10, 4_000), rng.chisquare(10, 4_000) * 5)


def test_usual_distances_are_means_and_the_centre_counts_at_most_half():
    assert Distances(np.array([1.0, 3.0]), np.array([8.0, 12.0])).usual() == (2, 10)
    assert Distances(np.array([1.0, 3.0]), np.array([2.0, 2.0])).usual() == (2, 4)
    nothing = Distances(np.zeros(2), np.zeros(2))
    assert np.isfinite(nothing.scores(nothing.usual())).all()


def test_scores_are_finite_however_far_a_row_is():
    far = Distances(np.array([1e300, 0.0]), np.array([0.0, 1e300]))
    scores = far.scores(Usual(1e-200, 1e-200))
    assert np.isfinite(scores).all()
    assert scores[0] < 0 < scores[1]


def test_rows_as_references_are_left_out_of_themselves(rng):
    rows = rng.standard_normal((80, 3))
    apart = cdist(rows, rows) ** 2
    np.fill_diagonal(apart, np.inf)
    usual = usual_from_references(References.of(rows))
    assert usual == pytest.approx((apart.min(axis=1).mean(), (rows**2).sum(axis=1).mean()))
    assert usual_from_references(References.of(rows[:1])).nearest > 0


def test_distances_in_units_of_others_are_those_under_a_metric_of_another_scale(left_out):
    new = Distances(1.2 * left_out.nearest, left_out.centre)
    longer = Distances(7 * left_out.nearest, 7 * left_out.centre)
    found = Distances(*(new.in_units_of(left_out.means) * longer.means))
    np.testing.assert_allclose(found.nearest, 7 * new.nearest)
    np.testing.assert_allclose(found.centre, 7 * new.centre)
    nothing = Distances(np.zeros(3), np.zeros(3))
    assert not (nothing.in_units_of(nothing.means) * nothing.means).any()


@pytest.mark.parametrize(
    ("n_rows", "n_kept", "n_alone"),
    [(1_900, 0, 0), (5_100, 0, 255), (5_140, 257, 257), (10**6, KEPT_ROWS, KEPT_ROWS)],
)
def test_rows_are_kept_out_where_they_are_many(n_rows, n_kept, n_alone):
    judges = np.arange(0, n_rows, max(1, n_rows // 2048))[:2048]
    for unseen, n_wanted in ((np.ones((2, 9)), n_kept), (np.empty((2, 0)), n_alone)):
        kept = kept_out(judges, n_rows, unseen)
        assert len(np.unique(kept)) == n_wanted
        assert np.isin(kept, judges).all()
        assert len(kept_out(judges[:0], n_rows, unseen)) == 0
