import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from forking import forked, needs_forks
from image_like import make_image_like

from latentmetric import MaPML
from latentmetric.estimators import index


@pytest.fixture(scope="module")
def made():
    return make_image_like(6_000, 16, 20, 4)


@pytest.fixture
def model(made, monkeypatch):
    monkeypatch.setattr(index, "MIN_REFERENCES", 100)
    monkeypatch.setattr("latentmetric.estimators.mapml.MIN_REFERENCES", 100)
    model = MaPML(0.2, max_iter=1, n_steps=500, random_state=0, index="faiss")
    return model.fit(made.X[:5000], made.y[:5000])


def test_most_neighbours_are_found_at_exact_distances(model, made):
    queries = made.X[5000:]
    near, found = model.kneighbors(queries, 5)
    exact_near, exact = model.set_params(index="exact").kneighbors(queries, 5)
    recall = np.mean([len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)]) / 5
    assert 0.6 < recall < 1
    same = found == exact
    np.testing.assert_allclose(near[same], exact_near[same])
    assert np.all(np.diff(near, axis=1) >= 0)


@needs_forks
@pytest.mark.slow
def test_a_forked_child_builds_an_index_of_its_own(model, made):
    model.predict(made.X[5000:])

    def other_references_are_found():
        model.set_references(made.X[:1000], made.y[:1000])
        return model.kneighbors(made.X[:10], 1)[0].max() < 1e-3

    assert forked(other_references_are_found)


def test_the_index_follows_new_references_and_is_not_pickled(model, made):
    model.predict(made.X[5000:])
    before, size = index.index_of(model.model_.references), len(pickle.dumps(model))
    assert index.index_of(model.model_.references) is before
    model.set_references(made.X[:1000], made.y[:1000])
    assert model.kneighbors(made.X[:10], 1)[0].max() < 1e-3
    assert index.index_of(model.model_.references) is not before
    copied = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(copied)) < 1.1 * size
    np.testing.assert_array_equal(copied.predict(made.X[5000:]), model.predict(made.X[5000:]))


def test_queries_whose_groups_hold_too_few_are_searched_exactly(model, made):
    k = len(model.latent_examples_)
    found = model.kneighbors(made.X[5000:5020], k, return_distance=False)
    assert np.array_equal(np.sort(found, axis=1), np.tile(np.arange(k), (20, 1)))


def test_references_are_found_by_distance_and_vote_with_their_bandwidths(model, made, rng):
    """The groups hold fewer than vote, so all queries are searched exactly; else votes differ."""
    size = len(model.latent_examples_)
    scales, weights = (rng.normal(size=size).astype(np.float32) for _ in range(2))
    model.model_ = replace(model.model_, log_scales=scales, log_weights=weights)
    queries = made.X[5000:5200]
    found = model.predict_proba(queries)
    exact = model.set_params(index="exact").predict_proba(queries)
    np.testing.assert_array_equal(found, exact)
    model.model_ = replace(model.model_, log_scales=None, log_weights=None)
    assert np.abs(model.predict_proba(queries) - exact).max() > 0.1


def test_bad_choices_and_a_missing_library_are_named(made, monkeypatch):
    with pytest.raises(ValueError, match="index must be one of 'exact', 'faiss', got 'hnsw'"):
        MaPML(index="hnsw").fit(made.X, made.y)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match="pip install faiss-cpu"):
        MaPML(index="faiss").fit(made.X, made.y)
