"""A fit on a cluster equals one on one machine, and survives lost workers."""

import os
import signal
import sys
import warnings
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
from dask.bag import Bag
from helpers import arrays_in, interrupt_round, make_blobs, make_unbalanced

from latentmetric import MaPML
from latentmetric.core import alternation, race, refinement
from latentmetric.core.nearby import LatentPoints, RowSubset, list_neighbors
from latentmetric.core.population import LocalPopulation
from latentmetric.engines import dask_population
from latentmetric.engines.dask import DaskEngine, active_client
from latentmetric.engines.dask_population import DaskPopulation

SIZES = (1, 400, 7, 90, 33, 60, 2)
N_FEATURES = 9
QUICK = {"max_iter": 1, "n_steps": 200, "random_state": 0}


def make_rows():
    generator = np.random.default_rng(0)
    codes = generator.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    rows = generator.standard_normal((len(codes), N_FEATURES)) + 0.3 * codes[:, None]
    return rows.astype(np.float32), codes


@pytest.fixture(scope="module")
def both(client):
    """The same rows on the cluster and in memory."""
    rows, codes = make_rows()
    lazy, labels = da.from_array(rows, chunks=(150, 4)), da.from_array(codes, chunks=99)
    engine = DaskEngine()
    partition = engine.partition(engine.labelled(lazy, labels, "MaPML"), 1, lambda *_: None)
    assert len(partition.population._parts) == 3
    return partition.population, LocalPopulation.of(rows, codes)


def latents_per_class(share, sizes):
    return np.concatenate(([0], np.cumsum(np.maximum(1, np.rint(share * sizes).astype(int)))))


