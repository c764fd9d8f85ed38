"""What MaPML chooses for few rows, and what it makes of them, beside scikit-learn's classifiers."""

import warnings

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import NearestCentroid

from latentmetric import MaPML
from latentmetric.core.tuning import DENSE_ROWS, EASY_ROWS


def chosen_by(X, y, **parameters):
    first = MaPML(random_state=0, **parameters).fit(X, y).history_[0]
    return tuple(first[name] for name in ("start", "n_latents", "ridge", "bandwidth"))


def gaussians(n_rows, n_features, seed):
    """Two classes that overlap: the Bayes error is 20 %."""
    y = np.arange(n_rows) % 2
    X = np.random.default_rng(seed).standard_normal((n_rows, n_features))
    X[:, 0] += 1.683 * y
    return X, y


def nested(n_rows, seed):
    """Two classes with the same mean, one of which is wider."""
    y = np.arange(n_rows) % 2
    X = np.random.default_rng(seed).standard_normal((n_rows, 10))
    return X * np.where(y, 3, 1)[:, None], y


def clusters(n_rows, seed):
    """Two classes of twelve clusters each."""
    centres = np.random.default_rng(2).uniform(-8, 8, (24, 2))
    generator = np.random.default_rng(seed)
    of_rows = generator.integers(0, 24, n_rows)
    return centres[of_rows] + 0.5 * generator.standard_normal((n_rows, 2)), of_rows % 2


@pytest.mark.parametrize(("n_rows", "n_features"), [(100, 2), (300, 10), (1000, 5)])
def test_classes_that_overlap_have_few_latent_examples_and_the_error_of_a_line(n_rows, n_features):
    errors, chosen = [], []
    for seed in range(12):
        X, y = gaussians(n_rows, n_features, seed)
        queries, truth = gaussians(10_000, n_features, seed + 100)
        model = MaPML(random_state=0).fit(X, y)
        chosen.append(model.n_latents_)
        line = LogisticRegression().fit(X, y)
        errors.append([1 - fitted.score(queries, truth) for fitted in (model, line)])
    assert chosen.count(1) >= 8
    ours, theirs = np.mean(errors, axis=0)
    assert ours < theirs + 0.005


def test_classes_of_many_clusters_have_many_latent_examples():
    X, y = clusters(600, 0)
    queries, truth = clusters(3000, 1)
    model = MaPML(random_state=0).fit(X, y)
    assert len(model.latent_examples_) >= 24
    assert model.score(queries, truth) > 0.88
    assert MaPML(1, random_state=0).fit(X, y).score(queries, truth) < 0.75


def test_classes_that_scatter_differently_have_bandwidths_of_their_own():
    X, y = nested(400, 0)
    queries, truth = nested(3000, 1)
    model = MaPML(random_state=0).fit(X, y)
    assert model.history_[0]["bandwidth"] != "shared"
    assert model.model_.log_scales.std() > 0.1
    shared = MaPML(bandwidth="shared", random_state=0).fit(X, y)
    assert not shared.model_.log_scales.any()
    assert model.score(queries, truth) > shared.score(queries, truth) + 0.02


@pytest.mark.parametrize(
    ("parameters", "position", "value"),
    [({"start": "within"}, 0, "within"), ({"n_latents": 0.27}, 1, 0.27), ({"n_latents": 5}, 1, 5),
     ({"ridge": 0.3}, 2, 0.3), ({"bandwidth": "latent"}, 3, "latent")],
)  # fmt: skip
def test_what_is_given_is_not_chosen(blobs, parameters, position, value):
    assert chosen_by(*blobs, **parameters)[position] == value
    tried = MaPML(random_state=0, **parameters).fit(*blobs).history_[0]["tried"]
    name = next(iter(parameters))
    assert {one[name] for one in tried} == {value}


