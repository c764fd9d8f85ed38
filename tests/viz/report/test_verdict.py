"""The opening of the page: what it says of the model beside its rivals, and what to do next."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from helpers import make_blobs
from page_reader import Page

from latentmetric import MaPML
from latentmetric.viz import write_report
from latentmetric.viz.report.errors import calibration_section
from latentmetric.viz.report.evidence import Method, gather
from latentmetric.viz.report.page import render
from latentmetric.viz.report.verdict import verdict_section

X, Y = make_blobs()
ROWS = {"X_train": X[:160], "y_train": Y[:160]}


@pytest.fixture(scope="module")
def model():
    return MaPML(3, max_iter=1, n_steps=300, random_state=0).fit(X[:160], Y[:160])


@pytest.fixture(scope="module")
def evidence(model):
    generator = np.random.default_rng(0)
    options = {"max_queries": 1000, "generator": generator, "quick": True}
    return gather(model, X[160:], Y[160:], **ROWS, **options)


def verdict_of(path):
    return Page.read(path).section("verdict")


@pytest.fixture
def read(tmp_path):
    """The section of the verdict, from evidence."""

    def written(evidence):
        path = tmp_path / "section.html"
        path.write_text(
            render("verdict", evidence=evidence, **verdict_section(evidence)), encoding="utf-8"
        )
        return verdict_of(path)

    return written


@pytest.fixture
def advice(read):
    def text(evidence):
        lines = read(evidence).one("div", class_="next").all("li")
        return "\n".join(line.text.strip() for line in lines)

    return text


def with_verdict(evidence, predicted, *others, **changes):
    verdict = replace(evidence.verdict, predicted=predicted, **changes)
    return replace(evidence, verdict=verdict, others=list(others) or evidence.others)


def beside(evidence, *n_wrong):
    """The evidence with rivals that get the first rows wrong, and a model that gets none wrong."""
    rivals = [
        Method(f"rival {number}", first_wrong(evidence.true, wrong), "k = 1", 160)
        for number, wrong in enumerate(n_wrong)
    ]
    return with_verdict(evidence, evidence.true, *rivals, *evidence.others)


def first_wrong(true, n_wrong):
    return np.where(np.arange(len(true)) < n_wrong, (true + 1) % 3, true)


def test_the_headline_tells_what_is_beyond_chance_and_how_many_rows_a_rival_had(evidence, read):
    found = beside(evidence, 20, 2)
    assert read(found).one("h2").text == (
        "MaPML is better than rival 0, too close to tell from rival 1"
    )
    found.others[0] = replace(found.others[0], n_rows=60)
    section = read(found)
    assert "better than rival 0 (60 of 160 training rows), too" in section.one("h2").text
    drawn = [name.text for name in section.all("text", class_="bar-name")]
    assert drawn[1:3] == ["rival 0, 60 of 160 training rows", "rival 1"]
    assert "rival 0 was fitted on 60 of 160 training rows" in section.text


def test_chance_has_more_chances_with_more_rivals(evidence, read):
    """Six rows on one side have a p-value of 3 %, which is not enough for one method of several."""
    section = read(beside(evidence, 6, 2))
    assert section.one("h2").text == "MaPML is too close to tell from rival 0 and rival 1"
    assert "with Holm's correction for the number of methods" in section.text
    assert "does not cover the variation of training" in section.text


def test_a_model_that_is_worse_is_called_worse_and_its_rival_recommended(evidence, read, advice):
    found = with_verdict(beside(evidence, 0), first_wrong(evidence.true, 20))
    assert read(found).one("h2").text == "MaPML is worse than rival 0"
    assert advice(found).startswith("Use rival 0")


def test_the_base_rate_is_told_and_balanced_accuracy_where_classes_are_unequal(evidence, read):
    true = evidence.true
    text = read(evidence).text
    most = np.bincount(true).max() / len(true)
    assert f"would misclassify {100 * (1 - most):.2f}\N{NO-BREAK SPACE}%." in text
    assert "balanced accuracy" not in text
    rows = np.full(len(true), np.flatnonzero(true == 0)[0])
    rows[:2] = np.flatnonzero(true == 1)[:2]
    found = replace(evidence, queries=evidence.queries[rows])
    found = with_verdict(found, np.zeros_like(true))
    assert "Always saying 0 would misclassify" in read(found).text
    assert "in which each counts the same, is 50.00\N{NO-BREAK SPACE}%." in read(found).text


def test_too_few_latents_are_noticed(evidence, advice):
    originals = next(vote for vote in evidence.others if vote.name == "MaPML-O")
    originals = replace(originals, predicted=evidence.true)
    text = advice(with_verdict(evidence, first_wrong(evidence.true, 20), originals))
    assert "More latent examples" in text
    assert f"n_latents, now {evidence.model.n_latents_} (--n-latents)" in text


def test_a_start_that_nearly_won_is_named(evidence, read, advice):
    model = copy(evidence.model)
    losses = {"within": 0.1, "denoised": 0.105, "euclidean": 1}
    first = {"round": 0, "start": "within", "start_losses": losses}
    model.history_ = [first, *model.history_[1:]]
    found = replace(evidence, model=model)
    assert "“denoised” was nearly as good as “within” on" in advice(found)
    assert 'start="denoised" (--set start=denoised)' in advice(found)
    assert "--set start=denoised" in [code.text for code in read(found).all("code")], "in one line"
    losses["denoised"] = 0.095
    assert "“denoised” had a lower loss than “within” on the sample" in advice(found)
    losses["denoised"] = 0.2
    assert "Another start" not in advice(found)
    model.history_, model.start = [], "within"
    assert "start was set to 'within'" in advice(replace(beside(evidence, 0), model=model))


def test_rounds_that_still_improve_are_noticed(evidence, advice):
    model = copy(evidence.model)
    model.history_ = [
        {"round": n, "refinement": n, "validation_error": 1.0 - 0.2 * n} for n in range(4)
    ]
    model.best_iter_ = 3
    assert "Raise refine, now 3 (--refine)" in advice(replace(evidence, model=model))
    model.history_ = [{"round": n, "loss": 1.0 - 0.2 * n} for n in range(4)]
    assert "More rounds" not in advice(replace(evidence, model=model))  # errors may still rise
    model.history_ = [{"round": n, "validation_error": 1.0 - 0.2 * n} for n in range(4)]
    model.best_iter_ = 2
    assert "More rounds" not in advice(replace(evidence, model=model))


def test_the_hardest_pair_is_named_and_counted_in_both_directions(evidence, advice):
    predicted = evidence.true.copy()
    for true, n_rows, taken_for in ((0, 3, 2), (2, 2, 0), (1, 4, 0)):
        predicted[np.flatnonzero(evidence.true == true)[:n_rows]] = taken_for
    text = advice(with_verdict(evidence, predicted))
    assert "55.56\N{NO-BREAK SPACE}% of the errors are between 0 and 2." in text


def test_probabilities_that_promise_too_much_are_noticed(evidence, advice):
    found = with_verdict(
        evidence, first_wrong(evidence.true, 40), confidence=np.ones(len(evidence.true))
    )
    assert "they promise 50.00 percentage points too much" in advice(found)
    section = calibration_section(found)
    assert (section["surplus"], section["error"]) == (0.5, 0.5)
    words = render("calibration", evidence=found, **section)
    assert "On average the probabilities are 50.00 percentage points too high" in words
    assert "14 of them have no rows and are left out." in words


@pytest.mark.parametrize("with_training_rows", [True, False])
def test_errors_on_training_rows_come_after_a_warning_and_without_p(
    tmp_path, model, with_training_rows
):
    training = ROWS if with_training_rows else {}
    path = write_report(model, X[:160], Y[:160], tmp_path / "page.html", quick=True, **training)
    verdict = verdict_of(path)
    assert verdict.text.index("training error") < verdict.text.index("misclassifies")
    assert verdict.one("h2").text.startswith("No verdict")
    assert "chance" not in verdict.text
    assert "p" not in [head.text for head in verdict.one("thead").all("th")]
    assert ("Test other rows" in verdict.text) == with_training_rows
    assert ("Pass the training rows" in verdict.text) != with_training_rows
    assert "More latent examples" not in verdict.text


def test_svc_is_a_rival_unless_there_are_many_classes(tmp_path, model, monkeypatch):
    path = tmp_path / "page.html"
    verdict = verdict_of(write_report(model, X[160:], Y[160:], path, **ROWS))
    assert "SVC" in verdict.one("h2").text
    assert "left out" not in verdict.text
    monkeypatch.setattr("latentmetric.viz.report.limits.MAX_SVC_CLASSES", 2)
    verdict = verdict_of(write_report(model, X[160:], Y[160:], path, **ROWS))
    assert "SVC" not in verdict.one("h2").text
    assert "SVC was left out" in verdict.text


def test_a_few_tested_rows_that_were_trained_on_are_counted_and_do_not_stop_the_verdict(
    tmp_path, model
):
    path = write_report(model, X[130:], Y[130:], tmp_path / "page.html", quick=True, **ROWS)
    verdict = verdict_of(path)
    assert "30 of the 110 tested rows are also among the training rows" in verdict.text
    one = write_report(model, X[159:], Y[159:], tmp_path / "one.html", quick=True, **ROWS)
    assert "1 of the 81 tested rows is also among the training rows" in verdict_of(one).text
    assert "p" in [head.text for head in verdict.one("thead").all("th")]
    assert "the 40 nearest rows vote, with more weight for nearer ones." in verdict.text
