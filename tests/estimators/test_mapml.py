"""MaPML's attributes and predictions against plain computations."""

import logging
from copy import copy, deepcopy

import numpy as np
import pytest
from helpers import make_blobs
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from latentmetric import MaPML
from latentmetric.core.capacity import CAPACITIES
from latentmetric.core.population import LocalPopulation
from latentmetric.core.starts import STARTS
from latentmetric.core.tuning import USUAL_ROUNDS, USUAL_SHARE
from latentmetric.estimators.base import generator_from

QUICK = {"n_steps": 300, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return train_test_split(*load_digits(return_X_y=True), random_state=0)


@pytest.fixture(scope="module")
def as_published(digits):
    X_train, _, y_train, _ = digits
    return MaPML.as_published(random_state=0).fit(X_train, y_train)


@pytest.fixture(scope="module")
def by_default(digits):
    X_train, _, y_train, _ = digits
    return MaPML(random_state=0).fit(X_train, y_train)


@pytest.fixture(params=["as_published", "by_default"])
def on_digits(request):
    return request.getfixturevalue(request.param)


def test_on_digits_it_beats_the_euclidean_prototypes(digits, on_digits):
    X_train, X_test, y_train, y_test = digits
    prototypes = MaPML.as_published(max_iter=0, random_state=0).fit(X_train, y_train)
    assert on_digits.score(X_test, y_test) > prototypes.score(X_test, y_test)
    nearest = KNeighborsClassifier(1).fit(prototypes.latent_examples_, prototypes.latent_labels_)
    prototypes.set_params(n_neighbors=1)
    np.testing.assert_array_equal(prototypes.predict(X_test), nearest.predict(X_test))


def test_the_history_of_the_algorithm_as_published(as_published):
    history = as_published.history_
    assert as_published.n_iter_ == as_published.best_iter_ == 10
    assert [record["round"] for record in history] == list(range(11))
    assert history[0]["start"] == "euclidean"
    assert not any(record.keys() & {"loss", "refinement"} for record in history)
    assert history[-1]["mean_margin"] == pytest.approx(as_published.margins_.mean())
    assert history[-1]["objective"] < history[0]["objective"]


def test_the_history_of_a_fit_by_default(by_default):
    first, refined = by_default.history_
    assert (first["round"], refined["round"], refined["refinement"]) == (0, 1, 1)
    chosen = {name: first[name] for name in ("start", "n_latents", "ridge", "bandwidth")}
    assert sum(chosen.items() <= one.items() for one in first["tried"]) == 3  # a fold each
    assert {one["start"] for one in first["tried"]} == set(STARTS)
    assert {one["n_latents"] for one in first["tried"]} == set(CAPACITIES)
    assert by_default.n_latents_ == first["n_latents"]
    assert refined["loss"] < first["loss"]
    assert 0 <= refined["loo_error"] <= first["loo_error"] < 0.2
    assert by_default.best_iter_ == by_default.n_iter_ == 1


def test_few_rows_have_no_rounds_before_a_refinement(digits, in_batches):
    X_train, _, y_train, _ = digits
    for n_rows, given, rounds in (
        (400, {}, 0),
        (None, {}, USUAL_ROUNDS),
        (400, {"n_components": 5}, USUAL_ROUNDS),
        (400, {"refine": 0}, USUAL_ROUNDS),
        (400, {"max_iter": 1}, 1),
    ):
        model = MaPML(n_latents=0.1, start="euclidean", random_state=0, **given)
        model.fit(X_train[:n_rows], y_train[:n_rows])
        assert sum("refinement" not in one for one in model.history_[1:]) == rounds


def test_the_history_of_a_fit_in_batches(digits, in_batches):
    X_train, _, y_train, _ = digits
    model = MaPML(random_state=0).fit(X_train, y_train)
    first, *rounds = model.history_
    assert [record["round"] for record in rounds] == list(range(1, 4 + USUAL_ROUNDS))
    assert [record.get("refinement") for record in rounds] == [None] * USUAL_ROUNDS + [1, 2, 3]
    losses = first["start_losses"]
    assert set(losses) == set(first["start_errors"]) == set(STARTS)
    assert first["start"] == min(losses, key=losses.get)
    losses = [record["loss"] for record in model.history_]
    assert losses.index(min(losses)) == model.best_iter_
    assert all(0 <= record["loo_error"] < 0.1 for record in model.history_)
    assert losses[-1] < losses[5] < losses[0]
    assert len(model.latent_examples_) == pytest.approx(USUAL_SHARE * len(X_train), abs=5)


def test_many_rows_have_two_sets_of_latent_examples(in_batches, short_passes, monkeypatch):
    """With 64 rows for each feature: twice the usual share, or the usual one of very many rows."""
    X, y = make_blobs(600, 3, 6)
    sets = {}
    for name, n_many, given in (
        ("many", 10_000, {}),
        ("very many", 600, {}),
        ("given", 600, {"n_latents": 0.15}),
        ("not refined", 600, {"refine": 0}),
    ):
        monkeypatch.setattr("latentmetric.estimators.setup.MANY_ROWS", n_many)
        sets[name] = model = MaPML(max_iter=1, random_state=0, **given).fit(X, y)
        share = 0.3 if name == "many" else 0.15
        assert model.n_latents_ == share
        assert len(model.latent_examples_) == pytest.approx(share * len(X), abs=4)
        assert model.n_sets_ == 2 - (name in ("given", "not refined"))
        np.testing.assert_allclose(model.latent_counts_.sum(), len(X))
    assert sets["many"].score(X, y) >= sets["not refined"].score(X, y)
    few = MaPML(max_iter=1, random_state=0).fit(X[:300], y[:300])
    assert len(few.latent_examples_) == pytest.approx(0.15 * 300, abs=3)
    assert few.n_sets_ == 1


def test_a_warm_start_draws_the_second_set_anew(in_batches, short_passes):
    X, y = make_blobs(600, 3, 6)
    model = MaPML(max_iter=0, random_state=0, warm_start=True).fit(X, y)
    score = model.score(X, y)
    model.partial_fit(X[:150] + 5, y[:150])  # classes get more, some an odd number
    n_latents = len(model.latent_examples_)
    for _ in range(2):
        model.fit(X, y)
        assert model.n_sets_ == 2
        np.testing.assert_allclose(model.latent_counts_.sum(), len(X))
        assert model.score(X, y) > score - 0.05
        assert n_latents <= len(model.latent_examples_) <= n_latents + 3  # as many in each set
    n_latents = len(model.latent_examples_)
    again = deepcopy(model).fit(X[:21], y[:21])  # fewer rows than latent examples of a set
    assert again.n_sets_ == 1
    assert len(model.set_params(refine=0).fit(X, y).latent_examples_) == n_latents


def test_transform_neighbours_and_metric_agree(digits, on_digits):
    _, X_test, _, _ = digits
    points = on_digits.transform(X_test)
    centred = X_test - digits[0].mean(axis=0)
    np.testing.assert_allclose(points, centred @ on_digits.components_.T, atol=1e-12)
    squared = cdist(points, on_digits.transform(on_digits.latent_examples_), "sqeuclidean")
    distances, indices = on_digits.kneighbors(X_test, 5)
    np.testing.assert_array_equal(indices, np.argsort(squared, axis=1)[:, :5])
    np.testing.assert_allclose(distances**2, np.sort(squared, axis=1)[:, :5], rtol=1e-8)
    difference = X_test[3] - on_digits.latent_examples_[indices[3, 1]]
    metric = on_digits.get_mahalanobis_matrix()
    assert difference @ metric @ difference == pytest.approx(distances[3, 1] ** 2)
    np.testing.assert_array_equal(on_digits.kneighbors(X_test, 5, return_distance=False), indices)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_votes_are_those_of_k_nn_under_the_metric(digits, on_digits, weights):
    _, X_test, _, _ = digits
    model = copy(on_digits).set_params(weights=weights)
    oracle = KNeighborsClassifier(3, weights=weights, algorithm="brute").fit(
        model.transform(model.latent_examples_), model.latent_labels_
    )
    expected = oracle.predict_proba(model.transform(X_test))
    np.testing.assert_allclose(model.predict_proba(X_test), expected, atol=1e-9)
    untied = np.sum(expected == expected.max(axis=1, keepdims=True), axis=1) == 1
    assert untied.mean() > 0.9
    nearest = model.latent_labels_[model.kneighbors(X_test, 1)[1][:, 0]]
    voted = np.where(untied, np.argmax(expected, axis=1), nearest)
    np.testing.assert_array_equal(model.predict(X_test), voted)


def test_original_references_are_the_rows_in_their_order(blobs):
    X, y = blobs
    model = MaPML(reference="original", **QUICK).fit(X, y)
    distances, indices = model.kneighbors(X, 1)
    np.testing.assert_array_equal(indices[:, 0], np.arange(len(X)))
    np.testing.assert_array_equal(distances, 0)
    latent = MaPML(**QUICK).fit(X, y)
    np.testing.assert_array_equal(latent.components_, model.components_)
    queries, _ = make_blobs(seed=1)
    swapped = latent.set_references(X, y)
    np.testing.assert_array_equal(swapped.predict(queries), model.predict(queries))


@pytest.mark.parametrize(
    ("n_latents", "expected"),
    [
        (0.1, [10, 3, 1]),
        (0.001, [1, 1, 1]),
        (1.0, [100, 30, 2]),
        (1, [1, 1, 1]),
        (np.int64(5), [5, 5, 2]),
        ({"a": 7, "b": 1, "c": 2}, [7, 1, 2]),
    ],
)
def test_how_many_latents_a_class_has(rng, n_latents, expected):
    y = np.repeat(["a", "b", "c"], [100, 30, 2])
    X = rng.standard_normal((132, 3))
    model = MaPML(n_latents, n_steps=20, max_iter=1, random_state=0).fit(X, y)
    assert [np.sum(model.latent_labels_ == label) for label in "abc"] == expected


@pytest.mark.parametrize(
    ("refine", "weights", "reference"),
    [(0, "uniform", "latent"), (2, "kernel", "original"), (0, "kernel", "original")],
)
def test_early_stopping_returns_the_best_round(reference, weights, refine):
    X, y = make_blobs(n_rows=600)
    model = MaPML(
        early_stopping=True, reference=reference, weights=weights, n_steps=50, metric_reg=0.01,
        random_state=0, max_iter=8, refine=refine,
    ).fit(X, y)  # fmt: skip
    measured = [(r["validation_error"], r.get("validation_loss", 0)) for r in model.history_]
    assert measured.index(min(measured)) == model.best_iter_
    assert model.n_iter_ == 9 if refine else model.n_iter_ - model.best_iter_ <= 3


def test_held_out_rows_that_tie_choose_by_their_likelihood():
    """Of few rows without errors, as before anything is learned, the refinement is not undone."""
    X, y = load_iris(return_X_y=True)
    model = MaPML(n_latents=3, bandwidth="shared", early_stopping=True, random_state=0).fit(X, y)
    first, last = model.history_
    assert first["validation_error"] == last["validation_error"]
    assert first["validation_loss"] > last["validation_loss"]
    assert model.best_iter_ == 1
    assert log_loss(y, model.predict_proba(X)) < 0.15


def test_warm_start_continues_from_the_last_fit(blobs):
    X, y = blobs
    model = MaPML.as_published(warm_start=True, **QUICK).fit(X, y)
    components, latents = model.components_, model.latent_examples_
    model.set_params(max_iter=0).fit(X, y)
    np.testing.assert_array_equal(model.components_, components)
    np.testing.assert_allclose(model.latent_examples_, latents)
    model.set_params(max_iter=2, max_norm=0.5).fit(X, y)
    assert model.n_iter_ == 2
    assert [record["round"] for record in model.history_] == [0, 1, 2]
    assert model.history_[0]["norm"] == pytest.approx(0.5 * np.sqrt(6))


IN_BATCHES = {"n_steps": 300, "max_iter": 1, "refine": 1, "start": "standardized"}
AT_ONCE = {"n_latents": 0.2, "ridge": 1.0, "bandwidth": "shared", "start": "standardized"}


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        *[(IN_BATCHES, name, 1) for name in ("target_neighbors", "impostors", "max_passes")],
        *[(IN_BATCHES, name, 5.0) for name in ("latent_reg", "metric_reg")],
        (IN_BATCHES, "init", "spaced"),
        (IN_BATCHES, "n_components", 3),
        (IN_BATCHES, "max_norm", 1.0),
        (IN_BATCHES, "n_latents", 0.2),
        (IN_BATCHES, "refine", 2),
        (IN_BATCHES, "label_noise", True),
        (AT_ONCE, "init", "random"),
        (AT_ONCE, "latent_reg", 5.0),
        (AT_ONCE, "n_components", 3),
        (AT_ONCE, "max_norm", 0.5),
        (AT_ONCE, "n_latents", 3),
        (AT_ONCE, "ridge", 0.2),
        (AT_ONCE, "bandwidth", "latent"),
        (AT_ONCE, "max_iter", 2),
        (AT_ONCE, "label_noise", True),
    ],
)
def test_every_parameter_reaches_the_algorithms(request, blobs, given, name, value):
    if given is IN_BATCHES:
        request.getfixturevalue("in_batches")
    one = MaPML(random_state=0, **given).fit(*blobs)
    other = MaPML(random_state=0, **given | {name: value}).fit(*blobs)
    assert not np.array_equal(one.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())


