"""Euclidean, OASIS and HR-SGD with the interface of MaPML."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.base import clone

from latentmetric import HRSGD, OASIS, Euclidean

RIVALS = {
    "Euclidean": Euclidean(random_state=0),
    "OASIS": OASIS(psd=False, n_steps=1000, aggressiveness=0.02, random_state=0),
    "OASIS, a metric": OASIS(psd=True, n_steps=1000, aggressiveness=0.02, random_state=0),
    "HRSGD": HRSGD(n_steps=1000, learning_rate=0.3, random_state=0),
    "HRSGD, unbiased": HRSGD(n_steps=1000, learning_rate=0.1, update="unbiased", random_state=0),
}
LEARNERS = [name for name in RIVALS if name != "Euclidean"]


def fit(name, X, y):
    return clone(RIVALS[name]).fit(X, y)


def matrix_of(model):
    return model.similarity_ if isinstance(model, OASIS) else model.get_mahalanobis_matrix()


@pytest.mark.parametrize("name", LEARNERS)
def test_features_that_separate_the_classes_gain_weight(name):
    X, y = make_blobs(600)
    queries, labels = make_blobs(600, seed=1)
    model = clone(RIVALS[name]).set_params(n_steps=20_000).fit(X, y)
    weights = np.diag(matrix_of(model))
    assert weights[-2:].min() > 2 * np.abs(weights[:-2]).max()
    assert model.score(queries, labels) > Euclidean().fit(X, y).score(queries, labels) + 0.01
    objectives = [record["objective"] for record in model.history_[1:]]
    assert objectives[-1] < 0.8 * objectives[0]


@pytest.mark.parametrize("name", LEARNERS)
def test_history(name, blobs):
    model = fit(name, *blobs)
    n_iterations = model.n_steps // getattr(model, "batch_size", 1)
    assert model.n_iter_ == model.best_iter_ == n_iterations
    assert model.history_[0] == {"round": 0, "iterations": 0, "seconds": {}}
    assert len(model.history_) == 11
    for number, record in enumerate(model.history_[1:], start=1):
        assert record["round"] == number
        assert record["iterations"] == number * n_iterations // 10
        assert record["objective"] > 0
        assert 0 < record["active_share"] <= 1
        assert record["seconds"].keys() == {"metric"}
    assert model.history_[-1]["norm"] == pytest.approx(
        np.linalg.norm(matrix_of(model)), rel=0.05 if name == "OASIS, a metric" else 1e-6
    )


class TestSimilarity:
    """The behaviour of OASIS if its model is not a metric."""

    def similarities(self, model, X, queries):
        centred = X - X.mean(axis=0)
        spread = np.square(centred).sum(axis=1).mean()
        return (queries - X.mean(axis=0)) @ model.similarity_ @ centred.T / spread

    def test_the_most_similar_rows_are_the_neighbours(self, blobs):
        X, y = blobs
        queries, _ = make_blobs(50, seed=1)
        model = fit("OASIS", X, y)
        assert not np.allclose(model.similarity_, model.similarity_.T)
        expected = self.similarities(model, X, queries)
        negated, indices = model.kneighbors(queries, 7)
        np.testing.assert_array_equal(indices, np.argsort(-expected, axis=1)[:, :7])
        np.testing.assert_allclose(negated, np.sort(-expected, axis=1)[:, :7], atol=1e-10)
        most_similar = clone(model).set_params(n_neighbors=1).fit(X, y)
        np.testing.assert_array_equal(most_similar.predict(queries), y[np.argmax(expected, axis=1)])
        model.set_references(X[:10], y[:10])
        found = model.kneighbors(queries, 1, return_distance=False)[:, 0]
        np.testing.assert_array_equal(found, np.argmax(expected[:, :10], axis=1))

    def test_methods_that_need_a_metric_exist_only_with_one(self, blobs):
        X, y = blobs
        names = ["transform", "fit_transform", "get_feature_names_out", "get_mahalanobis_matrix"]
        for model in (OASIS(psd=False, n_steps=10), OASIS(psd=False, n_steps=10).fit(X, y)):
            assert not any(hasattr(model, name) for name in [*names, "set_output", "components_"])
        for model in (OASIS(psd=True, n_steps=10), OASIS(psd=True, n_steps=10).fit(X, y)):
            assert all(hasattr(model, name) for name in [*names, "set_output"])
        pandas = OASIS(psd=True, n_steps=10).set_output(transform="pandas").fit_transform(X, y)
        assert pandas.columns.tolist() == [f"oasis{i}" for i in range(6)]

    def test_the_projection_is_that_of_the_symmetric_part(self, blobs):
        X, y = blobs
        plain, metric = fit("OASIS", X, y), fit("OASIS, a metric", X, y)
        values, vectors = np.linalg.eigh((plain.similarity_ + plain.similarity_.T) / 2)
        projected = (vectors * np.maximum(values, 0)) @ vectors.T
        np.testing.assert_allclose(metric.similarity_, projected, atol=1e-10)
        np.testing.assert_allclose(metric.get_mahalanobis_matrix(), projected, atol=1e-10)

    def test_a_model_stays_what_it_was_fitted_as(self, blobs):
        X, y = blobs
        model = fit("OASIS, a metric", X, y)
        distances = model.kneighbors(X)[0]
        model.set_params(psd=False)
        np.testing.assert_array_equal(model.kneighbors(X)[0], distances)
        assert hasattr(model, "transform")
        model.fit(X, y)
        assert not hasattr(model, "transform")
        assert not hasattr(model, "components_")
        assert model.kneighbors(X)[0].min() < 0
        model.set_params(weights="distance")
        with pytest.raises(ValueError, match="psd=True"):
            model.predict(X)


@pytest.mark.parametrize(
    ("model", "error", "said"),
    [
        (OASIS(aggressiveness=0), ValueError, "aggressiveness must be above 0, got 0"),
        (OASIS(psd=1), TypeError, "psd must be True or False, got 1"),
        (OASIS(psd=False, weights="kernel"), ValueError, "weights='kernel' .* psd=False"),
        (HRSGD(update="biased"), ValueError, "update must be one of 'damped', 'unbiased', got"),
        (HRSGD(batch_size=0), ValueError, "batch_size .* 1 and at most 1000000, got 0"),
        (HRSGD(n_steps=9), ValueError, "n_steps is 9, .* batch_size is 10"),
        (Euclidean(weights=None), ValueError, "weights must be one of .*, got None"),
    ],
)
def test_bad_parameters(model, error, said, blobs):
    with pytest.raises(error, match=said):
        model.fit(*blobs)
