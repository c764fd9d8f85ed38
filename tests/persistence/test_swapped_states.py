"""A checkpoint whose arrays change places is refused by its name, or fits to a model."""

from itertools import combinations

import numpy as np
import pytest
from helpers import interrupt_round, make_blobs
from sklearn.base import clone

from latentmetric import HRSGD, LMNN, MaPML, ModelFileError
from latentmetric.persistence.checkpoints import FILE_NAME
from latentmetric.persistence.model_file import read_model_file, write_model_file

X, Y = make_blobs(60)

MODELS = [
    MaPML(2, n_steps=20, max_iter=2, refine=1, random_state=0),
    LMNN(max_iter=6),
    HRSGD(n_steps=100, random_state=0),
]


def entries(stored):
    """The descriptions of all arrays in a stored state, as their holders and keys."""
    inside = stored.items() if isinstance(stored, dict) else enumerate(stored)
    for key, value in inside:
        if isinstance(value, dict) and "array" in value:
            yield stored, key
        elif isinstance(value, dict | list):
            yield from entries(value)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("number", [2, 3])
def test_swapped_arrays_are_refused_or_fit(tmp_path, monkeypatch, model, number):
    with monkeypatch.context() as patched:
        interrupt_round(patched, number)
        with pytest.raises(KeyboardInterrupt):
            clone(model).fit(X, Y, checkpoint=tmp_path)
    path, n_refused = tmp_path / FILE_NAME, 0
    document, arrays = read_model_file(path)
    pairs = list(combinations(list(entries(document["state"])), 2))
    for pair in np.random.default_rng(0).permutation(len(pairs))[:25]:
        (one, key), (other, place) = pairs[pair]
        one[key], other[place] = other[place], one[key]
        write_model_file(path, document, arrays)
        try:
            clone(model).fit(X, Y, checkpoint=tmp_path, resume=True)
        except ModelFileError as error:
            n_refused += FILE_NAME in str(error)
        one[key], other[place] = other[place], one[key]
    assert n_refused or len(pairs) < 2
