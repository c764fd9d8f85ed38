"""The paper's fit on a cluster equals one on one machine, and survives lost workers."""

import os
import signal
import sys

import dask.array as da
import numpy as np
import pytest
from helpers import make_blobs, make_unbalanced

from latentmetric import MaPML
from latentmetric.engines import dask as engine

PARAMETERS = {"n_latents": 0.1, "max_iter": 3, "n_steps": 400, "random_state": 0}


def published(**parameters):
    return MaPML.as_published(**PARAMETERS | parameters)


def assert_same(distributed, local, X):
    np.testing.assert_array_equal(distributed.classes_, local.classes_)
    scale = np.abs(local.latent_examples_).max()
    difference = np.abs(distributed.latent_examples_ - local.latent_examples_).max()
    assert difference <= 1e-3 * scale
    np.testing.assert_array_equal(distributed.latent_labels_, local.latent_labels_)
    np.testing.assert_allclose(distributed.margins_, local.margins_, rtol=1e-3)
    assert np.mean(distributed.predict(X) == local.predict(X)) >= 0.999


@pytest.mark.parametrize(("chunks", "init"), [(3000, "random"), (61, "k-means++")])
def test_the_cluster_finds_what_one_machine_finds(client, chunks, init):
    X, y = make_unbalanced()
    model = published(init=init)
    local = published(init=init).fit(X, y)
    model.fit(da.from_array(X, chunks=(chunks, 4)), da.from_array(y, chunks=500))
    assert_same(model, local, X)
    objectives = [[r["objective"] for r in m.history_] for m in (model, local)]
    np.testing.assert_allclose(*objectives, rtol=1e-3)
    assert model.n_features_in_ == 6


def test_a_selection_may_leave_chunks_empty_and_of_unknown_size(client):
    X, y = make_blobs(600)
    keep = (np.arange(600) < 200) | (np.arange(600) >= 300)
    chosen = da.from_array(keep, chunks=100)
    lazy = da.from_array(X, chunks=(100, -1))[chosen]
    labels = da.from_array(y, chunks=100)[chosen]
    model = published().fit(lazy, labels)
    assert_same(model, published().fit(X[keep], y[keep]), X)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(X[keep]))


def test_many_long_names_of_classes(client):
    """Dask would take one large keyword of its tasks for another."""
    X, _ = make_blobs(3200)
    y = np.repeat([f"a class with a long name {number:04}" for number in range(1600)], 2)
    assert np.unique(y).nbytes > 1e5
    parameters = {"n_latents": 1, "max_iter": 0}
    model = published(**parameters).fit(da.from_array(X, chunks=(400, -1)), y)
    assert_same(model, published(**parameters).fit(X, y), X)


def test_answers_are_dask_arrays(client):
    X, y = make_blobs(300)
    model = published().fit(X, y)
    lazy = da.from_array(X, chunks=(70, 3))
    for method in ("predict", "predict_proba", "score_samples", "transform"):
        answer = getattr(model, method)(lazy)
        assert isinstance(answer, da.Array)
        expected = getattr(model, method)(X)
        assert answer.shape == expected.shape
        assert answer.dtype == expected.dtype
        np.testing.assert_allclose(
            answer.compute().astype(float), expected.astype(float), rtol=1e-9
        )
    rejecting = {"reject_below": float(np.median(model.score_samples(X))), "reject_label": -1}
    answer = model.predict(lazy, **rejecting)
    np.testing.assert_array_equal(answer.compute(), model.predict(X, **rejecting))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals of POSIX")
def test_a_worker_lost_in_the_middle_changes_nothing(processes, monkeypatch):
    X, y = make_unbalanced()
    local = published().fit(X, y)
    calls, killed = [], []
    move = engine.DaskPopulation.move_latents

    def kill_then_move(self, *arguments):
        calls.append(None)
        if len(calls) == 3:
            holder = processes.who_has(self._parts)[self._parts[0].key][0]
            pids = processes.run(os.getpid)
            killed.append(pids[holder])
            os.kill(pids[holder], signal.SIGKILL)
        return move(self, *arguments)

    monkeypatch.setattr(engine.DaskPopulation, "move_latents", kill_then_move)
    model = published().fit(da.from_array(X, chunks=(300, -1)), y)
    assert len(killed) == 1
    assert_same(model, local, X)


def test_invalid_input_is_reported_before_any_row_is_read(client):
    X, y = make_blobs(300)
    lazy = da.from_array(X, chunks=(100, -1))
    with pytest.raises(ValueError, match="X has 300 rows, y has 299"):
        MaPML().fit(lazy, y[:-1])
    with pytest.raises(ValueError, match="at least 2 classes"):
        MaPML().fit(lazy, np.zeros(300))
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        MaPML().fit(lazy, None)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        MaPML().fit(lazy[:, 0], y)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        MaPML().fit(lazy, da.from_array(np.column_stack((y, y)), chunks=100))
    with pytest.raises(ValueError, match="early_stopping=True would gather rows"):
        MaPML(early_stopping=True).fit(lazy, y)
    with pytest.raises(ValueError, match="reference='original' would gather rows"):
        MaPML(reference="original").fit(lazy, y)


def test_a_missing_client_or_extra_is_reported_with_a_fix(monkeypatch):
    monkeypatch.setattr("distributed.get_client", _no_client)
    with pytest.raises(RuntimeError, match=r"dask\.distributed\.Client\(\)"):
        engine.active_client()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"latentmetric\[dask\]"):
        engine.active_client()


def _no_client():
    raise ValueError("No global client found and no address provided")
