"""Scores of rows like known ones, and what training rows say about new rows."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from latentmetric.core.distances import References
from latentmetric.core.tuning import KEPT_ROWS
from latentmetric.core.unknown import (
    GAPS,
    Distances,
    Usual,
    as_new,
    kept_out,
    score_gap,
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


def test_the_gap_is_by_how_much_unseen_rows_are_farther(rng, left_out):
    assert score_gap(left_out, left_out) == pytest.approx(1, abs=1e-3)
    farther = Distances(1.2 * left_out.nearest, left_out.centre)
    assert score_gap(farther, left_out) == pytest.approx(1.2, abs=1e-3)
    for factor, bound in zip((0, 100), GAPS, strict=True):
        assert score_gap(Distances(factor * left_out.nearest, left_out.centre), left_out) == bound


def test_training_rows_become_as_far_as_new_ones(left_out):
    kept = np.arange(len(left_out.nearest)) % 2 == 0
    shorter = np.where(kept, 1, 0.8) * left_out.nearest
    new = as_new(Distances(shorter, left_out.centre), kept, gap=3.0, outside=0.0)
    np.testing.assert_array_equal(new.nearest[kept], left_out.nearest[kept])
    np.testing.assert_allclose(new.nearest[~kept], left_out.nearest[~kept], rtol=0.1)
    none = as_new(left_out, np.zeros_like(kept), gap=3.0, outside=2.0)
    np.testing.assert_array_equal(none.nearest, 3 * left_out.nearest + 2)
    np.testing.assert_array_equal(none.centre, left_out.centre + 2)


@pytest.mark.parametrize(("n_rows", "n_kept"), [(1_999, 0), (2_000, 100), (10**6, KEPT_ROWS)])
def test_rows_are_kept_out_where_they_are_many(n_rows, n_kept):
    judges = np.arange(0, n_rows, max(1, n_rows // 2048))[:2048]
    kept = kept_out(judges, n_rows)
    assert len(np.unique(kept)) == n_kept
    assert np.isin(kept, judges).all()
    assert len(kept_out(judges[:0], n_rows)) == 0
