"""Rows of unknown classes: their scores and their rejection."""

import numpy as np
import pytest

from latentmetric import OASIS, Euclidean, MaPML

QUICK = {"n_steps": 300, "max_iter": 2, "random_state": 0}


@pytest.fixture
def model(blobs):
    return MaPML(**QUICK).fit(*blobs)


@pytest.mark.parametrize("estimator", [Euclidean(), MaPML(**QUICK), OASIS(psd=False, n_steps=500)])
def test_the_score_is_minus_the_distance_of_the_nearest_reference(blobs, estimator):
    X, y = blobs
    estimator.fit(X[::2], y[::2])
    distances, _ = estimator.kneighbors(X, 1)
    np.testing.assert_array_equal(estimator.score_samples(X), -distances[:, 0])


@pytest.mark.parametrize(("weights", "many"), [("uniform", 1), ("kernel", 1), ("kernel", 10_000)])
def test_rows_with_low_scores_are_rejected_and_others_are_unchanged(
    blobs, model, weights, many, monkeypatch
):
    monkeypatch.setattr("latentmetric.estimators.base.MANY_VOTERS", many)
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
