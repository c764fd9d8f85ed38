"""The recipes of docs/architecture.md: each thing is added in one place and works everywhere."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import interrupt_round, make_blobs

import latentmetric
from latentmetric import MaPML, evaluation, export, registry, viz
from latentmetric.core import votes
from latentmetric.core.population import LocalPopulation
from latentmetric.engines import dispatch
from latentmetric.engines.local import encoded
from latentmetric.engines.protocol import LabelledRows, Partition
from latentmetric.io import formats, open_rows, open_table
from latentmetric.validation.rows import as_floats, check_features

QUICK = {"max_iter": 2, "n_steps": 100, "random_state": 0}


class TestAnEstimator:
    @pytest.fixture(autouse=True)
    def _registered(self, monkeypatch):
        monkeypatch.setitem(registry.ESTIMATORS, "Whitened", "whitened")
        from whitened import Whitened

        self.kind = Whitened

    def test_it_is_fitted_saved_exported_drawn_and_reported(self, blobs, tmp_path):
        X, y = blobs
        model = self.kind(shrinkage=0.01).fit(X, y)
        covariance = np.cov(model.transform(X).T)
        np.testing.assert_allclose(covariance / covariance[0, 0], np.eye(6), atol=0.2)
        latentmetric.save(model, tmp_path / "model")
        loaded = latentmetric.load(tmp_path / "model")
        assert loaded.get_params() == model.get_params()
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(export.to_sklearn(model).predict(X), model.predict(X))
        assert viz.write_report(model, X, y, tmp_path / "report.html").exists()
        viz.plot_spectrum(model)

    def test_it_is_compared(self, blobs, monkeypatch):
        monkeypatch.setitem(evaluation.METHODS, "Whitened", "Whitened")  # as a new import has it
        found = list(evaluation.compare(*blobs, ["Whitened"], n_folds=2))
        assert all(outcome.error < 0.3 for outcome in found)

    def test_it_is_interrupted_and_resumed(self, blobs, tmp_path, monkeypatch):
        with monkeypatch.context() as patched:
            interrupt_round(patched, 0)
            with pytest.raises(KeyboardInterrupt):
                self.kind().fit(*blobs, checkpoint=tmp_path)
        resumed = self.kind().fit(*blobs, checkpoint=tmp_path, resume=True)
        np.testing.assert_array_equal(resumed.components_, self.kind().fit(*blobs).components_)

    @pytest.mark.slow
    def test_it_is_an_estimator_of_the_commands(self, blobs, tmp_path):
        X, y = blobs
        np.savez(tmp_path / "data.npz", X=X, y=y)
        script = (
            "import sys; from latentmetric import registry\n"
            "registry.ESTIMATORS['Whitened'] = 'whitened'\n"
            "from latentmetric.cli.main import run\n"
            "sys.argv[0] = 'latentmetric'; run()\n"
        )
        call = [sys.executable, "-c", script, "fit", "data.npz", "-o", "model"]
        asked = ["--estimator", "whitened", "--set", "shrinkage=0.5"]
        done = subprocess.run(
            [*call, *asked], cwd=tmp_path, capture_output=True, text=True,
            env={"PYTHONPATH": str(Path(__file__).parent)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Whitened" in done.stdout
        assert latentmetric.load(tmp_path / "model").shrinkage == 0.5


def test_a_vote_is_one_entry(blobs, tmp_path, monkeypatch):
    def by_rank(squared, temperature):
        return np.broadcast_to(1.0 / np.arange(1, squared.shape[1] + 1), squared.shape)

    X, y = blobs
    monkeypatch.setitem(votes.VOTES, "rank", votes.Vote(by_rank, needs_distances=False))
    model = MaPML(weights="rank", early_stopping=True, **QUICK).fit(X, y)
    assert model.predict_proba(X).max() <= 1
    latentmetric.save(model, tmp_path / "model")
    np.testing.assert_array_equal(
        latentmetric.load(tmp_path / "model").predict(X), model.predict(X)
    )
    assert viz.write_report(model, X, y, tmp_path / "report.html").exists()
    for exported in (export.to_sklearn, lambda model: export.to_onnx(model, tmp_path / "onnx")):
        with pytest.raises(ValueError, match="weights='rank'"):
            exported(model)
    with pytest.raises(ValueError, match="'rank', got 'ranks'"):
        model.set_params(weights="ranks").predict(X)


def test_a_file_format_is_one_entry(blobs, tmp_path, monkeypatch):
    X, y = blobs
    monkeypatch.setitem(formats.FORMATS, ".numbers", formats.open_npy)
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "rows.npy").rename(tmp_path / "rows.numbers")
    (tmp_path / "labels.txt").write_text("\n".join(map(str, y)))
    np.testing.assert_array_equal(open_rows(tmp_path / "rows.numbers")[:], X)
    table = open_table(tmp_path / "rows.numbers", tmp_path / "labels.txt")
    MaPML(**QUICK).fit(table.rows, table.labels)
    (tmp_path / "rows.other").touch()
    with pytest.raises(ValueError, match=r"\.numbers"):
        open_rows(tmp_path / "rows.other")


class Heap:
    """Rows in several blocks, as a cluster would have them."""

    def __init__(self, X):
        self.blocks = np.array_split(X, 3)
        self.shape, self.dtype = X.shape, X.dtype


class HeapEngine:
    in_process = False

    def holds(self, X):
        return isinstance(X, Heap)

    def validate(self, X, estimator, *, training):
        check_features(estimator, X.shape[1], None, reset=training)
        return X

    def labelled(self, rows, y, owner):
        return LabelledRows(self, rows, *encoded(rows.shape[0], y, owner))

    def partition(self, labelled, n_threads, progress):
        rows = np.concatenate(labelled.rows.blocks)
        return Partition(LocalPopulation.of(rows, labelled.codes, n_threads))

    def map_blocks(self, function, rows, dtype, width):
        starts = np.cumsum([0, *map(len, rows.blocks)])
        return [
            function(as_floats(block), int(start))
            for start, block in zip(starts, rows.blocks, strict=False)
        ]

    def gather(self, rows, caller):
        raise TypeError(f"{caller}: rows of a heap stay there")


def test_an_engine_is_one_entry(monkeypatch):
    X, y = make_blobs()
    monkeypatch.setattr(dispatch, "ENGINES", (HeapEngine(), *dispatch.ENGINES))
    model, local = MaPML(**QUICK).fit(Heap(X), y), MaPML(**QUICK).fit(X, y)
    np.testing.assert_array_equal(model.components_, local.components_)
    np.testing.assert_array_equal(np.concatenate(model.predict(Heap(X))), local.predict(X))
    for refused in (
        lambda: latentmetric.LMNN().fit(Heap(X), y), lambda: model.set_references(Heap(X), y),
        lambda: viz.plot_latents(model, Heap(X), y),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"heap|in the memory of one process"):
            refused()
    for parameters in ({"early_stopping": True}, {"reference": "original"}):
        with pytest.raises(ValueError, match="would gather rows of a cluster on one machine"):
            MaPML(**QUICK, **parameters).fit(Heap(X), y)
