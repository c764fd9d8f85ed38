"""A parameter means its value: numbers of any type give the model of Python's own numbers."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.base import clone

from latentmetric import HRSGD, LMNN, MaPML

SMALL = MaPML(n_steps=100, max_iter=1, refine=1, random_state=0)


@pytest.mark.parametrize(
    ("model", "other", "own"),
    [
        (LMNN(max_iter=5), {"push": Fraction(1, 2)}, {"push": 0.5}),
        (HRSGD(n_steps=500, random_state=0), {"batch_size": np.int16(50)}, {"batch_size": 50}),
        (SMALL, {"n_latents": np.uint8(30)}, {"n_latents": 30}),
        (SMALL, {"label_noise": np.True_, "verbose": np.False_}, {"label_noise": True}),
    ],
)
def test_a_fit_depends_on_values_and_not_on_their_types(model, other, own):
    X, y = make_blobs()
    expected = clone(model).set_params(**own).fit(X, y)
    found = clone(model).set_params(**other).fit(X, y)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert all(found.get_params()[name] is value for name, value in other.items())
