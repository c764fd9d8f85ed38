"""The script: its options, and errors in one line."""

import re
import shlex
import shutil
from pathlib import Path

import compute_features
import pytest
import reproduce
from reproduction.plan import SUBSET, trials_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

NOT_ALL_COMPUTED = ("MaPML_10, refined", "HR-SGD, unbiased")
"""Methods that were added after the others and may lack some trials."""


def test_missing_data_is_one_line_with_the_option_and_the_variable(tmp_path, capsys):
    out = tmp_path / "results"
    assert reproduce.main(["cifar10", "--data", str(tmp_path), "--out", str(out)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: cifar10: ")
    assert re.search("cifar10_features.npz does not exist.*--data.*LATENTMETRIC_DATA", line)
    assert not out.exists()


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
