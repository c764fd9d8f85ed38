"""The command as a process of its own: exit codes, pipes, signals, and never a traceback."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import make_blobs

import latentmetric
from latentmetric.io import open_table

COMMAND = [sys.executable, "-c", "from latentmetric.cli.main import run; run()"]


@pytest.fixture
def data(tmp_path):
    X, y = make_blobs()
    np.savez(tmp_path / "data.npz", x=X, y=y)
    return tmp_path / "data.npz"


def start(*arguments, **options):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def call(*arguments, **options):
    process = start(*arguments, **options)
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert "Traceback" not in err
    return process.returncode, out, err


def test_help_needs_neither_scikit_learn_nor_scipy():
    code = (
        "import sys; sys.argv = ['latentmetric', '--help']\n"
        "from latentmetric.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "loaded = {'numpy', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "sys.exit(str(sorted(loaded)) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("fit", "predict", "report"))


def test_without_typer_the_extra_is_named(monkeypatch):
    from latentmetric.cli import main

    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"latentmetric\[cli\]"):
        main.run()


def test_exit_codes_of_bad_input_and_wrong_calls(data, tmp_path):
    model = tmp_path / "model"
    for expected, arguments in (
        (1, ("fit", tmp_path / "none.npy", "-o", model)),
        (2, ("fit", data)),
        (2, ("reproduce", "mnist")),
    ):
        code, out, err = call(*arguments)
        assert (code, out) == (expected, ""), arguments
        assert "Error" in err
    assert not model.exists()


def test_a_reader_that_stops_early_is_no_error(tmp_path):
    X, y = make_blobs(n_rows=30_000)
    np.savez(tmp_path / "data.npz", x=X, y=y)
    model = tmp_path / "model"
    few = ("--max-iter", "0", "--n-latents", "2")
    assert call("fit", tmp_path / "data.npz", "-o", model, *few)[0] == 0
    for extra in ((), ("--json",)):
        process = start("predict", model, tmp_path / "data.npz", *extra)
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=60) == 0
        process.stderr.close()
        assert "Traceback" not in err
        assert "Broken" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("fit", "-h"),
        ("--version",),
        ("info", "{model}"),
        ("info", "{model}", "--json"),
        ("evaluate", "{model}", "{data}"),
        ("neighbors", "{model}", "{data}"),
    ],
    ids=" ".join,
)
def test_a_closed_pipe_is_no_error(data, tmp_path, arguments):
    """The pipe is closed before anything is written, so that every write fails."""
    model = tmp_path / "model"
    table = open_table(data)
    latentmetric.save(latentmetric.Euclidean().fit(np.asarray(table.rows), table.labels), model)
    reading, writing = os.pipe()
    os.close(reading)
    named = [part.format(model=model, data=data) for part in arguments]
    done = subprocess.run([*COMMAND, *named], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_an_error_stays_an_error_when_the_pipe_is_closed(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "info", str(tmp_path / "none")], stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert done.returncode == 1


def test_a_closed_pipe_is_recognised_on_windows(monkeypatch):
    from latentmetric.cli import _errors

    invalid = OSError(errno.EINVAL, "Invalid argument")
    assert not _errors.is_closed_pipe(invalid)
    monkeypatch.setattr(sys, "platform", "win32")
    assert _errors.is_closed_pipe(invalid)
    assert not _errors.is_closed_pipe(OSError(errno.EINVAL, "Invalid argument", "name"))


def test_standard_input_of_a_process(data, tmp_path):
    table = open_table(data)
    X = np.asarray(table.rows)
    latentmetric.save(latentmetric.Euclidean().fit(X, table.labels), tmp_path / "model")
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",")
    expected = call("predict", tmp_path / "model", tmp_path / "rows.csv")[1]
    with (tmp_path / "rows.csv").open("rb") as file:
        code, out, err = call("predict", tmp_path / "model", "-", stdin=file)
    assert (code, out) == (0, expected)
    assert "of <stdin>" in err
    code, _, err = call("predict", tmp_path / "model", "-", stdin=subprocess.DEVNULL)
    assert (code, err.strip()) == (1, "Error: <stdin> is empty")


def wait_for(process, beginning):
    """Read lines of the process until one begins like this."""
    assert any(line.startswith(beginning) for line in iter(process.stderr.readline, ""))


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
def test_ctrl_c_keeps_the_best_round(data, tmp_path):
    model = tmp_path / "model"
    many = ("--max-iter", "100000", "--n-steps", "200", "--random-state", "0", "--refine", "0")
    process = start("fit", data, "-o", model, *many)
    wait_for(process, "round 3 ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Ending after this round" in err
    assert "Traceback" not in err
    kept = latentmetric.load(model)
    assert kept.n_iter_ >= 3
    losses = [record["loss"] for record in kept.history_]
    assert kept.best_iter_ == int(np.argmin(losses))
    assert f"Interrupted after round {kept.n_iter_}; round {kept.best_iter_} was kept." in out
    table = open_table(data)
    again = latentmetric.MaPML(max_iter=kept.n_iter_, n_steps=200, random_state=0, refine=0)
    again.fit(table.rows, table.labels)
    np.testing.assert_array_equal(again.components_, kept.components_)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
def test_a_second_ctrl_c_keeps_the_old_model(data, tmp_path):
    """A round of three million steps gives time to press it again."""
    model = tmp_path / "model"
    assert call("fit", data, "-o", model, "--max-iter", "0")[0] == 0
    before = model.read_bytes()
    X, y = make_blobs(n_rows=60_000)
    np.savez(tmp_path / "large.npz", x=X, y=y)
    long = ("--n-steps", "3000000", "--n-latents", "20")
    process = start("fit", tmp_path / "large.npz", "-o", model, *long)
    wait_for(process, "round 0 ")
    time.sleep(2)  # into the next round: the current one may just be ending
    process.send_signal(signal.SIGINT)
    wait_for(process, "Ending")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert model.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "large.npz", "model"]


def test_a_closed_standard_error_does_not_end_a_fit(data, tmp_path):
    process = start("fit", data, "-o", tmp_path / "model", "--max-iter", "30", "--json")
    process.stderr.readline()
    process.stderr.close()
    out = process.stdout.read()
    assert process.wait(timeout=60) == 0
    process.stdout.close()
    assert json.loads(out)["rounds"] == 30 + 3
    assert Path(tmp_path / "model").exists()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal to pretend to")
def test_a_terminal_gets_a_bar(data, tmp_path):
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, "fit", str(data), "-o", str(tmp_path / "model"), "--early-stopping"],
        stdout=subprocess.PIPE, stderr=follower, env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    process.communicate(timeout=60)
    os.close(leader)
    assert process.returncode == 0
    assert b"round " in shown
    assert b"validation error" in shown
    assert b"(refinement 3)" in shown


def test_a_killed_fit_is_resumed_to_the_same_model(tmp_path, data):
    options = ("--n-steps", 400, "--max-iter", 30, "--random-state", 0)
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert call("fit", data, "-o", whole, *options)[0] == 0
    kept = tmp_path / "kept"
    process = start("fit", data, "-o", out, *options, "--checkpoint", kept)
    for line in process.stderr:
        if "round 3" in line:
            break
    process.kill()
    process.communicate()
    assert not out.exists()
    code, _, err = call("fit", data, "-o", out, *options, "--checkpoint", kept)
    assert code == 1
    assert "resume=True (--resume)" in err
    assert call("fit", data, "-o", out, *options, "--checkpoint", kept, "--resume")[0] == 0
    models = [latentmetric.load(path) for path in (whole, out)]
    np.testing.assert_array_equal(*[model.components_ for model in models])
    np.testing.assert_array_equal(*[model.latent_examples_ for model in models])


def test_resume_needs_a_checkpoint(tmp_path, data):
    code, _, reported = call("fit", data, "-o", tmp_path / "m", "--resume")
    assert code == 2
    assert "--checkpoint" in reported


def test_every_estimator_keeps_checkpoints(tmp_path, data):
    arguments = ("--estimator", "hrsgd", "--n-steps", 200, "--checkpoint", tmp_path / "c")
    code, _, reported = call("fit", data, "-o", tmp_path / "m", *arguments)
    assert code == 0, reported
    assert (tmp_path / "c" / "checkpoint.safetensors").exists()
    code, _, reported = call("fit", data, "-o", tmp_path / "again", *arguments, "--resume")
    assert code == 0, reported
