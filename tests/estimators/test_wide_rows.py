"""Fewer rows than features: a factor of their rank does what one of all features does."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from helpers import make_blobs

import latentmetric
from latentmetric import MaPML
from latentmetric.core.model import FittedModel
from latentmetric.persistence.model_file import ModelFileError

N_FEATURES = 90


@pytest.fixture(scope="module")
def rows():
    """Six classes in directions of their own: 30 rows, and others."""
    generator = np.random.default_rng(0)
    means, y = 0.9 * generator.standard_normal((6, N_FEATURES)), np.arange(600) % 6
    X = means[y] + generator.standard_normal((600, N_FEATURES))
    return X[:60], y[:60], X[60:], y[60:]


@pytest.fixture(scope="module", params=["euclidean", "standardized", "within", "denoised"])
def model(request, rows):
    """Fitted to four of the six classes."""
    X, y, _, _ = rows
    known = y < 4
    return MaPML(start=request.param, bandwidth="shared", random_state=0).fit(X[known], y[known])


def plain(model):
    """The same model with a factor that is as wide as the features."""
    other, fitted = deepcopy(model), model.model_
    basis, factors = fitted.outside.basis, fitted.outside.factors
    rest = (np.eye(N_FEATURES) - basis.T @ basis) * factors
    components = np.concatenate((fitted.components, rest))
    points = fitted.coordinates.transform(model.latent_examples_) @ components.T
    other.model_ = replace(
        FittedModel.of_metric(
            fitted.coordinates,
            components,
            points,
            fitted.codes,
            fitted.n_classes,
            fitted.temperature,
        ),
        usual=fitted.usual,
    )
    other.components_ = components
    return other


def assert_same(one, other, X):
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), rtol=1e-6)
    np.testing.assert_array_equal(
        one.kneighbors(X, return_distance=False), other.kneighbors(X, return_distance=False)
    )


def test_the_factor_has_the_rank_of_the_rows(model, rows):
    assert model.components_.shape == (39, N_FEATURES)
    assert model.transform(rows[2]).shape == (540, 39)
    assert_same(model, plain(model), rows[2])


def test_new_rows_and_classes_bring_their_directions(model, rows):
    X, y, queries, _ = rows
    new = y >= 4
    for change in (
        lambda m: m.add_classes(X[new], y[new]),
        lambda m: m.set_references(X, y),
        lambda m: m.set_references(queries, rows[3]),
        lambda m: m.partial_fit(queries[:20:5], rows[3][:20:5] % 4),
    ):
        one, other = change(deepcopy(model)), change(plain(model))
        assert_same(one, other, queries)
        assert one.components_ is one.model_.components
        # The features of refined ones come from a system with a small ridge.
        np.testing.assert_allclose(one.latent_examples_, other.latent_examples_, atol=1e-4)


def test_a_saved_model_can_still_learn_classes(model, rows, tmp_path):
    X, y, queries, _ = rows
    latentmetric.save(model, tmp_path / "model")
    loaded, new = latentmetric.load(tmp_path / "model"), y >= 4
    for known in (model, loaded):
        np.testing.assert_array_equal(known.score_samples(queries), model.score_samples(queries))
    expected = deepcopy(model).add_classes(X[new], y[new])
    np.testing.assert_array_equal(
        loaded.add_classes(X[new], y[new]).predict_proba(queries), expected.predict_proba(queries)
    )


def test_a_warm_fit_on_other_rows_begins_from_the_whole_metric(model, rows):
    _, _, X, y = rows
    known = np.flatnonzero(y < 4)
    parameters = {"warm_start": True, "max_iter": 0, "refine": 0}
    for some in (known[:30], known[:200]):
        one, other = (
            fitted.set_params(**parameters).fit(X[some], y[some])
            for fitted in (deepcopy(model), plain(model))
        )
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-7)
        assert one.margins_ == pytest.approx(other.margins_)


def test_held_out_rows_that_join_are_measured_whole(rows):
    X, y, queries, _ = rows
    model = MaPML(reference="original", early_stopping=True, random_state=0).fit(X, y)
    assert len(model.model_.outside.basis) == 59
    nearest = model.kneighbors(X, 1, return_distance=False)[:, 0]
    np.testing.assert_array_equal(nearest, np.arange(60))
    assert np.isfinite(model.score_samples(queries)).all()


def test_a_share_of_new_rows_is_rejected_not_all(rows):
    """Rows of the fit have nothing outside their span; new rows have, and those of the trials."""
    X, y, queries, _ = rows
    model = MaPML(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="3 of the 60 rows"):
        rejected = model.score_samples(queries) < model.reject_threshold(0.05)
    assert 0.005 < rejected.mean() < 0.15


@pytest.mark.parametrize("bound", [1e9, 1.0])
def test_a_bound_on_the_norm_does_not_change_what_is_learned(rows, bound):
    """The kernel vote does not change with the unit of distances."""
    X, y, queries, _ = rows
    free, bounded = (MaPML(max_norm=given, random_state=0).fit(X, y) for given in (None, bound))
    np.testing.assert_allclose(
        free.predict_proba(queries), bounded.predict_proba(queries), atol=1e-6
    )


def test_a_basis_that_is_not_orthonormal_is_refused(tmp_path):
    X, y = make_blobs(20, n_features=30)
    model = MaPML(random_state=0).fit(X, y)
    model.model_.outside.basis[0] *= 2
    with pytest.raises(ModelFileError, match="not orthonormal"):
        latentmetric.save(model, tmp_path / "model")
