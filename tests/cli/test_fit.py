"""``latentmetric fit``, compared with the library."""

import json

import numpy as np
import pytest
from helpers import call, interrupt_round

import latentmetric
from latentmetric.characters import percent
from latentmetric.cli import fit as module

QUICK = ("--set", "max_iter=1", "--set", "refine=0", "--set", "n_steps=200")


def test_it_agrees_with_the_library(folder, model, train):
    same = latentmetric.MaPML(n_latents=0.2, random_state=0)
    rows = np.ascontiguousarray(train.drop(columns="kind"))
    same.fit(rows, train["kind"].to_numpy(str))
    np.testing.assert_array_equal(model.components_, same.components_)
    assert model.feature_names_in_.tolist() == train.columns[:-1].tolist()
    assert model.columns_in_ == {"label": "kind"}
    assert model.get_params() == same.get_params()


def test_what_it_reports(folder, short_passes):
    arguments = ("fit", "train.csv", "-o", "new", "--set", "max_iter=2")
    done = call(*arguments)
    model = latentmetric.load("new")
    first, kept = model.history_[0], model.history_[model.best_iter_]
    assert f"MaPML, start {first['start']}, round {kept['round']}" in done.stdout
    error = f", error on training rows {percent(kept['loo_error'])} (no estimate for new rows), "
    assert error in done.stdout
    lines = done.stderr.splitlines()
    for record in model.history_[2:]:
        refined = " (refinement 1)" if record["round"] == 3 else ""
        shown = f"round {record['round']} of 3{refined}: error on training rows "
        assert sum(line.startswith(shown + percent(record["loo_error"])) for line in lines) == 1
    facts = json.loads(call(*arguments, "--json").stdout)
    assert facts["start"] == first["start"]
    assert (facts["loss"], facts["loo_error"]) == (kept["loss"], kept["loo_error"])
    assert (facts["classes"], facts["features"], facts["interrupted"]) == (3, 6, False)
    assert "validation_error" not in facts


@pytest.mark.parametrize(
    ("more", "doubts"),
    [
        ((), "weighted by class_weight, no estimate for new rows"),
        (("--set", "early_stopping=true"), "weighted by class_weight"),
    ],
)
def test_it_says_that_errors_are_weighted(folder, more, doubts):
    balanced = ("--set", "class_weight=balanced", *more)
    shown = call("fit", "train.csv", "-o", "new", *QUICK, "--no-check", *balanced).stdout
    assert f" % ({doubts}), " in shown


def test_it_reports_the_round_kept_by_early_stopping(folder):
    arguments = ("fit", "train.csv", "-o", "new", *QUICK, "--set", "early_stopping=true")
    facts = json.loads(call(*arguments, "--json").stdout)
    model = latentmetric.load("new")
    errors = {record["round"]: record["validation_error"] for record in model.history_}
    assert facts["kept_round"] == model.best_iter_
    assert facts["validation_error"] == errors[model.best_iter_] == min(errors.values())
    shown = call(*arguments).stdout
    assert "validation error" in shown
    assert ("No round was better than round 0" in shown) == (model.best_iter_ == 0)


@pytest.fixture
def trial_fits(monkeypatch):
    """However long the fit took."""
    monkeypatch.setattr(module, "QUICK_SECONDS", float("inf"))


@pytest.mark.usefixtures("trial_fits")
def test_it_says_whether_it_beat_others(folder, monkeypatch):
    arguments = ("fit", "train.csv", "-o", "new", *QUICK)
    shown = call(*arguments).stdout.splitlines()
    assert len(shown) == 2
    assert shown[1].startswith("Error on 60 rows after a trial fit to 120 others: MaPML ")
    checked = latentmetric.load("new")
    trial = json.loads(call(*arguments, "--json").stdout)["trial"]
    assert trial["words"] == shown[1]
    assert "trial" not in json.loads(call(*arguments, "--no-check", "--json").stdout)
    np.testing.assert_array_equal(checked.components_, latentmetric.load("new").components_)
    monkeypatch.setattr(module, "QUICK_SECONDS", -1)
    slow = call(*arguments)
    assert len(slow.stdout.splitlines()) == 1, "a fit that took long is not compared"
    assert slow.stderr.endswith("; latentmetric compare does that\n")
    assert "compare" not in call(*arguments, "--no-check").stderr


@pytest.mark.usefixtures("trial_fits")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_comparison_that_fails_does_not_fail_the_fit(folder, monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("latentmetric.evaluation.quick_check", fail)
    done = call("fit", "train.csv", "-o", "new", "--estimator", "euclidean")
    assert len(done.stdout.splitlines()) == 1
    assert (folder / "new").exists()


def test_labels_that_most_rows_have_to_themselves_are_doubted(folder, train):
    train.assign(who=np.arange(180)).to_csv("who.csv", index=False)
    options = ("--label", "who", "--ignore", "kind")
    doubted = "Warning: 180 of 180 classes have a single row, of 180 rows in all; are these really "
    quick = ("--estimator", "euclidean")
    assert doubted in call("fit", "who.csv", *options, "-o", "new", *quick).stderr
    assert doubted in call("doubts", "who.csv", *options, *QUICK, "--most", 1).stderr
    assert "really labels" not in call("fit", "train.csv", "-o", "new", *quick).stderr


def test_rows_without_a_label_take_part(folder, train):
    train["kind"] = train["kind"].where(train.index % 4 > 0, "?")
    train.to_csv("marked.csv", index=False)
    done = call("doubts", "marked.csv", *QUICK, "--set", "unlabelled=?", "--most", 500, "--json")
    assert sorted(json.loads(done.stdout)["row"]) == [row for row in range(180) if row % 4]


def test_a_fit_is_resumed_from_its_checkpoint(folder, monkeypatch):
    arguments = ("fit", "train.csv", "--set", "n_steps=200", "--set", "refine=0")
    call(*arguments, "-o", "whole")
    kept = ("--checkpoint", "kept")
    with monkeypatch.context() as patched:
        interrupt_round(patched, 2)
        call(*arguments, "-o", "new", *kept, code=130)
    assert not (folder / "new").exists()
    assert "--resume" in call(*arguments, "-o", "new", *kept, code=1).stderr
    call(*arguments, "-o", "new", *kept, "--resume")
    models = [latentmetric.load(path) for path in ("whole", "new")]
    np.testing.assert_array_equal(*[model.latent_examples_ for model in models])


def test_a_fit_without_named_columns_remembers_none(folder, train):
    train.to_csv("plain.csv", index=False, header=False)
    call("fit", "plain.csv", "-o", "new", "--estimator", "euclidean")
    assert not hasattr(latentmetric.load("new"), "columns_in_")
