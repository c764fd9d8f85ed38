"""``MaPML.as_published`` is the algorithm that ``MaPML`` was when it had nothing but the paper."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import latentmetric

GOLDEN = Path(__file__).parent.parent / "golden"
MADE = runpy.run_path(str(GOLDEN / "make_models.py"))
PUBLISHED = [entry for entry in MADE["models"]() if entry[0].startswith("published")]


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: entry[0])
def test_a_fit_gives_the_model_of_the_time(entry):
    """The models were written before MaPML had a start other than Euclid, and a refinement."""
    name, model, dtype, labels = entry
    X, codes = MADE["blobs"]()
    X = X.astype(dtype)
    n_queries = MADE["QUERIES"]
    model.fit(X[n_queries:], labels[codes[n_queries:]])
    before = latentmetric.load(GOLDEN / "models" / f"{name}.safetensors")
    precise = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-4}
    for attribute in ("components_", "latent_examples_", "margins_"):
        np.testing.assert_allclose(getattr(model, attribute), getattr(before, attribute), **precise)
    np.testing.assert_array_equal(model.latent_labels_, before.latent_labels_)
    np.testing.assert_array_equal(model.predict(X), before.predict(X))
    assert (model.n_iter_, model.best_iter_) == (before.n_iter_, before.best_iter_)
    for record, of_the_time in zip(model.history_, before.history_, strict=True):
        for key in of_the_time.keys() - {"seconds"}:
            assert record[key] == pytest.approx(of_the_time[key], rel=precise["rtol"])
