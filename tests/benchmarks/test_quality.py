"""What quality.py keeps, adds, checks and measures again; the fits are made up."""

import json
import sys

import pytest
import quality

MEASURED = {"three_nearest_error": 2.0, "nll": 0.1, "ece": 1.0, "seconds": 1.0, "start": "within"}


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """The seeds that were measured; the error of seed s is s."""
    done = []

    def measure(split, row, seed):
        done.append(seed)
        return {"error": float(seed), **MEASURED}

    for module in ("common", "quality"):
        monkeypatch.setattr(f"{module}.RESULTS", tmp_path)
    monkeypatch.setattr("common.gemm_gflops", lambda: 1.0)
    monkeypatch.setattr(quality, "gemm_gflops", lambda: 1.0)
    monkeypatch.setattr(quality, "splits", lambda name: [None])
    monkeypatch.setattr(quality, "measure", measure)
    return done


def call(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["quality.py", *arguments])
    quality.main()
    path = quality.RESULTS / "quality.json"
    return json.loads(path.read_text())["cells"]


def test_seeds_are_added_to_those_that_are_there(ran, monkeypatch):
    call(monkeypatch, "--rows", "letter", "--seeds", "2")
    cells = call(monkeypatch, "--rows", "letter", "--seeds", "3")
    assert ran == [0, 1, 2]
    assert cells["letter"]["error"] == [0, 1, 2]


def test_rows_of_another_source_are_measured_again_and_the_others_stay(ran, monkeypatch):
    call(monkeypatch, "--rows", "letter;MNIST", "--seeds", "1")
    monkeypatch.setattr(quality, "source_hash", lambda: "new")
    cells = call(monkeypatch, "--rows", "letter", "--seeds", "1")
    assert len(ran) == 3
    assert cells["letter"]["source"] == "new" != cells["MNIST"]["source"]


def test_a_check_measures_the_first_run_and_says_whether_it_repeats(ran, monkeypatch, capsys):
    call(monkeypatch, "--rows", "letter", "--seeds", "2")
    monkeypatch.setattr(quality, "source_hash", lambda: "new")
    cells = call(monkeypatch, "--rows", "letter", "--seeds", "2", "--check")
    assert ran == [0, 1, 0]
    assert cells["letter"]["source"] == "new"
    assert "letter repeats" in capsys.readouterr().out
    monkeypatch.setattr(quality, "measure", lambda *_: {"error": 9.0, **MEASURED})
    cells = call(monkeypatch, "--rows", "letter", "--seeds", "2", "--check")
    assert "letter differs" in capsys.readouterr().out
    assert cells["letter"]["error"] == [9, 9]
