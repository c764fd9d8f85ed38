"""The script: its options, and errors in one line."""

import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from urllib.error import URLError

import compute_features
import data
import pytest
import reproduce
import sklearn.datasets
from reproduction import run
from reproduction.plan import SUBSET, trials_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

NOT_ALL_COMPUTED = ("MaPML_10, refined", "HR-SGD, unbiased")
"""Methods that were added after the others and may lack some trials."""


@pytest.fixture
def called(monkeypatch):
    """What the script asks to be computed or reported."""
    calls = []
    for name in ("run", "report"):
        monkeypatch.setattr(
            run, name, lambda experiments, name=name, **options: calls.append(
                (name, experiments, options)
            )
        )  # fmt: skip
    return calls


def test_the_options_reach_the_run(called, tmp_path):
    words = ["all", "--quick", "--out", str(tmp_path), "--data", "d", "--imagenet", "f.npz"]
    assert reproduce.main(words) == 0
    assert reproduce.main(["mnist", "--report", "--trials", "2"]) == 0
    (name, experiments, options), (second, chosen, others) = called
    assert (name, experiments) == ("run", list(reproduce.EXPERIMENTS))
    assert (options["quick"], options["out"], options["n_trials"]) == (True, tmp_path, 1)
    assert options["source"].folder == Path("d")
    assert options["source"].imagenet == Path("f.npz")
    assert (second, chosen) == ("report", ["mnist"])
    assert (others["quick"], others["n_trials"]) == (False, 2)
    assert others["out"] == Path("paper-results")


@pytest.mark.parametrize("words", [["minst"], ["mnist", "--trials", "0"], []])
def test_a_wrong_call_is_2(called, words, capsys):
    with pytest.raises(SystemExit) as ended:
        reproduce.main(words)
    assert ended.value.code == 2
    assert called == []
    assert "error:" in capsys.readouterr().err


def test_missing_data_is_one_line_with_the_option_and_the_variable(tmp_path, capsys):
    out = tmp_path / "results"
    assert reproduce.main(["cifar10", "--data", str(tmp_path), "--out", str(out)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: cifar10: ")
    assert re.search("cifar10_features.npz does not exist.*--data.*LATENTMETRIC_DATA", line)
    assert not out.exists()


def test_a_failed_download_is_one_line(tmp_path, monkeypatch, capsys):
    def fail(name, **options):
        warnings.warn("A network error occurred while downloading it. Retrying...", stacklevel=1)
        raise URLError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    monkeypatch.delenv("LATENTMETRIC_DATA", raising=False)
    data._from_openml.cache_clear()
    assert reproduce.main(["mnist", "--out", str(tmp_path / "results")]) == 1
    announced, line = capsys.readouterr().err.splitlines()
    assert announced.startswith("mnist: from OpenML")
    assert re.match("Error: mnist could not be downloaded .*no route.*--data", line)


def test_a_missing_library_is_named_with_its_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "reproduction.run", None)
    assert reproduce.main(["mnist"]) == 1
    assert "pip install -e '.[demo]'" in capsys.readouterr().err


def test_ctrl_c_is_130(monkeypatch):
    def interrupted(experiments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", interrupted)
    assert reproduce.main(["mnist"]) == reproduce.INTERRUPTED


def test_the_stored_results_are_read(tmp_path, capsys):
    stored = BENCHMARKS / "results" / "paper"
    if not (stored / "cells").is_dir():
        pytest.skip("the source archive has no stored results")
    shutil.copytree(stored / "cells", tmp_path / "cells")
    shutil.copy(stored / "lmnn-estimate.json", tmp_path)
    assert reproduce.main(["all", "--report", "--out", str(tmp_path)]) == 0
    planned = trials_of(reproduce.EXPERIMENTS, 5, quick=False)
    page = (tmp_path / "results.md").read_text()
    stored = {path.stem for path in (tmp_path / "cells").glob("*.json")}
    assert stored <= {trial.name for trial in planned}
    missing = [trial for trial in planned if trial.name not in stored]
    assert all(
        trial.setting.dataset == SUBSET or trial.method in NOT_ALL_COMPUTED for trial in missing
    )
    assert f"- trials: {len(stored)} of {len(planned)}" in page
    assert page.split("## The paper's claims")[1].count("| **") == 9
    assert "LMNN was not run on imagenet" in page
    shown = capsys.readouterr().out
    assert "did not hold  6. The objective converges" in shown
    if SUBSET not in {trial.setting.dataset for trial in missing}:
        assert "need results" not in shown


def test_the_script_runs_from_a_clone(tmp_path):
    words = [sys.executable, BENCHMARKS / "reproduce.py", "mnist", "--report", "--out", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, cwd=BENCHMARKS.parent)
    assert done.returncode == 1
    assert "holds none of the" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_commands_in_the_documents_have_these_options():
    root = BENCHMARKS.parent
    pages = [BENCHMARKS / "README.md", *(root / "docs").glob("*.md")]
    lines = [line for page in pages for line in page.read_text().splitlines()]
    for script in (reproduce, compute_features):
        start = f"python benchmarks/{script.__name__}.py "
        commands = [line.strip().partition(" #")[0] for line in lines if line.startswith("    ")]
        commands = [command for command in commands if command.startswith(start)]
        assert len(commands) >= 4
        for command in commands:
            script.parser().parse_args(shlex.split(command)[2:])
