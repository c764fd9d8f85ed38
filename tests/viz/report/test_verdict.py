"""The opening of the page: what it says of the model beside its rivals, and what to do next."""

import re
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
from latentmetric.viz.report.context import Context
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
    context = Context.of(evidence, None, None, np.random.default_rng(0))
    return unescape(" ".join(join(step) for step in next_steps(evidence, context)))


def read(evidence):
    """The next steps without their markup."""
    return re.sub("<[^>]+>", "", said(evidence))


def test_the_headline_tells_what_is_beyond_chance(evidence):
    found = beside(evidence, 20, 2)
    text = headline(found, compared(found))
    assert text == "MaPML is better than rival 0, too close to tell from rival 1"


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
    assert 'start="denoised" (--start denoised)' in read(replace(evidence, model=model))
    assert "<code>--start denoised</code>" in said(replace(evidence, model=model)), "in one line"
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
    assert "No verdict yet" in verdict.one("h2").text
    assert "Pass the training rows" in verdict.text


def order_of(section):
    """The classes of the parts of a section, in their order."""
    return [child.attributes.get("class") for child in section.children]


@pytest.mark.parametrize("with_training_rows", [True, False])
def test_errors_on_training_rows_come_after_a_warning_and_without_p(tmp_path, with_training_rows):
    X, y = make_blobs()
    model = MaPML(max_iter=1, n_steps=300, random_state=0).fit(X, y)
    training = {"X_train": X, "y_train": y} if with_training_rows else {}
    page = Page.read(write_report(model, X, y, tmp_path / "page.html", quick=True, **training))
    verdict = page.section("verdict")
    assert order_of(verdict)[:3] == [None, "notice", "verdict"]
    assert verdict.one("h2").text.startswith("No verdict")
    assert "chance" not in verdict.text
    assert "p" not in [head.text for head in verdict.one("thead").all("th")]
    assert ("Test other rows" in verdict.text) == with_training_rows
    assert "More latents" not in verdict.text


def test_rows_that_are_new_get_a_p_value(tmp_path):
    X, y = make_blobs()
    model = MaPML(max_iter=1, n_steps=300, random_state=0).fit(X[:160], y[:160])
    rows, labels = X[130:], y[130:]
    page = Page.read(
        write_report(
            model, rows, labels, tmp_path / "page.html", X_train=X[:160], y_train=y[:160]
        )
    )  # fmt: skip
    verdict = page.section("verdict")
    assert order_of(verdict)[:3] == [None, "notice", "verdict"]
    assert "30 of the 110 tested rows are also among the training rows" in verdict.text
    assert "p" in [head.text for head in verdict.one("thead").all("th")]


def test_the_hardest_pair_is_named_and_counted_in_both_directions(evidence):
    true = evidence.true
    predicted = true.copy()
    predicted[np.flatnonzero(true == 0)[:3]] = 2
    predicted[np.flatnonzero(true == 2)[:2]] = 0
    predicted[np.flatnonzero(true == 1)[:4]] = 0
    verdict = replace(evidence.verdict, predicted=predicted)
    text = re.sub("<[^>]+>", "", said(replace(evidence, verdict=verdict, votes=[verdict])))
    assert "55.56\N{NO-BREAK SPACE}% of the errors are between 0 and 2." in text


def test_a_rival_with_fewer_rows_is_pointed_out(tmp_path, monkeypatch):
    monkeypatch.setattr("latentmetric.evaluation.rivals.LOGISTIC_WORK", 60 * 6 * 3)
    X, y = make_blobs()
    model = MaPML(max_iter=1, n_steps=300, random_state=0).fit(X[:160], y[:160])
    page = Page.read(
        write_report(
            model, X[160:], y[160:], tmp_path / "page.html", X_train=X[:160], y_train=y[:160]
        )
    )
    (notice,) = page.section("verdict").all("p", class_="notice")
    assert "fitted on 60 of the 160 training rows" in notice.text


def test_a_rival_with_fewer_rows_is_named_with_them(evidence):
    found = beside(evidence, 20, 2)
    found.baselines[0] = replace(found.baselines[0], n_rows=60)
    lines = compared(found)
    assert headline(found, lines).startswith(
        "MaPML is better than rival 0 (60 of 160 training rows), too close to tell from rival 1"
    )
    assert [line.called for line in lines[1:3]] == [
        "rival 0, 60 of 160 training rows",
        "rival 1",
    ]


def test_svc_is_a_rival_unless_there_are_many_classes(tmp_path, monkeypatch):
    X, y = make_blobs()
    model = MaPML(max_iter=1, n_steps=300, random_state=0).fit(X[:160], y[:160])
    rows = {"X_train": X[:160], "y_train": y[:160]}
    page = Page.read(write_report(model, X[160:], y[160:], tmp_path / "page.html", **rows))
    verdict = page.section("verdict")
    assert "tuned SVC" in verdict.one("h2").text
    assert "tuned SVC" in [head.text for head in verdict.one("tbody").all("th")]
    assert "left out" not in verdict.text
    monkeypatch.setattr("latentmetric.viz.report.baselines.SUPPORT_CLASSES", 2)
    page = Page.read(write_report(model, X[160:], y[160:], tmp_path / "page.html", **rows))
    assert "tuned SVC" not in page.section("verdict").text
    assert "SVC was left out" in page.section("verdict").text


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, "the 20 nearest rows vote, with more weight for nearer ones."),
        ({"weights": "uniform", "n_neighbors": 3}, "the 3 nearest rows vote, with equal weights."),
        ({"weights": "uniform", "n_neighbors": 1}, "the nearest row decides."),
    ],
)
def test_the_page_says_what_euclid_is(tmp_path, parameters, said):
    X, y = make_blobs()
    model = MaPML(max_iter=1, n_steps=300, random_state=0, **parameters).fit(X[:160], y[:160])
    rows = {"X_train": X[:160], "y_train": y[:160]}
    page = Page.read(
        write_report(model, X[160:], y[160:], tmp_path / "page.html", quick=True, **rows)
    )
    words = f"Euclid learns nothing: under the Euclidean distance, {said}"
    assert words in page.section("verdict").text


def test_the_page_says_below_which_score_a_label_is_doubtful(tmp_path):
    X, y = make_blobs()
    wrong = y.copy()
    wrong[:3] = (wrong[:3] + 1) % 3
    far = 20 * np.eye(3, X.shape[1])[y] + X
    cut_off = "a score below 5\N{NO-BREAK SPACE}%"
    for labels, doubtful in ((y, False), (wrong, True)):
        model = MaPML(max_iter=1, n_steps=300, random_state=0).fit(far[:160], labels[:160])
        rows = {"X_train": far[:160], "y_train": labels[:160], "quick": True}
        page = Page.read(write_report(model, far[160:], y[160:], tmp_path / "page.html", **rows))
        assert cut_off in page.section("doubts").text
        assert (f"doubtful ({cut_off})" in page.section("verdict").text) == doubtful
