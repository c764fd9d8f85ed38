"""Rows of unknown classes: their scores and their rejection."""

import numpy as np
import pytest

from latentmetric import OASIS, Euclidean, MaPML

QUICK = {"n_steps": 300, "max_iter": 2, "random_state": 0}


@pytest.fixture
def model(blobs):
    return MaPML(**QUICK).fit(*blobs)


@pytest.mark.parametrize("estimator", [Euclidean(), MaPML(**QUICK)])
def test_the_score_compares_the_nearest_reference_with_the_centre(blobs, estimator):
    X, y = blobs
    estimator.fit(X[::2], y[::2])
    distances, _ = estimator.kneighbors(X, 1)
    usual = estimator.model_.usual_distances
    unit = estimator.model_.coordinates.unit
    expected = (estimator.transform(X) ** 2).sum(axis=1) / (usual.centre * unit)
    expected -= distances[:, 0] ** 2 / (usual.nearest * unit)
    np.testing.assert_allclose(estimator.score_samples(X), expected, atol=1e-9)


def test_the_score_of_a_similarity_is_the_largest_one(blobs):
    X, y = blobs
    model = OASIS(psd=False, n_steps=500).fit(X[::2], y[::2])
    distances, _ = model.kneighbors(X, 1)
    np.testing.assert_array_equal(model.score_samples(X), -distances[:, 0])


@pytest.mark.parametrize("estimator", [Euclidean(), MaPML(**QUICK)])
def test_far_rows_score_low_in_every_direction_and_units_do_not_matter(blobs, estimator, rng):
    X, y = blobs
    scores = estimator.fit(X, y).score_samples(X)
    away = rng.standard_normal((20, X.shape[1]))
    away *= 100 * np.abs(X).max() / np.linalg.norm(away, axis=1, keepdims=True)
    assert estimator.score_samples(X.mean(axis=0) + away).max() < scores.min()
    scaled = estimator.fit(1000 * X, y).score_samples(1000 * X)
    np.testing.assert_allclose(scaled, scores, rtol=1e-5, atol=1e-5)


def test_known_rows_score_0_in_the_mean(blobs):
    X, y = blobs
    model = MaPML(**QUICK).fit(X, y)
    assert len(model.known_scores_) == len(X)
    assert (np.diff(model.known_scores_) >= 0).all()
    usual = model.model_.usual
    assert usual.centre > 2 * usual.nearest
    assert abs(model.known_scores_.mean()) < 1e-6


def test_few_rows_warn_of_what_a_threshold_may_reject(blobs):
    X, y = blobs
    model = MaPML(**QUICK).fit(X, y)
    model.known_scores_ = np.arange(60.0)
    with pytest.warns(
        UserWarning, match=r"0.05 is 3 of the 60 rows .* reject 1.8 to 11.3 % of new"
    ):
        assert model.reject_threshold(0.05) == pytest.approx(2.05)
    assert model.reject_threshold(0.5) == pytest.approx(29.5)


@pytest.mark.parametrize("n_rows", [150, 300, 600, 1200])
def test_few_rows_for_each_feature_are_rejected_as_rarely_as_asked_for(n_rows, rng):
    """A fit suits such rows one by one, so that new ones are farther than they are."""
    scales = (1 + np.arange(100.0)) ** -0.3
    centres = rng.normal(0, 0.7, (6, 100))
    y, new = np.arange(n_rows) % 6, np.arange(2_000) % 6
    rows, queries = ((centres[of] + rng.normal(size=(len(of), 100))) * scales for of in (y, new))
    model = MaPML(random_state=0).fit(rows, y)
    assert 0.02 < np.mean(model.score_samples(queries) < model.reject_threshold(0.1)) < 0.2


@pytest.mark.parametrize(("weights", "many"), [("uniform", 1), ("kernel", 1), ("kernel", 10_000)])
def test_rows_with_low_scores_are_rejected_and_others_are_unchanged(
    blobs, model, weights, many, monkeypatch
):
    monkeypatch.setattr("latentmetric.estimators.answering.MANY_VOTERS", many)
    X, _ = blobs
    model.set_params(weights=weights)
    scores = model.score_samples(X)
    threshold = float(np.quantile(scores, 0.3))
    predicted = model.predict(X, reject_below=threshold, reject_label=-1)
    expected = np.where(scores < threshold, -1, model.predict(X))
    np.testing.assert_array_equal(predicted, expected)
    assert np.mean(predicted == -1) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    ("names", "reject_label", "dtype"),
    [
        (np.array(["a", "b", "c"]), "unknown", "<U7"),
        (np.array(["a", "b", "c"], dtype=object), "unknown", "O"),
        (np.array([0, 1, 2], dtype=np.uint8), -1, "int16"),
        (np.array([0.0, 1.0, 2.0]), -1.0, "float64"),
    ],
)
def test_labels_of_every_kind(blobs, names, reject_label, dtype):
    X, y = blobs
    model = Euclidean().fit(X, names[y])
    predicted = model.predict(X + 100, reject_below=-1.0, reject_label=reject_label)
    assert predicted.dtype == dtype
    assert set(predicted.tolist()) == {reject_label}
    model.set_params(n_neighbors=1)
    kept = model.predict(X, reject_below=-1.0, reject_label=reject_label)
    assert kept.dtype == dtype
    np.testing.assert_array_equal(kept, names[y])


@pytest.mark.parametrize(
    ("below", "label", "message"),
    [
        (-1.0, None, "such as -1, got None"),
        (-1.0, 2, "but none of them, such as -1, got 2"),
        (-1.0, "x", "which are numbers, .*got 'x'"),
        (-1.0, [7, 8], "must be one label"),
        (None, -1, "needs reject_below"),
        (np.nan, -1, "must be finite"),
    ],
)
def test_bad_thresholds_and_labels_are_named(blobs, model, below, label, message):
    with pytest.raises(ValueError, match=message):
        model.predict(blobs[0], reject_below=below, reject_label=label)
