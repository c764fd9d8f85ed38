"""What must not matter: scale, position, rotation, row order, class names, memory layout."""

import numpy as np
import pytest
from helpers import make_blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_wine

from latentmetric import HRSGD, Euclidean, MaPML

seeds = st.integers(0, 2**31 - 1)
QUICK = {"n_steps": 200, "max_iter": 3, "random_state": 0}


makers = st.sampled_from([MaPML.as_published, MaPML])
"""The algorithm of the paper, and the defaults, which choose a start and refine."""


def fit(X, y, make=MaPML, **parameters):
    return make(**{**QUICK, **parameters}).fit(X, y)


@settings(max_examples=8)
@given(
    seed=seeds, exponent=st.integers(-290, 290), factor=st.floats(1, 10),
    shift=st.floats(-1e4, 1e4), make=makers,
)  # fmt: skip
def test_scale_and_position(seed, exponent, factor, shift, make):
    X, y = make_blobs(seed=seed)
    queries, _ = make_blobs(seed=seed + 1)
    scale = factor * 10.0**exponent
    one, other = fit(X, y, make), fit(scale * (X + shift), y, make)
    np.testing.assert_array_equal(one.predict(queries), other.predict(scale * (queries + shift)))
    metrics = [model.get_mahalanobis_matrix() for model in (one, other)]
    np.testing.assert_allclose(metrics[1], metrics[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("make", "dtype"), [(MaPML, np.float32), (MaPML.as_published, np.float64)])
def test_scale_and_position_on_real_data_of_whole_numbers(make, dtype):
    """Rows of whole numbers tie exactly, and rounding breaks ties differently at another scale."""
    X, y = (part[:900] for part in load_digits(return_X_y=True))
    X = X.astype(dtype)
    parameters = {"make": make, "n_steps": 1000}
    expected = fit(X, y, **parameters).predict(X)
    for scale, shift in ((1000, 0), (1 / 3, 7)):
        moved = dtype(scale) * X + dtype(shift)
        np.testing.assert_array_equal(fit(moved, y, **parameters).predict(moved), expected)


@settings(max_examples=6)
@given(seed=seeds, make=makers)
def test_rotation(seed, make):
    """Not with other starts, which depend on the axes."""
    X, y = make_blobs(seed=seed)
    queries, _ = make_blobs(seed=seed + 1)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))
    one, other = (fit(rows, y, make, start="euclidean") for rows in (X, X @ rotation))
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries @ rotation))
    rotated = rotation.T @ one.get_mahalanobis_matrix() @ rotation
    # Few rows are refined in float32.
    np.testing.assert_allclose(other.get_mahalanobis_matrix(), rotated, 1e-5, 1e-6)


@settings(max_examples=6)
@given(
    seed=seeds, reference=st.sampled_from(["latent", "original"]), stopping=st.booleans(),
    make=makers,
)  # fmt: skip
def test_order_of_rows(seed, reference, stopping, make):
    X, y = make_blobs(seed=seed)
    queries, _ = make_blobs(seed=seed + 1)
    order = np.random.default_rng(seed).permutation(len(X))
    parameters = {"reference": reference, "early_stopping": stopping}
    one, other = fit(X, y, make, **parameters), fit(X[order], y[order], make, **parameters)
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries))
    # Few rows are refined in float32.
    np.testing.assert_allclose(one.latent_examples_, other.latent_examples_, rtol=1e-4, atol=1e-6)


def test_order_of_rows_with_one_latent_example_a_class():
    """Then no class has a spread: what is left of it by rounding must not choose directions."""
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    parameters = {"n_components": 1, "n_latents": 1, "refine": 1}
    expected = fit(X, y, **parameters).predict_proba(X)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        shares = fit(X[order], y[order], **parameters).predict_proba(X)
        np.testing.assert_allclose(shares, expected, atol=1e-6)


@pytest.mark.parametrize("distance", [1e5, 1e6])
@pytest.mark.parametrize("estimator", [Euclidean(), HRSGD(n_steps=200, random_state=0)])
def test_an_embedding_is_as_precise_far_from_the_origin_as_near_it(estimator, distance):
    X, y = make_blobs(400)
    far = (X + distance).astype(np.float32)
    model = estimator.fit(far, y)
    points = model.transform(far)
    assert points.dtype == np.float32
    squared = np.square(points[:, None] - points[None], dtype=np.float64).sum(axis=2)
    distances, nearest = model.kneighbors(far, 4)
    found = np.sqrt(np.take_along_axis(squared, nearest, axis=1))
    np.testing.assert_allclose(found, distances, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found, np.sqrt(np.sort(squared, axis=1)[:, :4]), rtol=1e-5)
