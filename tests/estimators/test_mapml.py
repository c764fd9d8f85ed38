"""What MaPML's attributes and predictions are, against plain computations."""

import logging

import numpy as np
import pytest
from helpers import make_blobs
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from latentmetric import MaPML

QUICK = {"n_steps": 300, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return train_test_split(*load_digits(return_X_y=True), random_state=0)


@pytest.fixture(scope="module")
def on_digits(digits):
    X_train, _, y_train, _ = digits
    return MaPML(random_state=0).fit(X_train, y_train)


def test_on_digits_it_beats_the_euclidean_prototypes(digits, on_digits):
    X_train, X_test, y_train, y_test = digits
    prototypes = MaPML(max_iter=0, random_state=0).fit(X_train, y_train)
    assert on_digits.score(X_test, y_test) > prototypes.score(X_test, y_test)
    nearest = KNeighborsClassifier(1).fit(prototypes.latent_examples_, prototypes.latent_labels_)
    prototypes.set_params(n_neighbors=1)
    np.testing.assert_array_equal(prototypes.predict(X_test), nearest.predict(X_test))


def test_shapes_and_order_of_the_fitted_attributes(digits, on_digits):
    _, _, y_train, _ = digits
    assert on_digits.classes_.tolist() == list(range(10))
    counts = np.bincount(on_digits.latent_labels_)
    np.testing.assert_array_equal(counts, np.rint(0.1 * np.bincount(y_train)))
    assert np.all(np.diff(on_digits.latent_labels_) >= 0)
    assert on_digits.latent_examples_.shape == (counts.sum(), 64)
    assert on_digits.components_.shape[1] == 64
    assert on_digits.margins_.shape == (10,)
    assert on_digits.n_iter_ == on_digits.best_iter_ == 10
    assert [record["round"] for record in on_digits.history_] == list(range(11))
    assert set(on_digits.history_[-1]) == {
        "round", "objective", "active_share", "norm", "rank", "mean_margin", "passes", "seconds",
    }  # fmt: skip
    assert set(on_digits.history_[-1]["seconds"]) == {"mining", "metric", "latents"}
    assert on_digits.history_[-1]["mean_margin"] == pytest.approx(on_digits.margins_.mean())
    assert on_digits.history_[-1]["objective"] < on_digits.history_[0]["objective"]


def test_latents_lie_among_the_rows_of_their_class(digits, on_digits):
    X_train, _, y_train, _ = digits
    for label in range(10):
        rows = X_train[y_train == label]
        latents = on_digits.latent_examples_[on_digits.latent_labels_ == label]
        assert np.all(latents >= rows.min(axis=0) - 1e-9)
        assert np.all(latents <= rows.max(axis=0) + 1e-9)
        assert cdist(latents, rows).min() < cdist(latents, X_train[y_train != label]).min() + 30


def test_transform_neighbours_and_metric_agree(digits, on_digits):
    _, X_test, _, _ = digits
    points = on_digits.transform(X_test)
    np.testing.assert_allclose(points, X_test @ on_digits.components_.T)
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


def test_probabilities_of_the_kernel_vote():
    model = MaPML(random_state=0, weights="kernel", max_iter=5).fit(*make_blobs())
    X, _ = make_blobs(seed=1)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    assert len(np.unique(shares)) > 4 * len(X) / 3


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


def test_set_references_votes_with_new_rows(blobs):
    X, y = blobs
    model = MaPML(**QUICK).fit(X, y)
    components = model.components_.copy()
    model.set_references(X[:6], y[:6])
    np.testing.assert_array_equal(model.predict(X[:6])[:1], y[:1])
    assert model.kneighbors(X, 6)[1].max() == 5
    np.testing.assert_array_equal(model.components_, components)


@pytest.mark.parametrize(
    ("latent_ratio", "expected"),
    [
        (0.1, [10, 3, 1]),
        (0.001, [1, 1, 1]),
        (1.0, [100, 30, 2]),
        (1, [1, 1, 1]),
        (np.int64(5), [5, 5, 2]),
        ({"a": 7, "b": 1, "c": 2}, [7, 1, 2]),
    ],
)
def test_how_many_latents_a_class_has(rng, latent_ratio, expected):
    y = np.repeat(["a", "b", "c"], [100, 30, 2])
    X = rng.standard_normal((132, 3))
    model = MaPML(latent_ratio, n_steps=20, max_iter=1, random_state=0).fit(X, y)
    assert [np.sum(model.latent_labels_ == label) for label in "abc"] == expected


def test_the_same_seed_gives_the_same_bits_and_another_does_not(blobs):
    X, y = blobs
    one, same = (MaPML(**QUICK).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.components_, same.components_)
    np.testing.assert_array_equal(one.latent_examples_, same.latent_examples_)
    other = MaPML(**{**QUICK, "random_state": 1}).fit(X, y)
    assert not np.array_equal(one.components_, other.components_)


@pytest.mark.parametrize("weights", ["uniform", "kernel"])
@pytest.mark.parametrize("reference", ["latent", "original"])
def test_early_stopping_returns_the_best_round(reference, weights):
    X, y = make_blobs(n_rows=600)
    model = MaPML(
        early_stopping=True, reference=reference, weights=weights, n_steps=50, metric_reg=0.01,
        random_state=0, max_iter=8,
    ).fit(X, y)  # fmt: skip
    errors = [record["validation_error"] for record in model.history_]
    assert model.history_[model.best_iter_]["validation_error"] == min(errors)
    assert errors.index(min(errors)) == model.best_iter_
    assert model.n_iter_ - model.best_iter_ <= 3


def test_early_stopping_keeps_euclid_where_rounds_only_harm():
    X, y = make_blobs(n_rows=600)
    X[:, :-2] *= 1e-3
    model = MaPML(
        early_stopping=True, n_steps=2, metric_reg=1e-6, random_state=0, validation_fraction=0.3
    ).fit(X, y)
    assert model.best_iter_ == 0
    np.testing.assert_array_equal(model.components_, np.eye(6))


def test_warm_start_goes_on_from_the_last_fit(blobs):
    X, y = blobs
    model = MaPML(warm_start=True, **QUICK).fit(X, y)
    components, latents = model.components_, model.latent_examples_
    model.set_params(max_iter=0).fit(X, y)
    np.testing.assert_array_equal(model.components_, components)
    assert model.latent_examples_.shape == latents.shape
    model.set_params(max_iter=2).fit(X, y)
    assert model.n_iter_ == 5
    assert len(model.history_) == 4 + 1 + 3


def test_rank_is_at_most_n_components(blobs):
    X, y = blobs
    model = MaPML(n_components=2, **QUICK).fit(X, y)
    assert model.components_.shape == (2, 6)
    assert model.score(X, y) > 0.8


def test_verbose_logs_a_line_a_round(blobs, caplog):
    X, y = blobs
    with caplog.at_level(logging.INFO, logger="latentmetric"):
        MaPML(**QUICK).fit(X, y)
        assert not caplog.records
        MaPML(verbose=1, early_stopping=True, **QUICK).fit(X, y)
    assert len(caplog.records) >= 2
    assert "round 0/3" in caplog.records[0].getMessage()
    assert "validation error" in caplog.records[0].getMessage()


def test_an_interrupted_fit_leaves_the_estimator_as_it_was(blobs, monkeypatch):
    X, y = blobs
    model = MaPML(**QUICK).fit(X, y)
    before = dict(vars(model))

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("latentmetric.estimators.mapml.next_state", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], y)
    assert vars(model) == before
    fresh = MaPML(**QUICK)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert set(vars(fresh)) == set(fresh.get_params())
