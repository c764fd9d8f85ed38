"""The demo: what it prints is true of its models, and it writes what it says."""

import re
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from latentmetric import MaPML, demo
from latentmetric.demo import __main__ as command
from latentmetric.demo import contenders


@pytest.fixture
def few(monkeypatch):
    """A small task of three digits, and quick fits."""
    whole = contenders.digits()
    train, test = (np.flatnonzero(y >= 7) for y in (whole.y_train, whole.y_test))
    task = contenders.Task(
        whole.X_train[train[:90]], whole.y_train[train[:90]], whole.X_test[test], whole.y_test[test]
    )
    quick = partial(MaPML, max_iter=1, n_steps=200, refine=1)
    monkeypatch.setattr(contenders, "MaPML", quick)
    monkeypatch.setattr(demo, "MaPML", quick)
    monkeypatch.setattr(demo, "digits", lambda: task)
    monkeypatch.setattr("latentmetric.evaluation.rivals.STRENGTHS", (1.0,))
    monkeypatch.setattr("latentmetric.evaluation.rivals.NEIGHBORS", (1, 3))
    monkeypatch.setattr("latentmetric.evaluation.comparison.MIN_SECONDS", 0)
    return task


def test_the_demo_prints_its_tables_and_writes_its_files(few, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "new folder"
    monkeypatch.setattr(sys, "argv", ["demo", "--out", str(folder)])
    monkeypatch.setenv("COLUMNS", "80")
    command.main()
    printed = capsys.readouterr()
    for name in contenders.NAMES:
        assert printed.out.count(name) >= 3
        assert f"noisy images: {name}" in printed.err, "progress where there is no terminal"
    for word in ("error", "references", "fit", "per query", "calibration", "compare table.csv"):
        assert word in printed.out
    rows = [line for line in printed.out.splitlines() if re.match(r"MaPML, .* ms", line)]
    assert len(rows) == 6
    assert all(len(row) <= 80 and "…" not in row for row in rows)
    assert (folder / "report.html").as_uri() in printed.out
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_without_rich_the_demo_names_the_extra(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(SystemExit, match=r"latentmetric\[demo\]"):
        command.main()


def test_noise_and_wrong_labels_leave_the_test_as_it_is(few):
    for changed in (contenders.noisy(few), contenders.mislabelled(few)):
        np.testing.assert_array_equal(changed.X_test, few.X_test)
        np.testing.assert_array_equal(changed.y_test, few.y_test)
    noise = contenders.noisy(few).X_train - few.X_train
    assert noise.std() == pytest.approx(contenders.SIGMA, rel=0.05)
    wrong = contenders.mislabelled(few).y_train != few.y_train
    assert 0.1 < wrong.mean() <= contenders.DRAWN_LABELS


def test_measurements_agree_with_the_model_and_words_with_them(few):
    results = {name: contenders.measure(name, few, True) for name in contenders.NAMES}
    for measured in results.values():
        assert 1 - measured.error == pytest.approx(measured.model.score(few.X_test, few.y_test))
        assert (measured.calibration is None) != hasattr(measured.model, "predict_proba")
    assert results[contenders.EUCLID].references == len(few.y_train)
    assert results[contenders.LOGISTIC].references == 0
    ours = results[contenders.MAPML]
    assert ours.references == len(ours.model.latent_examples_) == 9
    assert ours.model.label_noise
    results = {
        name: replace(measured, right=np.arange(20) >= index, references=1000 + index)
        for index, (name, measured) in enumerate(results.items())
    }
    assert demo.about_clean(results).startswith(
        "Of 20 test images, MaPML gets 4 wrong with 1004 references; 3-NN gets 0 wrong with all "
        "1,000 images, tuned k-NN 1, logistic regression 2 and tuned SVC 3. "
    )
    errors = (
        "3-NN gets 0 %, tuned k-NN 5 %, logistic regression 10 %, tuned SVC 15 % and MaPML 20 %"
    )
    assert f"noise, {errors} of the clean test images wrong" in demo.about_noise(results)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (10, 40, "better than tuned SVC, by more than chance explains."),
        (40, 10, "worse than tuned SVC, by more than chance explains."),
        (10, 12, "about as good as tuned SVC: chance explains the difference."),
    ],
)
def test_wrong_labels_end_with_a_verdict(ours, theirs, verdict):
    wrong = dict.fromkeys(contenders.NAMES, 20) | {
        contenders.MAPML: ours,
        contenders.SUPPORT: theirs,
    }
    results = {
        name: contenders.Measured(None, np.arange(100) >= n_wrong, 9, 1.0, 0.1, None)
        for name, n_wrong in wrong.items()
    }
    told = demo.about_wrong_labels(results, 0.27)
    assert told.startswith("With 27 % of the labels wrong, 3-NN gets 20.0 %")
    assert told.endswith(f"and MaPML {ours}.0 % of the test images wrong. MaPML is {verdict}")


def test_the_missing_class_is_turned_away_and_then_added(few, monkeypatch):
    made = []
    monkeypatch.setattr(demo, "MaPML", lambda **given: made.append(MaPML(**given)) or made[0])
    rejected, added = demo.about_new_class(few)
    new, (model,) = few.y_test == demo.LEFT_OUT, made
    assert demo.LEFT_OUT in model.classes_
    right = model.predict(few.X_test) == few.y_test
    assert f"{demo.percent(right[new].mean())} of the test's 9s are recognised" in added
    known = few.without(demo.LEFT_OUT)
    model = MaPML(random_state=0).fit(known.X_train, known.y_train)
    below = model.score_samples(few.X_test) < model.reject_threshold(demo.REJECTED_SHARE)
    assert f"turns away {demo.percent(below[new].mean())} of them" in rejected
