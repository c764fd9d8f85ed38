"""``MaPML.as_published`` is the algorithm that ``MaPML`` was when it had nothing but the paper."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from helpers import make_blobs

import latentmetric
from latentmetric import MaPML
from latentmetric.core.alternation import first_state, next_state
from latentmetric.core.population import LocalPopulation
from latentmetric.core.starts import Start
from latentmetric.estimators.base import generator_from
from latentmetric.estimators.setup import settings_of

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


def test_few_rows_with_many_features_give_the_metric_learned_with_all_features():
    """They are learned in their span, where the metric is the same; outside, it is the start's."""
    X, y = make_blobs(30, n_features=40)
    parameters = {"n_latents": 3, "n_steps": 200, "max_iter": 2, "random_state": 0}
    model = MaPML.as_published(**parameters).fit(X, y)
    rows, generator = LocalPopulation.of(X, y), generator_from(0)
    settings, euclid = settings_of(model), Start.euclidean(40, np.dtype(float))
    state = first_state(rows, np.full(3, 3), "random", settings, euclid, generator)
    for _ in range(2):
        state = next_state(state, generator, rows, settings)
    metric = state.components.T @ state.components
    basis = model.model_.outside.basis
    assert basis.shape == (29, 40)
    inside = model.get_mahalanobis_matrix() + np.eye(40) - basis.T @ basis
    np.testing.assert_allclose(inside, metric, atol=1e-10)
