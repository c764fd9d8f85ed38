"""The demo: what it prints is true of its models, and it writes what it says."""

import re
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_digits

from latentmetric import MaPML, demo


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Three digits, and quick fits."""
    X, y = load_digits(return_X_y=True)
    rows = np.flatnonzero(y >= 7)[:180]
    monkeypatch.setattr(demo, "load_digits", lambda return_X_y: (X[rows], y[rows]))
    monkeypatch.setattr(demo, "MaPML", partial(MaPML, max_iter=1, n_steps=200, refine=1))
    monkeypatch.setattr("latentmetric.evaluation.rivals.STRENGTHS", (1.0,))
    monkeypatch.setattr("latentmetric.evaluation.rivals.NEIGHBORS", (1, 3))
    monkeypatch.setattr("latentmetric.evaluation.comparison.MIN_SECONDS", 0)


@pytest.mark.filterwarnings("ignore:a share of 0.05 is 4.2 of the 84 rows")
def test_the_demo_prints_its_tables_and_writes_its_files(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "new folder"
    monkeypatch.setattr(sys, "argv", ["demo", "--out", str(folder)])
    monkeypatch.setenv("COLUMNS", "80")
    demo.main()
    printed = capsys.readouterr()
    for name in demo.NAMES:
        assert printed.out.count(name) >= 3
        assert f"noisy images: {name}" in printed.err, "progress where there is no terminal"
    for word in ("error", "references", "fit", "per query", "calibration", "compare table.csv"):
        assert word in printed.out
    rows = [line for line in printed.out.splitlines() if re.match(r"MaPML, .* ms", line)]
    assert len(rows) == 6
    assert all(len(row) <= 80 and "…" not in row for row in rows)
    assert re.search(r"turns away \d+ % of them .* without a new fit", printed.out, re.DOTALL)
    assert (folder / "report.html").as_uri() in printed.out
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_without_rich_the_demo_names_the_extra(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(SystemExit, match=r"pip install .*rich"):
        demo.main()


def test_some_labels_are_drawn_at_random():
    labels = np.arange(1000) % 10
    wrong = demo.mislabelled(labels) != labels
    assert 0.2 < wrong.mean() <= demo.DRAWN_LABELS


def test_measurements_agree_with_the_model():
    made = demo.Demo()
    for name in demo.NAMES:
        found = made.measure(name, made.X_train, made.y_train, label_noise=True)
        assert 1 - found.error == pytest.approx(found.model.score(made.X_test, made.y_test))
        assert (found.calibration is None) != hasattr(found.model, "predict_proba")
        if name == demo.EUCLID:
            assert found.references == len(made.y_train)
        if name == demo.MAPML:
            assert found.references == len(found.model.latent_examples_) > 9
            assert found.model.label_noise


def results_of(n_rows, wrong):
    """A result of each method, with this many of the rows wrong."""
    return {
        name: demo.Measured(
            name, 0, np.arange(n_rows) >= n_wrong, 1.0, 0.1, 1000, None, None, true=None
        )
        for name, n_wrong in zip(demo.NAMES, wrong, strict=True)
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (10, 40, "better than SVC, by more than chance explains."),
        (40, 10, "worse than SVC, by more than chance explains."),
        (10, 12, "about as good as SVC: chance explains the difference."),
    ],
)
def test_wrong_labels_end_with_a_verdict(ours, theirs, verdict):
    told = demo.about_wrong_labels(results_of(100, (20, 20, 20, theirs, ours, 20)), 0.27)
    assert told.startswith("With 27 % of the labels wrong, 3-NN gets 20.0 %")
    assert told.endswith(f"and MaPML {ours}.0 % of the test images wrong. MaPML is {verdict}")
