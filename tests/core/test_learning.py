"""MaPML as steps: rounds, then passes of the refinement from the best round."""

from functools import partial

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric.core.alternation import Settings
from latentmetric.core.learning import begin, learning, with_sets
from latentmetric.core.population import LocalPopulation
from latentmetric.core.refinement import Plan, refine
from latentmetric.core.sets import sets_of

pytestmark = pytest.mark.usefixtures("short_passes")


@pytest.mark.parametrize(("final_rank", "max_norm"), [(None, np.inf), (2, 0.5)])
def test_rounds_are_followed_by_passes_from_the_best_of_them(final_rank, max_norm):
    X, y = make_blobs(150, 3, 5)
    rows = LocalPopulation.of(X, y)
    settings = Settings(
        n_steps=200, metric_reg=1.7, latent_reg=0.0, max_norm=max_norm, target_neighbors=3,
        impostors=3, n_components=None, max_passes=5, n_threads=1, judged=True,
        final_rank=final_rank,
    )  # fmt: skip
    first = partial(begin, rows, np.full(3, 5), "random", settings, "auto")
    steps = learning(rows, settings, 2, Plan(2, 0.0, 0.0, 1), first)
    generator = np.random.default_rng(0)
    states = [steps.first(generator)]
    for _ in range(steps.limit):
        best = min(states, key=lambda state: state.record["loss"])
        begun = steps.onward(best, states[-1])
        if len(states) == 3:
            assert begun.components is best.components
        states.append(steps.next(begun, generator))
    assert [state.record["round"] for state in states] == [0, 1, 2, 3, 4]
    assert [state.record.get("refinement") for state in states] == [None, None, None, 1, 2]
    assert states[0].record["start"] == states[0].start.name
    for state in states[3:]:
        assert len(state.components) <= (final_rank or 5)
        assert state.record["norm"] <= max_norm * np.sqrt(5) * (1 + 1e-9)
    assert states[-1].record["loss"] < states[0].record["loss"]


@pytest.mark.parametrize(("n_passes", "n_out"), [(1, 1), (2, 2), (3, 2), (6, 4)])
def test_rows_that_are_kept_out_join_the_last_third_of_the_passes(n_passes, n_out, monkeypatch):
    """What the passes without them say of new rows is remembered."""
    X, y = make_blobs(1_200, 3, 5)
    rows, left_out = LocalPopulation.of(X, y), []
    settings = Settings(200, 1.7, 0.0, np.inf, 3, 3, None, 5, 1, judged=True)
    first = partial(begin, rows, np.full(3, 5), "random", settings, "euclidean")
    steps = learning(rows, settings, 0, Plan(n_passes, 0.0, 0.0, 1), first)

    def noted(*arguments):
        left_out.append(len(arguments[-1]))
        return refine(*arguments)

    monkeypatch.setattr("latentmetric.core.learning.refine", noted)
    monkeypatch.setattr("latentmetric.core.unknown.FEWEST_KEPT_ALONE", 60)
    generator = np.random.default_rng(0)
    states = [steps.first(generator)]
    for _ in range(n_passes):
        states.append(steps.next(states[-1], generator))
    assert left_out == [60] * n_out + [0] * (n_passes - n_out)
    assert [state.unseen.shape[1] for state in states[1:]] == [
        60 * (done >= n_out) for done in range(n_passes)
    ]
    if n_passes > n_out:
        np.testing.assert_allclose(states[-1].unseen.mean(axis=1), 1, atol=0.2)


@pytest.mark.parametrize("n_sets", [1, 3])
def test_the_refinement_begins_with_more_sets(n_sets):
    """Those of the rounds are the first; each of the others stands for all rows, too."""
    X, y = make_blobs(300, 3, 5)
    rows = LocalPopulation.of(X, y)
    settings = Settings(200, 1.7, 0.0, np.inf, 3, 3, None, 5, 1, judged=True)
    first = partial(begin, rows, np.array([4, 5, 6]), "random", settings, "euclidean")
    generator = np.random.default_rng(0)
    state = first(generator)
    begun = with_sets(state, generator, rows, settings, n_sets)
    sets = sets_of(begun.class_starts, n_sets)
    np.testing.assert_array_equal(begun.class_starts, n_sets * state.class_starts)
    np.testing.assert_array_equal(begun.latents[sets[0]], state.latents)
    assert [begun.counts[which].sum() for which in sets] == [300] * n_sets
    if n_sets > 1:
        assert np.abs(begun.latents[sets[1]] - begun.latents[sets[2]]).max() > 0.1
    steps = learning(rows, settings, 0, Plan(2, 0.0, 0.0, 1, n_sets=n_sets), first)
    refined = steps.next(steps.next(state, generator), generator)
    assert (refined.n_sets, len(refined.latents)) == (n_sets, 15 * n_sets)
    assert refined.record["loss"] < state.record["loss"]


def test_without_distances_between_latent_examples_the_refinement_ends():
    X, y = np.ones((8, 3)), np.arange(8) % 2
    rows = LocalPopulation.of(X, y)
    settings = Settings(10, 1.7, 0.0, np.inf, 3, 3, None, 5, 1)
    first = partial(begin, rows, np.full(2, 2), "random", settings, "euclidean")
    steps = learning(rows, settings, 0, Plan(2, 0.0, 0.0, 1), first)
    state = steps.next(steps.first(np.random.default_rng(0)), np.random.default_rng(0))
    assert state.finished
