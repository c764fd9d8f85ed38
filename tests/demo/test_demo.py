"""The demo: what it prints is true of its models, and it writes what it says."""

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from latentmetric import MaPML, demo
from latentmetric.demo import __main__ as command
from latentmetric.demo import contenders, tasks, words
from latentmetric.demo.open_world import new_class, unknown_rows
from latentmetric.demo.printing import Printer


@pytest.fixture
def few(monkeypatch):
    """A small task of three digits, and quick fits."""
    whole = tasks.digits()
    train, test = (np.flatnonzero(y >= 7) for y in (whole.y_train, whole.y_test))
    task = tasks.Task(
        whole.X_train[train[:90]], whole.y_train[train[:90]], whole.X_test[test], whole.y_test[test]
    )
    quick = partial(MaPML, max_iter=1, n_steps=200, refine=1)
    monkeypatch.setattr(contenders, "MaPML", quick)
    monkeypatch.setattr(demo, "MaPML", quick)
    monkeypatch.setattr("latentmetric.evaluation.rivals.logistic.STRENGTHS", (1.0,))
    monkeypatch.setattr("latentmetric.evaluation.rivals.neighbours.NEIGHBOURS", (1, 3))
    monkeypatch.setattr(demo, "digits", lambda: task)
    monkeypatch.setattr("latentmetric.comparison.timing.ENOUGH_SECONDS", 0)
    return task


def test_the_demo_prints_its_tables_and_writes_its_files(few, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "new folder"
    monkeypatch.setattr(sys, "argv", ["demo", "--out", str(folder)])
    command.main()
    printed = capsys.readouterr()
    for name in contenders.NAMES:
        assert printed.out.count(name) >= 3
        assert f"noisy images: {name}" in printed.err, "progress where there is no terminal"
    for word in ("error", "references", "fit", "per query", "calibration", "compare table.csv"):
        assert word in printed.out
    assert (folder / "report.html").as_uri() in printed.out
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_without_rich_the_demo_names_the_extra(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(SystemExit, match=r"latentmetric\[demo\]"):
        command.main()


def test_noise_and_wrong_labels_leave_the_test_as_it_is(few):
    for changed in (tasks.noisy(few), tasks.mislabelled(few)):
        np.testing.assert_array_equal(changed.X_test, few.X_test)
        np.testing.assert_array_equal(changed.y_test, few.y_test)
    noise = tasks.noisy(few).X_train - few.X_train
    assert noise.std() == pytest.approx(tasks.SIGMA, rel=0.05)
    wrong = tasks.mislabelled(few).y_train != few.y_train
    assert 0.1 < wrong.mean() <= tasks.DRAWN_LABELS
    assert tasks.LEFT_OUT not in tasks.without(few, tasks.LEFT_OUT).y_train


def test_measurements_agree_with_the_model(few):
    names = []
    results = contenders.contest(few, names.append)
    assert tuple(names) == contenders.NAMES == tuple(results)
    for measured in results.values():
        assert 1 - measured.error == pytest.approx(measured.model.score(few.X_test, few.y_test))
        has_shares = hasattr(measured.model, "predict_proba")
        assert (0 <= measured.calibration <= 1) if has_shares else measured.calibration is None
    assert results[contenders.EUCLID].references == len(few.y_train)
    assert results[contenders.LOGISTIC].references == 0
    assert 0 < results[contenders.SUPPORT].references <= len(few.y_train)
    ours = results[contenders.MAPML]
    assert ours.references == len(ours.model.latent_examples_) == 9
    noisy = contenders.contest(few, names.append, label_noise=True)
    assert noisy[contenders.MAPML].model.label_noise


def test_words_are_about_the_numbers(few):
    results = contenders.contest(few, lambda name: None)
    results = {
        name: replace(measured, right=np.arange(20) >= place, references=1000 + place)
        for place, (name, measured) in enumerate(results.items())
    }
    assert words.about_clean(results) == (
        "Of 20 test images, MaPML gets 4 wrong with 1004 references; 3-NN gets 0 wrong with all "
        "1,000 images, tuned k-NN 1, logistic regression 2 and tuned SVC 3. A difference of a few "
        "images is chance: on clean rows like these, MaPML saves references rather than errors."
    )
    errors = (
        "3-NN gets 0 %, tuned k-NN 5 %, logistic regression 10 %, tuned SVC 15 % and MaPML 20 %"
    )
    assert f"noise, {errors} of the clean test images wrong" in words.about_noise(results)
    wrong = replace(few, y_train=np.where(np.arange(90) < 9, 0, few.y_train))
    told = words.about_wrong_labels(results, few, wrong)
    assert told.startswith("With 10 % of the labels wrong, 3-NN gets 0.0 %")
    assert "and MaPML 20.0 % of the test images wrong." in told
    assert told.endswith("about as good as tuned SVC: chance explains the difference.")


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (10, 40, "MaPML is better than tuned SVC, by more than chance explains."),
        (40, 10, "MaPML is worse than tuned SVC, by more than chance explains."),
        (10, 12, "MaPML is about as good as tuned SVC: chance explains the difference."),
    ],
)
def test_wrong_labels_end_with_a_verdict(few, ours, theirs, verdict):
    wrong = dict.fromkeys(contenders.NAMES, 20) | {
        contenders.MAPML: ours, contenders.SUPPORT: theirs,
    }  # fmt: skip
    results = {
        name: contenders.Measured(None, np.arange(100) >= n_wrong, 9, 1.0, 0.1, None)
        for name, n_wrong in wrong.items()
    }
    told = words.about_wrong_labels(results, few, tasks.mislabelled(few))
    assert told.endswith(f" of the test images wrong. {verdict}")


def test_the_missing_class_is_turned_away_and_then_added(few):
    known = tasks.without(few, tasks.LEFT_OUT)
    model = MaPML(random_state=0).fit(known.X_train, known.y_train)
    strange = few.y_test == tasks.LEFT_OUT
    rejected = model.score_samples(few.X_test) < model.reject_threshold(0.05)
    assert f"turns away {words.percent(rejected[strange].mean())}" in unknown_rows(model, few)
    told = new_class(model, few)
    assert tasks.LEFT_OUT in model.classes_
    right = model.predict(few.X_test) == few.y_test
    assert f"{words.percent(right[strange].mean())} of the test's 9s are recognised" in told
    assert f"{words.percent(1 - right.mean(), 1)} of all digits are wrong" in told


def test_the_table_fits_into_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    measured = contenders.Measured(None, np.arange(540) >= 172, 1257, 12.345, 12.3, 0.1234)
    Printer().table(dict.fromkeys(contenders.NAMES, measured))
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80
    header = printed.split("─")[0]
    assert "per query" in header
    assert not any(letter.isdigit() for letter in header), "it would look like a number of a row"
    assert "22.778 ms" in printed
