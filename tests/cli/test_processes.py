"""The command as a process of its own: pipes and signals, and never a traceback."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from helpers import make_blobs

import latentmetric

COMMAND = [sys.executable, "-c", "from latentmetric.cli.main import run; run()"]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")

pytestmark = pytest.mark.slow


def start(*arguments, **options):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = make_blobs()
    np.savez("data.npz", x=X, y=y)
    latentmetric.save(latentmetric.Euclidean().fit(X, y), "model")
    return tmp_path


def test_help_needs_neither_scikit_learn_nor_scipy():
    code = (
        "import sys; sys.argv = ['latentmetric', '--help']\n"
        "from latentmetric.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "sys.exit(str(sorted({'scipy', 'sklearn'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"
    assert all(name in done.stdout for name in ("fit", "predict", "report"))


@pytest.mark.parametrize(
    "arguments", [("fit", "-h"), ("info", "model"), ("neighbors", "model", "data.npz")]
)
def test_a_closed_pipe_is_no_error(data, arguments):
    process = start(*arguments)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) == 0
    process.stderr.close()
    assert "Traceback" not in err
    assert "Broken" not in err


def wait_for(process, beginning):
    """Read lines of the process until one begins like this."""
    assert any(line.startswith(beginning) for line in iter(process.stderr.readline, ""))


@POSIX
def test_ctrl_c_keeps_the_best_round(data):
    many = [f"--set={setting}" for setting in ("max_iter=100000", "n_steps=200", "refine=0")]
    process = start("fit", "data.npz", "-o", "new", *many)
    wait_for(process, "round 3 ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Ending after this round" in err
    assert "Traceback" not in err
    kept = latentmetric.load("new")
    assert kept.n_iter_ >= 3
    losses = [record["loss"] for record in kept.history_]
    assert kept.best_iter_ == int(np.argmin(losses))
    assert f"Interrupted after round {kept.n_iter_}; round {kept.best_iter_} was kept." in out
    again = latentmetric.MaPML(max_iter=kept.n_iter_, n_steps=200, random_state=0, refine=0)
    again.fit(*make_blobs())
    np.testing.assert_allclose(again.components_, kept.components_, rtol=1e-9)
