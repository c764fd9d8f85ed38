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