def test_a_number_of_latent_examples_is_that_number():
    X, y = make_blobs(120)
    assert len(MaPML(7, random_state=0).fit(X, y).latent_examples_) == 21
    counts = {0: 1, 1: 12, 2: 3}
    model = MaPML(counts, random_state=0).fit(X, y)
    assert dict(zip(*np.unique(model.latent_labels_, return_counts=True), strict=True)) == counts
    assert model.n_latents_ == counts


@pytest.mark.parametrize("sizes", [[30, 1, 1], [1, 1, 1], [2, 1], [2, 2], [40, 3, 1, 2]])
def test_classes_of_a_single_row(rng, sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(y), 3)) + 6 * np.eye(4, 3)[y]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MaPML(random_state=0).fit(X, y)
        shares = model.predict_proba(X)
    assert (shares > 0).all()
    assert model.score(X, y) >= 0.9


@pytest.mark.parametrize("n_rows", [60, 400])
def test_neither_the_order_of_rows_nor_the_names_of_classes_change_the_fit(n_rows):
    X, y = make_blobs(n_rows)
    queries, _ = make_blobs(300, seed=1)
    expected, chosen = MaPML(random_state=0).fit(X, y).predict_proba(queries), chosen_by(X, y)
    order = np.random.default_rng(0).permutation(n_rows)
    for names in (np.array([0, 1, 2]), np.array(["c", "a", "b"]), np.array([2, 1, 0])):
        labels = names[y][order]
        assert chosen_by(X[order], labels) == chosen
        model = MaPML(random_state=0).fit(X[order], labels)
        found = model.predict_proba(queries)[:, np.searchsorted(model.classes_, names)]
        np.testing.assert_allclose(found, expected, atol=1e-4)


def with_times(X, spread, seed):
    """The rows with a column of timestamps, which say nothing of the classes."""
    times = 1.7e9 + spread * np.random.default_rng(seed).random((len(X), 1))
    return np.hstack((X, times))


def noisy_iris(n_rows, seed):
    X, y = load_iris(return_X_y=True)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, 150, n_rows)
    return X[drawn] + 0.1 * generator.standard_normal((n_rows, 4)), y[drawn]


@pytest.mark.parametrize("start", ["auto", "standardized", "within"])
@pytest.mark.parametrize("n_rows", [100, 6000])
def test_a_column_of_timestamps_does_no_harm(start, n_rows, short_passes):
    X, y = noisy_iris(n_rows, 0)
    queries, truth = noisy_iris(1000, 1)
    model = MaPML(start=start, random_state=0, n_steps=2000).fit(X, y)
    error = 1 - model.score(queries, truth)
    assert error < 0.06
    for spread in (1e3, 1e13):
        model = MaPML(start=start, random_state=0, n_steps=2000)
        model.fit(with_times(X, spread, 2), y)
        assert 1 - model.score(with_times(queries, spread, 3), truth) < error + 0.02


@pytest.mark.parametrize("n_rows", [100, 300])
def test_random_labels_do_not_leave_columns_of_different_units_as_they_are(n_rows):
    for seed in range(6):
        generator = np.random.default_rng(seed)
        X = generator.standard_normal((n_rows, 5)) * [1, 20, 1, 400, 3]
        assert chosen_by(X, generator.integers(0, 2, n_rows))[0] != "euclidean"


SETS = {"digits": load_digits, "wine": load_wine}


@pytest.mark.parametrize("parameters", [{}, {"bandwidth": "latent"}, {"reference": "original"}])
@pytest.mark.parametrize("name", ["wine", "digits"])
def test_no_probability_is_0(name, parameters):
    X, y = SETS[name](return_X_y=True)
    X, y, queries, truth = X[::2], y[::2], X[1::2], y[1::2]
    model = MaPML(random_state=0, **parameters).fit(X, y)
    for rows in (queries, queries * 3, queries.astype(np.float32)):
        shares = model.predict_proba(rows)
        assert (shares > 0).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
        np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shares = model.predict_proba(queries)
        loss = log_loss(truth, shares)
    right = shares[np.arange(len(truth)), np.searchsorted(model.classes_, truth)]
    assert loss == pytest.approx(-np.log(right).mean(), rel=1e-6)  # nothing is clipped
    assert loss < 0.3


