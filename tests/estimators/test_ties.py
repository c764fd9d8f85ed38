"""Where rows tie, an answer depends neither on the batch of a row nor on its chunk or thread."""

import numpy as np
import pytest

from latentmetric import OASIS, Euclidean, MaPML

QUICK = {"max_iter": 1, "n_steps": 300, "random_state": 0}

MODELS = {
    "Euclidean": Euclidean(),
    "MaPML": MaPML(reference="original", **QUICK),
    "two components": MaPML(reference="original", n_components=2, **QUICK),
    "OASIS": OASIS(psd=False, n_steps=300, random_state=0),
}


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def whole_numbers(request):
    """Rows on a grid, some twice with other labels, and queries on and between them."""
    generator = np.random.default_rng(0)
    X = np.indices((5, 5, 5)).reshape(3, -1).T
    X = generator.permutation(np.concatenate((X, X[::3]))) + 1000
    queries = X[:90] + generator.integers(0, 2, (90, 3)) / 2
    return X.astype(request.param), generator.integers(0, 4, len(X)), queries.astype(request.param)


def in_batches(method, rows, size):
    return np.concatenate([method(rows[at : at + size]) for at in range(0, len(rows), size)])


@pytest.mark.parametrize("name", MODELS)
def test_answers_do_not_depend_on_the_batch(whole_numbers, name):
    X, y, queries = whole_numbers
    model = MODELS[name].fit(X, y)
    for size in (1, 7):
        found = in_batches(lambda rows: model.kneighbors(rows, 20)[1], queries, size)
        np.testing.assert_array_equal(found, model.kneighbors(queries, 20)[1])
    for weights in ("uniform",) if name == "OASIS" else ("uniform", "distance", "kernel"):
        model.set_params(weights=weights, n_neighbors=5)
        found = in_batches(model.predict, queries, 1)
        np.testing.assert_array_equal(found, model.predict(queries))


@pytest.mark.parametrize("k", [1, 3, 5])
def test_neighbours_and_votes_are_those_of_a_stable_sort(whole_numbers, k):
    X, y, queries = whole_numbers
    model = Euclidean(n_neighbors=k, weights="uniform").fit(X, y)
    squared = np.square(queries[:, None] - X[None], dtype=np.float64).sum(axis=2)
    nearest = np.argsort(squared, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(model.kneighbors(queries)[1], nearest)
    for row, label in zip(y[nearest], model.predict(queries), strict=True):
        votes = np.bincount(row)
        first_of_the_most_voted = next(one for one in row if votes[one] == votes.max())
        assert label == first_of_the_most_voted
