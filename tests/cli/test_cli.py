import subprocess
import sys

import pytest


def call(*arguments, **options):
    code = "from latentmetric.cli.main import run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, **options
    )


def test_help_names_the_commands():
    done = call("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "reproduce" in done.stdout


def test_missing_data_is_one_line_and_exit_code_1(tmp_path):
    done = call("reproduce", "mnist", "--quick", "--data", str(tmp_path), "--out", str(tmp_path))
    assert done.returncode == 1
    assert "mnist.npz" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_experiment_is_a_usage_error():
    assert call("reproduce", "minst").returncode == 2


def test_without_typer_the_extra_is_named(monkeypatch):
    from latentmetric.cli import main

    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"latentmetric\[cli\]"):
        main.run()
