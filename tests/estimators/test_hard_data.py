"""Ugly but valid data is fitted; bad input is refused with a message that says what was wrong."""

import warnings

import numpy as np
import pytest
from hard_cases import hard_cases
from scipy.sparse import csr_array

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML

QUICK = {"n_steps": 100, "max_iter": 3, "random_state": 0}


def assert_sound(model, X, y):
    metric = model.get_mahalanobis_matrix()
    assert np.all(np.isfinite(metric))
    assert np.linalg.eigvalsh(metric).min() >= -1e-6 * np.linalg.norm(metric)
    assert np.all(np.isfinite(model.latent_examples_))
    assert np.all(np.isfinite(model.margins_))
    assert set(model.predict(X)) <= set(y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=name) for name, X, y in hard_cases()])
def test_hard_data_is_fitted(X, y, short_passes):
    for dtype, parameters in (
        ("f4", {}), ("f8", {"init": "random", "n_latents": 0.9, "weights": "distance"}),
        ("f4", {"reference": "original", "refine": 0}),
    ):  # fmt: skip
        assert_sound(MaPML(**QUICK, **parameters).fit(X.astype(dtype), y), X, y)


@pytest.mark.parametrize("start", ["auto", "standardized", "within"])
def test_columns_of_next_to_nothing_do_not_stretch_the_metric(blobs, start):
    X, y = np.float32(blobs[0]), blobs[1]
    dead = np.random.default_rng(0).standard_normal((len(X), 2)).astype(np.float32) * 1e-33
    model = MaPML(start=start, random_state=0).fit(np.hstack((X, dead)), y)
    assert np.abs(model.components_).max() < 1e6
    assert model.score(np.hstack((X, 1e10 * dead)), y) > 0.8


def test_bad_queries_are_refused_with_both_numbers(blobs):
    X, y = blobs
    model = MaPML(0.1, **QUICK).fit(X, y)
    for method in (model.predict, model.predict_proba, model.transform, model.kneighbors):
        with pytest.raises(ValueError, match=r"X has 5 features.*6 features"):
            method(X[:, :5])
        with pytest.raises(TypeError, match="TruncatedSVD"):
            method(csr_array(X))
    with pytest.raises(ValueError, match=r"n_neighbors is 100.*only 24 references"):
        model.kneighbors(X, 100)
    with pytest.raises(ValueError, match="n_neighbors must be at least 1, got 0"):
        model.kneighbors(X, 0)
    with pytest.raises(TypeError, match="TruncatedSVD"):
        model.set_references(csr_array(X), y)
    with pytest.raises(TypeError, match="y must be of the same kind as the model's classes"):
        model.set_references(X, np.where(y == 0, "nine", "one"))


@pytest.mark.parametrize(
    ("dtype", "far", "reach"), [("f4", 1e20, r"1e\+12"), ("f4", -1e39, "float32"),
    ("f8", 1e160, r"1e\+140")],
)  # fmt: skip
@pytest.mark.parametrize("estimator", [Euclidean(), MaPML(**QUICK)])
def test_queries_farther_than_distances_reach_are_refused(blobs, estimator, dtype, far, reach):
    X, y = blobs
    model = estimator.fit(X.astype(dtype), y)
    queries = X[:3].copy()
    queries[1, 2] = far
    for method in (
        model.predict, model.predict_proba, model.transform, model.kneighbors,
        model.score_samples, lambda rows: model.predict(rows, reject_below=-1.0, reject_label=-1),
        lambda rows: model.set_references(rows, y[:3]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"row 1, column 2.*{reach}"):
            method(queries)
    queries[1, 2] = 1e9
    assert np.isfinite(model.score_samples(queries)).all()


@pytest.mark.parametrize("estimator", [Euclidean, MaPML, LMNN, HRSGD, OASIS])
def test_values_near_the_largest_of_float32_are_computed_in_float64(blobs, estimator):
    X, y = blobs
    X = X.astype(np.float32)
    X[0, 1] = np.finfo(np.float32).min
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = estimator().fit(X, y)
        distances, _ = model.kneighbors(X, 1)
    assert np.isfinite(distances).all()
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_latents": 0.0}, ValueError, r"above 0 and at most 1, got 0\.0"),
        ({"n_latents": {0: 3, 1: 2}}, ValueError, r"3 classes.*it lacks 1, such as 2"),
        ({"n_latents": {0: 3, 1: 2, 2: 1, 7: 1}}, ValueError, "y does not have, such as 7"),
        ({"n_latents": {0: 3, 1: 2, 2: 0}}, ValueError, "class 2 must be at least 1, got 0"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"max_iter": True}, TypeError, "max_iter must be an integer"),
        ({"refine": True}, TypeError, "refine must be an integer"),
        ({"metric_reg": 0}, ValueError, "metric_reg must be at least 1e-09, got 0"),
        ({"n_components": 7}, ValueError, "n_components must be at least 1 and at most 6, got 7"),
        ({"early_stopping": 1}, TypeError, "early_stopping must be True or False"),
        ({"early_stopping": True, "validation_fraction": 1e-4}, ValueError, "240 rows"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"random_state": "seed"}, ValueError, "seed"),
    ],
)
def test_parameters_out_of_range_are_refused_and_change_nothing(blobs, parameters, error, message):
    X, y = blobs
    model = MaPML(**QUICK | {"max_iter": 0}, refine=0, start="euclidean").fit(X, y)
    before = {name: value for name, value in vars(model).items() if name not in parameters}
    with pytest.raises(error, match=message):
        model.set_params(**parameters).fit(X, y)
    assert {n: v for n, v in vars(model).items() if n not in parameters} == before


def test_partial_fit_of_rows_whose_squares_underflow(blobs):
    X, y = blobs
    found = []
    for factor in (1, 1e-200):
        model = MaPML(**QUICK).fit(X * factor, y)
        model.partial_fit(X * factor, y)
        found.append((model.margins_ / model.margins_[0], model.score(X * factor, y)))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-6)
    assert found[1][1] == found[0][1]


@pytest.mark.parametrize(("dtype", "factor"), [(np.float32, 1e-20), (np.float64, 1e-200)])
def test_warm_start_refuses_rows_of_another_scale(blobs, dtype, factor):
    X, y = blobs
    X = X.astype(dtype)
    model = MaPML(warm_start=True, **QUICK).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=r"times the spread of X .* set warm_start=False"):
        model.fit(X * dtype(factor), y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.fit(X * dtype(1e-10), y)
    assert model.score(X * dtype(1e-10), y) > 0.9


def test_warm_start_refuses_other_classes_and_features(blobs):
    X, y = blobs
    model = MaPML(warm_start=True, **QUICK).fit(X, y)
    with pytest.raises(ValueError, match=r"it had 6 features and 3 classes.*y has 2"):
        model.fit(X, y > 0)
    with pytest.raises(ValueError, match=r"it had 6 .*X has 4"):
        model.fit(X[:, :4], y)