@pytest.mark.parametrize("name", ["digits", "wine"])
@pytest.mark.parametrize("n_rows", [1, 3, 10])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_a_few_rows_a_class_are_worth_no_less_than_their_means(name, n_rows):
    X, y = SETS[name](return_X_y=True)
    differences = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        known = np.concatenate(
            [generator.permutation(np.flatnonzero(y == label))[:n_rows] for label in np.unique(y)]
        )
        others = np.setdiff1d(np.arange(len(y)), known)
        ours, theirs = (
            model.fit(X[known], y[known]).score(X[others], y[others])
            for model in (MaPML(random_state=0), NearestCentroid())
        )
        differences.append(ours - theirs)
    noise = np.std(differences) / 2
    assert np.mean(differences) > -max(2 * noise, 0.002)


def test_many_rows_are_refined_in_batches_and_few_at_once(short_passes):
    for n_rows, n_passes in ((DENSE_ROWS, 1), (DENSE_ROWS + 500, 6)):
        X, y = make_blobs(n_rows)
        model = MaPML(random_state=0, n_steps=200).fit(X, y)
        assert model.history_[-1]["refinement"] == n_passes
        assert ("tried" in model.history_[0]) == (n_passes == 1)
    assert "refinement" not in MaPML(random_state=0, refine=0).fit(X, y).history_[-1]


def test_more_rows_are_refined_at_once_where_batches_would_lose():
    rng = np.random.default_rng(0)
    y = np.arange(2_000) % 2
    overlapping = rng.standard_normal((2_000, 2)) + 0.5 * y[:, None]
    nested = rng.standard_normal((2_000, 20)) * (1 + y)[:, None]
    for X, own in ((overlapping, False), (nested, True)):
        chosen = MaPML(random_state=0).fit(X, y).history_[0]
        assert (chosen["bandwidth"] != "shared") == own
    y = np.arange(EASY_ROWS + 1) % 2
    apart = rng.standard_normal((len(y), 2)) + 5 * y[:, None]
    easy = MaPML(random_state=0, n_steps=200, refine=1)
    assert "ridge" not in easy.fit(apart, y).history_[0]
    assert "ridge" in easy.fit(apart[1:], y[1:]).history_[0]
    held = MaPML(random_state=0, ridge=0.5).fit(apart, y).history_[0]
    assert held["ridge"] == 0.5  # what was asked for
    wide = np.random.default_rng(0).standard_normal((1000, 800))
    model = MaPML(random_state=0, n_steps=50, start="euclidean", refine=1, max_iter=0)
    model.fit(wide, np.arange(1000) % 2)
    assert "tried" not in model.history_[0]  # few rows, but so many features


def test_a_warm_start_keeps_what_was_chosen_however_often():
    rng = np.random.default_rng(0)
    y = np.arange(1_000) % 2
    X = rng.standard_normal((1_000, 20)) * (1 + y)[:, None]
    model = MaPML(random_state=0, warm_start=True)
    bandwidths = [model.fit(X, y).history_[0]["bandwidth"] for _ in range(3)]
    assert bandwidths == ["class"] * 3


def test_a_large_number_of_latent_examples_is_tried_as_the_share_that_it_is():
    rng = np.random.default_rng(0)
    y = np.arange(2_000) % 2
    X = rng.standard_normal((2_000, 2)) + 0.7 * y[:, None]
    fits = [MaPML(n_latents, random_state=0, ridge=1.0).fit(X, y) for n_latents in (300, 0.3)]
    shares = [np.mean(fitted.score_samples(X) < fitted.reject_threshold(0.2)) for fitted in fits]
    assert shares[0] == pytest.approx(shares[1], abs=0.01)
    assert fits[0].history_[0]["n_latents"] == 300
