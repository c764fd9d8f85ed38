"""What few rows choose: the parts of the choice, and the order in which candidates are tried."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric.core.capacity import (
    CAPACITIES,
    RIDGES,
    Candidate,
    Options,
    Trials,
    choose,
    counts_of,
    draw_folds,
    sample_size,
)
from latentmetric.core.quasi_newton import BANDWIDTHS
from latentmetric.core.starts import STARTS
from latentmetric.core.tuning import SIMPLER, TRIAL_FOLDS, TRIAL_ROWS

ALL = Options(STARTS[:3], CAPACITIES, RIDGES, BANDWIDTHS)


def trials_of(X, y, weights=None, folds=None):
    order = np.argsort(y, kind="stable")
    X, y = X[order] - X.mean(axis=0), y[order]
    folds = draw_folds(y, np.random.default_rng(0)) if folds is None else folds
    return Trials(X, y, weights, folds)


class MadeUp(Trials):
    """Trials that fit nothing and lose what ``loss_of`` says."""

    def __init__(self, loss_of):
        super().__init__(*make_blobs(300), None, np.arange(300) % TRIAL_FOLDS)
        self._loss_of = loss_of

    def _run(self, candidate, fold):
        self.losses[candidate, fold] = self._loss_of(candidate, fold)


def test_folds_hold_equally_many_rows_of_each_class():
    positions = np.repeat(np.arange(5), [30, 7, 1, 2, 8])
    folds = draw_folds(positions, np.random.default_rng(0))
    for position in (0, 1, 3, 4):
        counts = np.bincount(folds[positions == position], minlength=TRIAL_FOLDS)
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(folds == -1, positions == 2)
    counts = np.bincount(folds[folds >= 0])
    assert counts.max() - counts.min() <= 1
    other = draw_folds(positions, np.random.default_rng(1))
    assert (folds != other).any()


@pytest.mark.parametrize(
    ("n_latents", "expected"),
    [(1, [1, 1, 1]), (3, [3, 3, 1]), (0.1, [10, 1, 1]), (0.3, [30, 2, 1]), (1.0, [100, 6, 1])],
)
def test_numbers_and_shares_of_latent_examples(n_latents, expected):
    assert counts_of(n_latents, np.array([100, 6, 1])).tolist() == expected


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_classes", "expected"),
    [(50, 4, 2, 50), (4_000, 4, 2, TRIAL_ROWS), (4_000, 60, 2, 500), (4_000, 1_000, 2, 300),
     (4_000, 1_000, 200, 800), (10**6, 1, 10**5, TRIAL_ROWS)],
)  # fmt: skip
def test_the_sample_does_not_grow_with_the_rows(n_rows, n_features, n_classes, expected):
    assert sample_size(n_rows, n_features, n_classes) == expected


def test_rows_that_a_fit_has_not_seen_are_as_far_as_the_others():
    trials, candidate = trials_of(*make_blobs(900)), Candidate("euclidean", 1)
    trials.cost(candidate)
    unseen = trials.unseen(candidate)
    assert unseen.shape == (2, 900)
    np.testing.assert_allclose(unseen.mean(axis=1), 1, atol=0.1)
    whole = trials.unseen_by_whole_fits(candidate, 20)
    assert whole.shape == (2, 300)  # the first fold has enough
    assert np.corrcoef(unseen[:, :300], whole)[[0, 1], [2, 3]].min() > 0.9  # of the same rows


def test_equally_good_candidates_go_to_the_simplest():
    best, record = choose(MadeUp(lambda *_: 0.3), ALL)
    assert (best.start, best.n_latents, best.bandwidth) == ("euclidean", 1, "shared")
    assert record["n_latents"] == 1


@pytest.mark.parametrize(
    "wanted",
    [
        Candidate("within", 0.3, 0.1, "latent"), Candidate("euclidean", 3, 10.0, "shared"),
        Candidate("standardized", 0.1, 1.0, "class"),
    ],
)  # fmt: skip
def test_what_loses_less_in_every_respect_is_chosen(wanted):
    def loss(candidate, fold):
        fields = asdict(candidate)
        return 0.2 + 0.1 * sum(fields[name] != value for name, value in asdict(wanted).items())

    best, record = choose(MadeUp(loss), ALL)
    assert best == wanted
    assert asdict(best).items() <= record.items()
    ours = [one for one in record["tried"] if asdict(wanted).items() <= one.items()]
    assert [one["fold"] for one in ours] == list(range(TRIAL_FOLDS))
    assert len(record["tried"]) < 60


@pytest.mark.parametrize(("share", "n_latents"), [(0.5, 1), (1.5, 3)])
def test_more_latent_examples_must_gain_more_than_a_little(share, n_latents):
    def loss(candidate, fold):
        return 0.3 * (1 - share * SIMPLER * (candidate.n_latents == 3))

    assert choose(MadeUp(loss), ALL)[0].n_latents == n_latents


def test_one_lucky_fold_does_not_decide_the_capacity():
    def loss(candidate, fold):
        return {1: 0.3, 3: 0.28 if fold == 0 else 0.5}.get(candidate.n_latents, 0.9)

    assert choose(MadeUp(loss), ALL)[0].n_latents == 1


def test_fewer_latent_examples_are_tried_with_bandwidths_of_classes():
    def loss(candidate, fold):
        if candidate.bandwidth == "class" and candidate.n_latents == 1:
            return 0.1
        return {1: 0.9, 3: 0.8, 0.1: 0.3, 0.3: 0.4}[candidate.n_latents]

    best, record = choose(MadeUp(loss), ALL)
    assert (best.n_latents, best.bandwidth) == (1, "class")
    folds = [
        one["fold"]
        for one in record["tried"]
        if (one["n_latents"], one["bandwidth"]) == (3, "class")
    ]
    assert folds == [0]  # one was enough to see that it is worse


def test_a_single_option_is_a_decision():
    given = Options(("within",), (0.27,), (0.5,), ("class",))
    best, record = choose(MadeUp(lambda *_: 0.3), given)
    assert best == Candidate("within", 0.27, 0.5, "class")
    assert len(record["tried"]) == TRIAL_FOLDS


def test_rows_that_cannot_be_left_out_choose_the_simplest_and_the_strongest_ridge():
    X, y = make_blobs(4, 4)
    trials = trials_of(X, y)
    assert trials.folds == []
    best, record = choose(trials, ALL)
    assert best == Candidate("euclidean", 1, RIDGES[-1], "shared")
    assert record["tried"] == []


def test_the_loss_is_that_of_the_rows_left_out():
    """One latent example a class that hardly moves: the vote of the means of the other rows."""
    X, y = make_blobs(90)
    trials = trials_of(X, y)
    held = Candidate("euclidean", 1, 1e9, "shared")
    trials.cost(held)
    rows, positions, folds = trials._rows, trials._positions, trials._folds
    for fold in range(TRIAL_FOLDS):
        seen, unseen = folds != fold, folds == fold
        means = np.array([rows[seen & (positions == label)].mean(axis=0) for label in range(3)])
        vote, _ = trials._starts["euclidean", fold, 1]
        np.testing.assert_allclose(vote.points, means, atol=1e-5)
        exponents = -np.square(rows[unseen][:, None] - means).sum(axis=2) / vote.temperature
        shares = np.exp(exponents) / np.exp(exponents).sum(axis=1, keepdims=True)
        right = shares[np.arange(unseen.sum()), positions[unseen]]
        expected = -np.log(np.maximum(right, 1e-3)).mean()
        assert trials.losses[held, fold] == pytest.approx(expected, rel=1e-3)


def test_weights_count_as_rows():
    X, y = make_blobs(60)
    order = np.argsort(y, kind="stable")
    times = np.random.default_rng(0).choice([1, 9], 60)
    folds = draw_folds(y[order], np.random.default_rng(0))
    weighted = Trials(X[order], y[order], times.astype(float), folds)
    rows, positions, parts = (
        np.repeat(part, times, axis=0) for part in (X[order], y[order], folds)
    )
    repeated, plain = Trials(rows, positions, None, parts), Trials(X[order], y[order], None, folds)
    held = Candidate("within", 1, 1e9, "shared")
    # A row is left out with all its weight, and of equal rows one: the temperature differs a bit.
    assert weighted.cost(held) == pytest.approx(repeated.cost(held), rel=0.05)
    assert plain.cost(held) != pytest.approx(repeated.cost(held), rel=0.15)


def test_complexity_counts_steps_from_the_simplest():
    simplest = Candidate(n_latents=1)
    assert simplest.complexity == 0
    assert [replace(simplest, n_latents=n).complexity for n in CAPACITIES] == [0, 1, 2, 3]
    assert [replace(simplest, bandwidth=b).complexity for b in BANDWIDTHS] == [0, 2, 4]
    assert replace(simplest, n_latents=0.27).complexity == 0  # a decision of the caller


def test_capacities_that_rows_left_out_cannot_tell_apart_are_not_tried():
    X, y = make_blobs(20)
    two_a_class = trials_of(X, np.arange(20) // 2)
    assert two_a_class.different(CAPACITIES) == [1]
    assert trials_of(X, np.arange(20) // 5).different(CAPACITIES) == [1, 3]
    assert trials_of(X, y).different((0.27,)) == [0.27]
