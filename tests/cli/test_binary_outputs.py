"""Answers in binary files are the model's own labels, and existing files are told apart."""

import os
import zipfile

import numpy as np
import pyarrow.parquet
import pytest
from helpers import call, make_blobs

import latentmetric
import latentmetric.persistence.checkpoints as checkpoints
from latentmetric import Euclidean, MaPML


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save_model(labels, path="model"):
    X = np.array([[0.0], [9.0]] * 5) + np.arange(10)[:, None] / 100
    np.savez("table.npz", X=X, y=np.array(labels.tolist() * 5))
    latentmetric.save(Euclidean(n_neighbors=1).fit(X, np.tile(labels, 5)), path)


def test_parquet_keeps_zero_characters(folder):
    labels = np.array(["a\0b", "a"])
    save_model(labels)
    np.savez("rows.npz", X=np.load("table.npz")["X"], names=np.array(["r\0x", "r\0y"] * 5))
    call("predict", "model", "rows.npz", "--id", "names", "-o", "labels.parquet")
    table = pyarrow.parquet.read_table("labels.parquet")
    assert table["label"].to_pylist() == labels.tolist() * 5
    assert table["names"].to_pylist() == ["r\0x", "r\0y"] * 5
    call("neighbors", "model", "rows.npz", "-k", "1", "-o", "nearest.parquet")
    table = pyarrow.parquet.read_table("nearest.parquet")
    assert table["label"].to_pylist() == labels.tolist() * 5


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "model", "table.npz", "-o", "out.npy"),
        ("export", "model", "--to", "faiss", "-o", "out.faiss"),
    ],
)
def test_arrays_that_would_cut_a_label_are_refused(folder, arguments):
    save_model(np.array(["a", "b"]))
    save_model(np.array(["a", "a\0"], dtype=object))
    assert "'a\\x00', which ends in a zero character" in call(*arguments, code=1).stderr
    assert not [name for name in os.listdir() if name.startswith("out")]


def test_an_unreadable_archive_is_not_recognised(folder):
    save_model(np.array(["a", "b"]))
    call("export", "model", "--to", "faiss", "-o", "index")
    content = bytearray((folder / "index.npz").read_bytes())
    content[content.find(b"PK\x01\x02") + 6] = 99  # the version that is needed to unpack
    (folder / "index.npz").write_bytes(content)
    with pytest.raises(RuntimeError, match="zip file version"):
        zipfile.ZipFile("index.npz")
    done = call("export", "model", "--to", "faiss", "-o", "index", code=1)
    assert "index.npz exists and is not recognised" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_unreadable_parquet_is_not_recognised(folder):
    save_model(np.array(["a", "b"]))
    (folder / "out.parquet").write_bytes(b"PAR1" + b"\xff" * 40 + b"PAR1")
    done = call("predict", "model", "table.npz", "-o", "out.parquet", code=1)
    assert "out.parquet exists and is not recognised" in done.stderr


@pytest.fixture
def interrupted(folder, monkeypatch):
    """The checkpoint of a fit that was not finished, in the folder state."""
    X, y = make_blobs()
    np.savez("table.npz", X=X, y=y)
    written = checkpoints.Checkpoints.write

    def write_and_stop(self, progress):
        written(self, progress)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.Checkpoints, "write", write_and_stop)
        with pytest.raises(KeyboardInterrupt):
            MaPML(n_steps=50, n_latents=3, random_state=0).fit(X, y, checkpoint="state")
    return folder / "state" / checkpoints.FILE_NAME


def test_a_checkpoint_is_no_model_to_replace(interrupted):
    before = interrupted.read_bytes()
    arguments = ("fit", "table.npz", "-o", interrupted, "--estimator", "euclidean")
    done = call(*arguments, code=1)
    assert "checkpoint.safetensors exists and is not recognised as a latentmetric model f" in (
        done.stderr
    )
    assert interrupted.read_bytes() == before
    call(*arguments, "--overwrite")
    latentmetric.load(interrupted)
    assert call(*arguments).stdout  # a model at this place is replaced as at any other


def test_a_checkpoint_given_as_a_model_is_called_one(interrupted):
    message = call("info", interrupted, code=1).stderr
    assert "the estimator 'checkpoint' is not one of" in message


@pytest.mark.parametrize("inside", ["", "state"])
def test_a_checkpoint_is_not_written_into_a_folder_that_is_read(folder, inside):
    zarr = pytest.importorskip("zarr")
    X, y = make_blobs()
    group = zarr.open_group("table.zarr", mode="w")
    group.create_array("x", data=X)
    group.create_array("y", data=y)
    before = sorted(folder.rglob("*"))
    done = call(
        "fit", "table.zarr", "-o", "model", "--estimator", "euclidean", "--checkpoint",
        folder / "table.zarr" / inside, code=1,
    )  # fmt: skip
    assert "this command reads table.zarr; name another folder with --checkpoint" in done.stderr
    assert sorted(folder.rglob("*")) == before


def test_the_demo_tries_its_folder_before_any_work(folder, monkeypatch):
    monkeypatch.setattr("latentmetric.demo.digits", lambda: pytest.fail("work"))
    (folder / "taken").write_text("mine")
    assert "taken" in call("demo", "--out", "taken", code=1).stderr
    assert (folder / "taken").read_text() == "mine"


def test_standard_input_is_read_once(folder):
    save_model(np.array(["a", "b"]))
    done = call("report", "model", "-", "--train", "-", code=2)
    assert "standard input can be read only once" in done.stderr


@pytest.mark.parametrize("words", [["True", "False"], ["false", "true"]])
def test_booleans_in_text_are_those_of_the_model(folder, words):
    X, y = np.array([[0.0], [1.0]] * 5), np.array([False, True] * 5)
    if words[0] == "True":
        y = ~y
    latentmetric.save(Euclidean(n_neighbors=1).fit(X, y), "model")
    rows = "".join(f"{int(x)},{word}\n" for (x,), word in zip(X, words * 5, strict=True))
    (folder / "test.csv").write_text("x,label\n" + rows)
    assert '"error": 0.0' in call("evaluate", "model", "test.csv", "--json").stdout
