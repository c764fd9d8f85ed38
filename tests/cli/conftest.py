"""A table and models of it, copied to the current folder of a test."""

import shutil

import numpy as np
import pandas
import pytest
from helpers import call, make_blobs

import latentmetric

WORDS = np.array(["ant", "bee", "cow"])
NAMES = [f"f{index}" for index in range(6)]


@pytest.fixture(autouse=True)
def _no_trial_fits(monkeypatch):
    """Trial fits after a fit are left out, to save time; tests of them turn them on."""
    monkeypatch.setattr("latentmetric.cli.fit.QUICK_SECONDS", -1)


@pytest.fixture(scope="session")
def _files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    X, y = make_blobs()
    X, y = X.round(6), WORDS[y]  # pandas before 3 reads more digits inexactly
    for name, rows in (("train", slice(0, 180)), ("test", slice(180, 240))):
        table = pandas.DataFrame(X[rows], columns=NAMES).assign(kind=y[rows])
        table.to_csv(folder / f"{name}.csv", index=False)
    call("fit", folder / "train.csv", "-o", folder / "model", "--n-latents", 0.2, "--no-check")
    euclidean = ("--estimator", "euclidean", "--no-check")
    call("fit", folder / "train.csv", "-o", folder / "euclidean", *euclidean)
    return folder


@pytest.fixture
def folder(_files, tmp_path, monkeypatch):
    """train.csv, test.csv, and models of MaPML and Euclidean in the current folder."""
    shutil.copytree(_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def train(folder):
    return pandas.read_csv("train.csv")


@pytest.fixture
def test_rows(folder):
    return pandas.read_csv("test.csv")


@pytest.fixture
def model(folder):
    return latentmetric.load("model")
