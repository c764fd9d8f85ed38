"""Standard streams as other programs leave them: closed, or not waiting for their reader."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from helpers import make_blobs

import latentmetric

COMMAND = [sys.executable, "-c", "from latentmetric.cli.main import run; run()"]

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs descriptors of POSIX")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    X, y = make_blobs(n_rows=2_000)
    np.savez(tmp_path / "data.npz", x=X, y=y)
    np.save(tmp_path / "rows.npy", X)
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",")
    latentmetric.save(latentmetric.Euclidean().fit(X, y), tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


QUICK = ("--estimator", "euclidean")
CALLS = [
    ("fit", "data.npz", "-o", "new", *QUICK),
    ("compare", "data.npz", "--methods", "euclid", "--folds", "2"),
]


def with_closed(closed, arguments):
    """Run a command without these standard streams; what the other two got."""
    streams = {0: "stdin", 1: "stdout", 2: "stderr"}
    pipes = {name: subprocess.PIPE for place, name in streams.items() if place}
    close = f"import os, sys; [os.close(place) for place in {closed}]; "
    close += f"os.execv(sys.executable, {[*COMMAND, *arguments]!r})"
    return subprocess.run([sys.executable, "-c", close], stdin=subprocess.DEVNULL, **pipes)


@posix
@pytest.mark.parametrize("closed", [[2], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("arguments", CALLS, ids=lambda arguments: arguments[0])
def test_closed_streams_are_no_error(folder, arguments, closed):
    done = with_closed(closed, arguments)
    assert done.returncode == 0, done.stderr
    if arguments[0] == "fit":
        assert latentmetric.load("new").n_features_in_ == 6


@posix
def test_wrong_calls_keep_their_exit_code_without_standard_error(folder):
    assert with_closed([2], ["fit", "data.npz"]).returncode == 2


def test_progress_without_standard_error(monkeypatch):
    from latentmetric.cli._progress import followed

    monkeypatch.setattr(sys, "stderr", None)
    with followed() as follower:
        follower.begin("fit")
        follower.has_read(1, 1)


@posix
@pytest.mark.parametrize("extra", [[], ["--json"]], ids=str)
def test_all_answers_reach_a_pipe_that_does_not_wait(folder, extra):
    arguments = [*COMMAND, "neighbors", "model", "rows.npy", "-k", "50", *extra]
    expected = subprocess.run(arguments, capture_output=True, check=True).stdout
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    process = subprocess.Popen(arguments, stdout=writing, stderr=subprocess.DEVNULL)
    os.close(writing)
    time.sleep(3)  # the pipe is full by now
    with os.fdopen(reading, "rb") as file:
        found = file.read()
    assert process.wait(timeout=60) == 0
    assert found == expected
    assert len(found) > 2**20


@posix
def test_all_rows_are_read_from_a_pipe_that_does_not_wait(folder):
    arguments = [*COMMAND, "predict", "model", "-", "--json"]
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    process = subprocess.Popen(arguments, stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    lines = (folder / "rows.csv").read_bytes().splitlines(keepends=True)
    with os.fdopen(writing, "wb") as file:
        file.write(b"".join(lines[:50]))
        file.flush()
        time.sleep(4)  # the command has read these by now
        file.write(b"".join(lines[50:]))
    found = json.loads(process.communicate(timeout=60)[0])
    assert len(found["label"]) == len(lines)
