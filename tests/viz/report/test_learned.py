"""What the report says of how the metric was learned: rounds, refinement, starts, what was kept."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from helpers import make_blobs
from page_reader import Page

from latentmetric import MaPML
from latentmetric.core.model import FittedModel
from latentmetric.core.starts import STARTS
from latentmetric.core.tuning import MIN_GAIN, REL_TOL
from latentmetric.viz import write_report
from latentmetric.viz.report.learned import CURVES
from latentmetric.viz.report.text import percent

TITLES = {name: title for name, title, _ in CURVES}


@pytest.fixture
def section_of(tmp_path):
    X, y = make_blobs()

    def write(model):
        model.fit(X[:160], y[:160])
        path = write_report(model, X[160:], y[160:], tmp_path / "page.html", quick=True)
        return Page.read(path).section("convergence")

    return write


def charts(section):
    return {chart.one("title").text: chart for chart in section.all("svg", class_="chart")}


def divided(chart):
    return "refinement begins" in [text.text for text in chart.all("text")]


def test_a_fit_by_default_shows_what_was_chosen_and_tried(section_of):
    model = MaPML(random_state=0)
    section = section_of(model)
    first, tried = model.history_[0], model.history_[0]["tried"]
    table = section.one("table", data_name="candidates").one("tbody")
    rows = [[row.one("th").text, *(cell.text for cell in row.all("td"))] for row in table.all("tr")]
    names = ("start", "n_latents", "ridge", "bandwidth")
    folds = {}
    for one in tried:
        folds.setdefault(tuple(one[name] for name in names), []).append(one["loss"])
    assert len(rows) == min(12, len(folds))
    chosen = [row for row in rows if row[-1] == "chosen"]
    assert len(chosen) == 1
    losses = folds[tuple(first[name] for name in names)]
    assert chosen[0][0] == first["start"]
    assert float(chosen[0][2]) == first["ridge"]
    assert chosen[0][3] == first["bandwidth"]
    assert float(chosen[0][4]) == pytest.approx(np.mean(losses), abs=1e-4)
    assert int(chosen[0][5]) == len(losses)
    assert f"start “{first['start']}”" in section.text


@pytest.mark.usefixtures("in_batches")
def test_a_fit_in_batches_shows_loss_and_error_over_rounds_and_passes(section_of):
    model = MaPML(max_iter=3, n_steps=300, random_state=0)
    section = section_of(model)
    drawn = charts(section)
    assert list(drawn) == [TITLES[name] for name in ("objective", "loss", "loo_error")]
    assert [divided(chart) for chart in drawn.values()] == [False, True, True]
    described = drawn["Leave-one-out loss"].attributes["aria-label"]
    assert described.endswith("; refinement begins")
    assert len(list(drawn["Objective"].all("circle", class_="dot"))) == 4
    assert len(list(drawn["Leave-one-out loss"].all("circle", class_="dot"))) == 7
    assert "The refinement, from round 4 on, has no objective" in section.text
    assert f"Round {model.best_iter_} of 6 was kept; round 0 is the metric before" in section.text
    assert "No rows were held out: the leave-one-out loss" in section.text
    first = model.history_[0]
    table = section.one("table", data_name="starts").one("tbody")
    rows = [[row.one("th").text, *(cell.text for cell in row.all("td"))] for row in table.all("tr")]
    assert [row[0] for row in rows] == list(STARTS)
    for name, loss, error, choice in rows:
        assert float(loss) == pytest.approx(first["start_losses"][name], rel=5e-3)
        assert error == percent(first["start_errors"][name])
        assert (choice == "chosen") == (name == first["start"])
    caption = section.text.replace("\N{NO-BREAK SPACE}", " ")
    assert f"at least {100 * REL_TOL:g} % lower than that of a simpler one" in caption
    assert f"“denoised” only if its loss is at least {100 * MIN_GAIN:g} % lower" in caption


def test_a_page_says_what_decided_which_round_is_kept(section_of):
    options = {"max_iter": 2, "n_steps": 300, "random_state": 0}
    section = section_of(MaPML.as_published(**options))
    assert list(charts(section)) == ["Objective"]
    assert "efinement" not in section.text
    assert 'the last round is kept; keep="best" keeps the one' in section.text
    section = section_of(MaPML(early_stopping=True, start="within", **options))
    assert list(charts(section)) == [TITLES["objective"], TITLES["validation_error"]]
    assert divided(charts(section)[TITLES["validation_error"]])
    assert "It has the lowest error on the held-out rows." in section.text
    assert "The start" not in section.text


@pytest.fixture(scope="module")
def fitted():
    X, y = make_blobs()
    return MaPML(max_iter=2, n_steps=300, random_state=0).fit(X, y), X, y


def under(model, components):
    """A copy of the model with another metric."""
    other, fitted = copy(model), model.model_
    other.components_ = components
    points = fitted.coordinates.transform(model.latent_examples_) @ components.T
    other.model_ = FittedModel.of_metric(
        fitted.coordinates, components, points, fitted.codes, fitted.n_classes
    )
    return other


@pytest.mark.parametrize(("factor", "rank"), [(0, 0), (1e-170, 1), (1e100, 6)])
def test_a_metric_that_collapsed_gets_its_page(tmp_path, fitted, factor, rank):
    model, X, y = fitted
    collapsed = under(model, factor * np.eye(6)[:rank])
    if not rank:
        collapsed.model_ = replace(collapsed.model_, temperature=0.0)
    page = Page.read(write_report(collapsed, X, y, tmp_path / "page.html"))
    said = "All eigenvalues of the metric are 0" in page.section("spectrum").text
    assert said == (factor < 1e-150)
