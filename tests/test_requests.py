"""The requests, and the vectors that go with them."""

import numpy as np

from latentmetric.datasets import load_requests


def test_there_are_ten_requests_of_each_intent_and_some_of_none():
    requests = load_requests()
    intents, counts = np.unique(requests.intents, return_counts=True)
    assert dict(zip(intents, counts, strict=True)).pop("none") == 20
    assert (counts[intents != "none"] == 10).all()
    assert len(set(requests.texts)) == len(requests.texts)


def test_vectors_belong_to_their_texts():
    requests = load_requests()
    np.testing.assert_allclose(np.linalg.norm(requests.X, axis=1), 1, atol=1e-3)
    first = np.flatnonzero(requests.texts == "my card was stolen")[0]
    nearest = np.argsort(-requests.X @ requests.X[first])[1]
    assert "card" in requests.texts[nearest]
    known = requests.intents != "none"
    likeness = requests.X[known] @ requests.X[known].T - 2 * np.eye(known.sum())
    own = requests.intents[known]
    assert np.mean(own[likeness.argmax(axis=1)] == own) > 0.8
