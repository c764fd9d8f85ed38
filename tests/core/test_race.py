"""The race of the starts: who wins, what it reads, and what must not matter."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric.core import race as race_module
from latentmetric.core.alternation import Settings
from latentmetric.core.likelihood import Judgement
from latentmetric.core.population import LocalPopulation, positions_of
from latentmetric.core.race import (
    MIN_GAIN,
    REL_TOL,
    choose_start,
    estimate_start,
    race,
    winner,
)
from latentmetric.core.span import Outside
from latentmetric.core.starts import STARTS, start_from

pytestmark = pytest.mark.usefixtures("short_passes")

SETTINGS = Settings(
    n_steps=200, metric_reg=1.7, latent_reg=0.0, max_norm=np.inf, target_neighbors=3, impostors=3,
    n_components=None, max_passes=3, n_threads=1, judged=True, temperature_share=0.3,
)  # fmt: skip


class Recorded(LocalPopulation):
    """Rows that remember which of them were asked for."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked = []

    def sample(self, numbers):
        self.asked.append(np.asarray(numbers))
        return super().sample(numbers)


def raced(X, y, share=0.1, seed=0):
    rows, generator = Recorded.of(X, y), np.random.default_rng(seed)
    trials = race(rows, np.full(len(rows), share), "random", SETTINGS, generator)
    return rows, {name: trial.judgement for name, trial in trials.items()}


def units(n_rows=300, seed=0):
    """Three classes in two features of a small unit, beside noise in a large one."""
    X, y = make_blobs(n_rows, 3, 5, seed)
    return X * [1000, 1000, 1000, 1, 1], y


@pytest.mark.parametrize(
    ("losses", "name"),
    [
        ((1.0, 1.0, 1.0, 1.0), "euclidean"),
        ((1.0, 1 - REL_TOL / 2, 1 - REL_TOL / 2, 1 - REL_TOL / 2), "euclidean"),
        ((1.0, 0.8, 0.8, 0.8), "standardized"),
        ((1.0, 0.8, 0.8 * (1 - REL_TOL / 2), 1.0), "standardized"),
        ((1.0, 0.8, 0.6, 0.8), "within"),
        ((1.0, 1.2, 0.8, 0.8 * (1 - REL_TOL / 2)), "within"),
        ((1.0, 1.2, 0.8, 0.8 * (1 - MIN_GAIN * 0.9)), "within"),
        ((1.0, 1.2, 0.8, 0.8 * (1 - MIN_GAIN * 1.1)), "denoised"),
        ((0.0, 0.0, 0.0, 0.0), "euclidean"),
    ],
)
def test_the_lowest_loss_wins_and_ties_go_to_the_simpler(losses, name):
    assert winner({s: Judgement(loss, 0.0) for s, loss in zip(STARTS, losses, strict=True)}) == name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(2))
def test_features_of_different_units_are_not_compared_as_they_are(dtype, seed):
    X, y = units(seed=seed)
    _, judgements = raced(X.astype(dtype), y, seed=seed)
    assert winner(judgements) in ("standardized", "within")
    assert judgements["euclidean"].error > judgements["standardized"].error + 0.1


def test_rows_that_judge_are_not_fitted_to():
    rows, _ = raced(*units(200))
    fitted, judges = rows.asked
    assert len(judges) == 66
    np.testing.assert_array_equal(np.sort(np.concatenate((fitted, judges))), np.arange(200))


@pytest.mark.parametrize(
    "y", [[0, 1], [0, 0, 1, 2], [0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 0]], ids=str
)
def test_too_few_rows_or_classes_start_euclidean(rng, y):
    rows = LocalPopulation.of(rng.standard_normal((len(y), 3)), np.array(y))
    ones = np.ones(len(rows), dtype=int)
    for seed in range(5):
        generator = np.random.default_rng(seed)
        name, record = choose_start(rows, "auto", ones, "random", SETTINGS, generator)
        if not record["start_losses"]:
            assert name == record["start"] == "euclidean"
        assert np.isfinite(list(record["start_losses"].values())).all()
    if len(np.unique(y)) in (1, len(y)):
        assert not record["start_losses"]


@pytest.mark.parametrize("name", STARTS)
def test_the_chosen_start_is_estimated_from_all_rows_or_a_sample(name, monkeypatch):
    X, y = units(150)
    rows = Recorded.of(X, y)
    found = estimate_start(rows, name, np.random.default_rng(0))
    numbers = np.arange(len(X))
    expected = start_from(name, rows.sample(numbers), positions_of(rows, numbers))
    np.testing.assert_allclose(found.factor, expected.factor, rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(race_module, "ESTIMATION_ROWS", 60)
    rows = Recorded.of(X, y)
    assert estimate_start(rows, name, np.random.default_rng(0)).name == name
    assert [len(numbers) for numbers in rows.asked] == ([] if name == "euclidean" else [60])


@pytest.mark.parametrize("error", [0.4, 0.7])
def test_starts_keep_their_order_if_more_labels_are_right_than_by_chance(monkeypatch, error):
    found = race_module.Trial(Judgement(9.0, error), np.zeros((2, 0)))
    monkeypatch.setattr(race_module, "_run", lambda *given: found)
    _, judgements = raced(*units(200))
    assert tuple(judgements) == (STARTS if error == 0.4 else (*STARTS[1:], STARTS[0]))


@pytest.mark.parametrize(("n_components", "counts"), [(None, True), (5, False)])
def test_a_race_of_low_rank_counts_what_rows_have_outside_the_span(
    monkeypatch, n_components, counts
):
    """The metric that is fitted afterwards has no such limit, unless it was asked for."""
    monkeypatch.setattr(race_module, "RACE_RANK", 5)
    asked = []
    squared_norms = Outside.squared_norms
    monkeypatch.setattr(
        Outside, "squared_norms", lambda self, rows: asked.append(1) or squared_norms(self, rows)
    )
    X, y = make_blobs(45, 3, 40)
    settings = replace(SETTINGS, n_components=n_components)
    rows = LocalPopulation.of(X, y)
    assert race(rows, np.full(3, 0.3), "random", settings, np.random.default_rng(0))
    assert bool(asked) == counts