def test_held_out_rows_neither_train_nor_vote_and_measure_the_error():
    X, y = make_blobs(n_rows=300)
    parameters = {"early_stopping": True, "validation_fraction": 0.2, "reference": "original"}
    model = MaPML.as_published(**QUICK | {"max_iter": 0}, **parameters).fit(X, y)
    training, held_out = LocalPopulation.of(X, y).hold_out(0.2, generator_from(0))
    kept = np.setdiff1d(np.arange(300), held_out)
    assert len(held_out) == 60
    assert model.latent_counts_.sum() == training.sizes.sum() == 240
    assert model.kneighbors(X, 1)[1].max() == 299
    error = np.mean(
        KNeighborsClassifier(3).fit(X[kept], y[kept]).predict(X[held_out]) != y[held_out]
    )
    assert model.history_[0]["validation_error"] == pytest.approx(error, abs=1.5 / 60)


def test_parameters_of_the_vote_may_change_after_fit_and_are_checked(blobs):
    X, y = blobs
    model = MaPML(**QUICK).fit(X, y)
    one = MaPML(**QUICK, n_neighbors=1).fit(X, y)
    np.testing.assert_array_equal(model.set_params(n_neighbors=1).predict(X), one.predict(X))
    for bad in ({"weights": "bogus"}, {"n_neighbors": 0}, {"n_neighbors": -1}, {"n_jobs": 0}):
        model = MaPML(**QUICK).fit(X, y).set_params(**bad)
        with pytest.raises(ValueError, match=next(iter(bad))):
            model.predict(X)


