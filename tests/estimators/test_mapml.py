"""MaPML's attributes and predictions against plain computations."""

import logging

import numpy as np
import pytest
from helpers import make_blobs
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from latentmetric import MaPML
from latentmetric.core.population import LocalPopulation
from latentmetric.core.starts import STARTS
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
    assert set(history[-1]) == {
        "round", "objective", "active_share", "norm", "rank", "mean_margin", "passes", "seconds",
    }  # fmt: skip
    assert set(history[-1]["seconds"]) == {"mining", "metric", "latents"}
    assert history[-1]["mean_margin"] == pytest.approx(as_published.margins_.mean())
    assert history[-1]["objective"] < history[0]["objective"]


def test_the_history_of_a_fit_by_default(by_default):
    first, *rounds = by_default.history_
    assert by_default.n_iter_ == len(rounds) == 5 + 3
    assert [record["round"] for record in rounds] == list(range(1, 9))
    assert [record.get("refinement") for record in rounds] == [None] * 5 + [1, 2, 3]
    assert [("objective" in record) for record in rounds] == [True] * 5 + [False] * 3
    losses = first["start_losses"]
    assert set(losses) == set(first["start_errors"]) == set(STARTS)
    assert first["start"] == min(losses, key=losses.get)
    assert "start" in first["seconds"]
    assert all(set(record["seconds"]) == {"refinement", "judging"} for record in rounds[5:])
    losses = [record["loss"] for record in by_default.history_]
    assert losses.index(min(losses)) == by_default.best_iter_
    assert all(0 <= record["loo_error"] < 0.1 for record in by_default.history_)
    assert rounds[-1]["loss"] < rounds[4]["loss"] < first["loss"]


@pytest.mark.parametrize("start", ["euclidean", "standardized", "within"])
def test_a_given_start_is_the_metric_of_round_zero(blobs, start):
    X, y = blobs
    X = X * [1, 10, 1, 1, 0.1, 1]
    model = MaPML(start=start, max_iter=0, refine=0, random_state=0).fit(X, y)
    assert model.history_[0]["start"] == start
    assert "start_losses" not in model.history_[0]
    metric = model.get_mahalanobis_matrix()
    if start == "within":
        means = np.array([X[y == label].mean(axis=0) for label in range(3)])
        covariance = np.cov((X - means[y]).T, bias=True)
        expected = np.linalg.inv((covariance + np.diag(np.diag(covariance))) / 2)
    else:
        expected = np.eye(6) if start == "euclidean" else np.diag(1 / X.var(axis=0))
    np.testing.assert_allclose(metric / metric[0, 0], expected / expected[0, 0], atol=1e-9)


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
    model = MaPML(random_state=0, weights=weights)
    vars(model).update(
        {k: v for k, v in vars(on_digits).items() if k not in on_digits.get_params()}
    )
    oracle = KNeighborsClassifier(3, weights=weights, algorithm="brute").fit(
        model.transform(model.latent_examples_), model.latent_labels_
    )
    expected = oracle.predict_proba(model.transform(X_test))
    np.testing.assert_allclose(model.predict_proba(X_test), expected, atol=1e-9)
    predicted = model.predict(X_test)
    untied = np.sum(expected == expected.max(axis=1, keepdims=True), axis=1) == 1
    assert untied.mean() > 0.9
    np.testing.assert_array_equal(predicted[untied], np.argmax(expected[untied], axis=1))
    _, indices = model.kneighbors(X_test)
    nearest = model.latent_labels_[indices[:, 0]]
    np.testing.assert_array_equal(predicted[~untied], nearest[~untied])


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
    errors = [record["validation_error"] for record in model.history_]
    assert model.history_[model.best_iter_]["validation_error"] == min(errors)
    assert errors.index(min(errors)) == model.best_iter_
    assert model.n_iter_ == 10 if refine else model.n_iter_ - model.best_iter_ <= 3


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


@pytest.mark.parametrize(
    "parameters",
    [
        {"init": "k-means++"},
        {"latent_reg": 5.0},
        {"metric_reg": 5.0},
        {"target_neighbors": 1},
        {"impostors": 1},
        {"n_components": 3},
        {"max_norm": 1.0},
        {"n_latents": 0.2},
        {"max_passes": 1},
        {"refine": 2},
        {"label_noise": True},
    ],
    ids=lambda parameters: next(iter(parameters)),
)
def test_every_parameter_of_the_algorithms_reaches_them(blobs, parameters):
    quick = {"n_steps": 300, "max_iter": 1, "refine": 1, "start": "standardized"}
    one = MaPML(random_state=0, **quick).fit(*blobs)
    other = MaPML(random_state=0, **quick | parameters).fit(*blobs)
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
    assert len(lines) == 7
    assert "round 0/6: " in lines[0]
    assert "start losses euclidean 0." in lines[0]
    assert "round 3/6: " in lines[3]
    assert "round 4/6 (refinement 1): " in lines[4]
    assert all("validation error" in line for line in lines)