def landscape(local, share):
    generator = np.random.default_rng(1)
    class_starts = 2 * latents_per_class(share / 3, local.sizes)
    firsts = np.cumsum(local.sizes) - local.sizes
    numbers = [
        first + np.concatenate([generator.choice(size, (end - begin) // 2, False) for _ in "ab"])
        for first, size, begin, end in zip(
            firsts, local.sizes, class_starts, class_starts[1:], strict=False
        )
    ]
    components = generator.standard_normal((5, N_FEATURES)).astype(np.float32)
    points = local.sample(np.concatenate(numbers)) @ components.T
    lists, counts = (
        list_neighbors(points, class_starts, 1, 2),
        generator.integers(1, 9, len(points)),
    )
    return LatentPoints(components, points, class_starts, lists, counts, 3.0, n_sets=2)


@pytest.mark.parametrize(
    ("visit", "share", "message_bytes"),
    [(RowSubset(), 0.05, 300), (RowSubset(4, 3), 0.5, 2**20), (RowSubset(1_000, 999), 0.5, 300)],
)
def test_nearby_latent_examples_are_those_of_one_machine(
    both, monkeypatch, visit, share, message_bytes
):
    monkeypatch.setattr(dask_population, "MESSAGE_BYTES", message_bytes)
    latent_points = replace(landscape(both[1], share), visit=visit)
    found, expected = (rows.nearby(latent_points, 1) for rows in both)
    np.testing.assert_array_equal(found.own, expected.own)
    np.testing.assert_array_equal(np.sort(found.near), np.sort(expected.near))
    np.testing.assert_allclose(found.likelihood, expected.likelihood, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.spreads, expected.spreads, rtol=1e-5, atol=1e-5)
    for name in ("near", "own", "likelihood", "spreads"):
        assert getattr(found, name).dtype == getattr(expected, name).dtype


def published(**parameters):
    return MaPML.as_published(0.1, max_iter=3, n_steps=400, random_state=0, **parameters)


def assert_same(distributed, local, X):
    np.testing.assert_array_equal(distributed.classes_, local.classes_)
    scale = np.abs(local.latent_examples_).max()
    difference = np.abs(distributed.latent_examples_ - local.latent_examples_).max()
    assert difference <= 1e-3 * scale
    np.testing.assert_array_equal(distributed.latent_labels_, local.latent_labels_)
    np.testing.assert_allclose(distributed.margins_, local.margins_, rtol=1e-3)
    assert np.mean(distributed.predict(X) == local.predict(X)) >= 0.999


@pytest.mark.parametrize(("chunks", "init"), [(3000, "random"), (61, "spaced")])
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
    rejecting = {"reject_below": float(np.median(model.score_samples(X))), "reject_label": -1}
    answer = model.predict(da.from_array(X, chunks=(70, 3)), **rejecting)
    np.testing.assert_array_equal(answer.compute(), model.predict(X, **rejecting))
    with pytest.raises(ValueError, match="y should be a 1d array"):
        model.fit(lazy, da.from_array(np.column_stack((y, y)), chunks=100))
    with pytest.raises(TypeError, match=r"X is a Dask Bag; pass a Dask array"):
        model.predict(Bag({}, "rows", 1))


@pytest.mark.parametrize(("n_rows", "n_passes"), [(1500, 1), (3000, 3)])
def test_a_fit_with_the_defaults_finds_what_one_machine_finds(client, n_rows, n_passes):
    parameters = {"random_state": 0} if n_passes == 1 else {"random_state": 0, "refine": n_passes}
    X, y = make_unbalanced(n_rows + 1000)
    train, test = slice(n_rows), slice(n_rows, None)
    local = MaPML(**parameters).fit(X[train], y[train])
    lazy = da.from_array(X[train], chunks=(700, -1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MaPML(**parameters).fit(lazy, da.from_array(y[train], chunks=700))
    assert model.history_[0]["start"] == local.history_[0]["start"]
    assert [r["round"] for r in model.history_] == [r["round"] for r in local.history_]
    assert model.history_[-1]["refinement"] == n_passes
    errors = [1 - fitted.score(X[test], y[test]) for fitted in (model, local)]
    assert abs(errors[0] - errors[1]) <= 0.002
    scale = np.abs(local.latent_examples_).max()
    np.testing.assert_allclose(
        model.latent_examples_ / scale, local.latent_examples_ / scale, atol=1e-3
    )


def test_few_rows_with_many_features_give_the_model_of_one_machine(client):
    X, y = make_blobs(60, n_features=90)
    here = MaPML(random_state=0).fit(X[:40], y[:40])
    there = MaPML(random_state=0).fit(da.from_array(X[:40], (20, 90)), da.from_array(y[:40], 20))
    assert there.components_.shape == here.components_.shape == (39, 90)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(there.score_samples(X), here.score_samples(X), atol=1e-6)


@pytest.mark.usefixtures("short_passes", "in_batches")
def test_a_fit_is_resumed_within_the_refinement(client, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_population, "MESSAGE_BYTES", 20_000)
    X, y = make_unbalanced()
    rows, labels = da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)
    parameters = QUICK | {"refine": 3, "start": "within"}
    whole = MaPML(**parameters).fit(rows, labels)
    with monkeypatch.context() as patched:
        interrupt_round(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            MaPML(**parameters).fit(rows, labels, checkpoint=tmp_path)
    resumed = MaPML(**parameters).fit(rows, labels, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(resumed.latent_examples_, whole.latent_examples_)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    assert_same(resumed, MaPML(**parameters).fit(X, y), X)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals of POSIX")
@pytest.mark.usefixtures("short_passes", "in_batches")
def test_workers_lost_during_the_refinement_change_nothing(processes, monkeypatch):
    X, y = make_unbalanced()
    parameters = QUICK | {"refine": 1, "start": "within"}
    whole = MaPML(**parameters).fit(da.from_array(X, chunks=(300, -1)), y)
    steps, killed, gradient = [], [], DaskPopulation.gradient

    def kill_then_step(self, *arguments):
        steps.append(None)
        if len(steps) == 5:
            killed.extend(processes.run(os.getpid).values())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        return gradient(self, *arguments)

    monkeypatch.setattr(DaskPopulation, "gradient", kill_then_step)
    model = MaPML(**parameters).fit(da.from_array(X, chunks=(300, -1)), y)
    assert len(steps) == refinement.FEWEST_STEPS
    assert len(killed) == 3
    np.testing.assert_allclose(model.latent_examples_, whole.latent_examples_, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("short_passes", "in_batches")
def test_only_samples_of_the_rows_reach_the_client(client, monkeypatch):
    monkeypatch.setattr(race, "RACE_ROWS", 200)
    monkeypatch.setattr(race, "ESTIMATION_ROWS", 150)
    monkeypatch.setattr(alternation, "JUDGED_ROWS", 100)
    X, y = make_blobs(3000)
    received, gather = [], type(client).gather
    monkeypatch.setattr(
        type(client), "gather", lambda *a, **k: received.append(gather(*a, **k)) or received[-1]
    )
    parameters = QUICK | {"n_latents": 5, "refine": 3}
    model = MaPML(**parameters).fit(da.from_array(X, chunks=(500, -1)), y)
    assert model.history_[-1]["refinement"] == 3
    centre, scale = model.model_.coordinates.centre, model.model_.coordinates.scale
    known = {row.tobytes() for row in np.round((X - centre) / scale, 6)}
    reached = set()
    for array in arrays_in(received):
        if array.ndim == 2 and array.shape[1] == X.shape[1] and array.dtype.kind == "f":
            reached |= {row.tobytes() for row in np.round(array, 6)} & known
    assert 200 <= len(reached) <= 200 + 150 + 100


def test_a_missing_client_or_extra_is_reported_with_a_fix(monkeypatch):
    monkeypatch.setattr("distributed.get_client", _no_client)
    with pytest.raises(RuntimeError, match=r"dask\.distributed\.Client\(\)"):
        active_client()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install .*distributed"):
        active_client()


def _no_client():
    raise ValueError("No global client found and no address provided")