def test_verbose_logs_a_line_per_round(blobs, caplog):
    X, y = blobs
    with caplog.at_level(logging.INFO, logger="latentmetric"):
        MaPML(**QUICK).fit(X, y)
        assert not caplog.records
        MaPML(verbose=1, early_stopping=True, **QUICK).fit(X, y)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 5
    assert "round 0/4: " in lines[0]
    for name in (", start ", " latent example", ", ridge ", ", bandwidth "):
        assert name in lines[0]
    assert "tried" not in lines[0]
    assert "round 3/4: " in lines[3]
    assert "round 4/4 (refinement 1): " in lines[4]
    assert all("validation error" in line for line in lines)


@pytest.mark.parametrize(
    ("n_latents", "words"),
    [
        (1, ", 1 latent example a class, "),
        (3, ", 3 latent examples a class, "),
        (0.1, ", latent examples for 10% of the rows, "),
        ({0: 1, 1: 2, 2: 3}, ", start within, ridge "),
    ],
)
def test_verbose_says_how_many_latent_examples_there_are(blobs, caplog, n_latents, words):
    with caplog.at_level(logging.INFO, logger="latentmetric"):
        MaPML(n_latents, start="within", verbose=1, random_state=0).fit(*blobs)
    assert words in caplog.records[0].getMessage()


@pytest.mark.usefixtures("in_batches")
def test_verbose_logs_the_starts_that_raced(blobs, caplog):
    with caplog.at_level(logging.INFO, logger="latentmetric"):
        MaPML(verbose=1, **QUICK).fit(*blobs)
    assert "start losses euclidean 0." in caplog.records[0].getMessage()
    assert "round 6/6 (refinement 3): " in caplog.records[6].getMessage()
