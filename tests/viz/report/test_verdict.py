"""The opening of the page: what it says of the model beside its rivals, and what to do next."""

from copy import copy
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from helpers import make_blobs
from page_reader import Page

from latentmetric import MaPML
from latentmetric.viz import write_report
from latentmetric.viz.report.advice import next_steps
from latentmetric.viz.report.baselines import Baseline
from latentmetric.viz.report.evidence import gather
from latentmetric.viz.report.markup import join
from latentmetric.viz.report.verdict import compared, headline


@pytest.fixture(scope="module")
def evidence():
    X, y = make_blobs()
    model = MaPML(max_iter=1, n_steps=300, random_state=0).fit(X[:160], y[:160])
    return gather(
        model, X[160:], y[160:], X[:160], y[:160], None, None, 1000, np.random.default_rng(0), False
    )


def beside(evidence, *n_wrong):
    """The evidence with rivals that get the first rows wrong, and a model that gets none wrong."""
    true = evidence.true
    rivals = []
    for number, wrong in enumerate(n_wrong):
        predicted = true.copy()
        predicted[:wrong] = (true[:wrong] + 1) % 3
        rivals.append(Baseline(f"rival {number}", predicted, 160, "k = 1"))
    verdict = replace(evidence.verdict, predicted=true)
    votes = [verdict if vote is evidence.verdict else vote for vote in evidence.votes]
    return replace(evidence, baselines=rivals, verdict=verdict, votes=votes)


def twenty_wrong(true):
    return np.where(np.arange(len(true)) < 20, (true + 1) % 3, true)


def said(evidence):
    return unescape(" ".join(join(step) for step in next_steps(evidence)))


def test_the_headline_tells_what_is_beyond_chance(evidence):
    found = beside(evidence, 20, 2)
    text = headline(found, compared(found))
    assert text == "MaPML is better than rival 0, neither better nor worse than rival 1"


def test_a_model_that_is_worse_is_called_worse_and_its_rival_recommended(evidence):
    found = beside(evidence, 0)
    verdict = replace(found.verdict, predicted=twenty_wrong(found.true))
    found = replace(found, verdict=verdict, votes=[verdict])
    assert headline(found, compared(found)) == "MaPML is worse than rival 0"
    assert said(found).startswith("Use rival 0")


def test_too_few_latents_are_noticed(evidence):
    found = beside(evidence)
    originals = next(vote for vote in found.votes if vote.name == "MaPML-O")
    verdict = replace(found.verdict, predicted=twenty_wrong(found.true))
    originals = replace(originals, predicted=found.true)
    found = replace(found, verdict=verdict, votes=[verdict, originals])
    assert "More latents" in said(found)
    assert "n_latents, now 0.1" in said(found)


def test_a_start_that_nearly_won_is_named(evidence):
    model = copy(evidence.model)
    first = {"start": "within", "start_losses": {"within": 0.1, "denoised": 0.105, "euclidean": 1}}
    model.history_ = [first | {"round": 0}, *model.history_[1:]]
    assert "“denoised” was nearly as good as “within” on" in said(replace(evidence, model=model))
    assert 'start="denoised" (--start denoised)' in said(replace(evidence, model=model))
    first["start_losses"]["denoised"] = 0.095
    better = "“denoised” had a lower loss than “within” on the sample that chose between them, but"
    assert f"{better} not by enough." in said(replace(evidence, model=model))
    first["start_losses"]["denoised"] = 0.2
    assert "Another start" not in said(replace(evidence, model=model))


def test_rounds_that_still_improve_are_noticed(evidence):
    model = copy(evidence.model)
    model.history_ = [{"round": n, "loss": 1.0 - 0.2 * n} for n in range(4)]
    model.best_iter_ = 3
    assert "More rounds" in said(replace(evidence, model=model))
    model.best_iter_ = 2
    assert "More rounds" not in said(replace(evidence, model=model))


def test_there_is_always_a_next_step(evidence):
    sure = replace(
        evidence.verdict, predicted=evidence.true, confidence=np.ones(len(evidence.true))
    )
    quiet = replace(evidence, verdict=sure, votes=[sure], doubts=None, baselines=[])
    model = copy(evidence.model)
    model.history_, model.start = [], "auto"
    assert said(replace(quiet, model=model)).startswith("Nothing stands out")


def test_without_training_rows_the_page_asks_for_them(tmp_path):
    X, y = make_blobs()
    model = MaPML(max_iter=1, n_steps=300, random_state=0).fit(X[:160], y[:160])
    page = Page.read(write_report(model, X[160:], y[160:], tmp_path / "page.html"))
    verdict = page.section("verdict")
    assert "no verdict yet" in verdict.one("h2").text
    assert "Pass the training rows" in verdict.text


def test_a_rival_with_fewer_rows_is_pointed_out(tmp_path, monkeypatch):
    monkeypatch.setattr("latentmetric.evaluation.rivals.logistic.MOST_WORK", 60 * 6 * 3)
    X, y = make_blobs()
    model = MaPML(max_iter=1, n_steps=300, random_state=0).fit(X[:160], y[:160])
    page = Page.read(
        write_report(
            model, X[160:], y[160:], tmp_path / "page.html", X_train=X[:160], y_train=y[:160]
        )
    )
    (notice,) = page.section("verdict").all("p", class_="notice")
    assert "fitted on 60 of the 160 training rows" in notice.text
