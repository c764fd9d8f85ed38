import numpy as np
import pytest
from helpers import make_blobs

from latentmetric.core.alternation import (
    Settings,
    first_state,
    next_state,
    objective,
    reduce_rank,
)
from latentmetric.core.population import LocalPopulation
from latentmetric.core.starts import Start

SETTINGS = Settings(
    n_steps=500,
    metric_reg=1.7,
    latent_reg=0.0,
    max_norm=np.inf,
    target_neighbors=3,
    impostors=3,
    n_components=None,
    max_passes=10,
    n_threads=1,
)


EUCLID = Start.euclidean(6, np.dtype(np.float64))


def with_settings(**changes):
    return Settings(**{**vars(SETTINGS), **changes})


def run(n_rounds, settings=SETTINGS, seed=0, data=None):
    X, y = data or make_blobs()
    rows = LocalPopulation.of(X, y)
    generator = np.random.default_rng(seed)
    states = [first_state(rows, np.full(len(rows), 8), "random", settings, EUCLID, generator)]
    for _ in range(n_rounds):
        states.append(next_state(states[-1], generator, rows, settings))
    return rows, states


@pytest.mark.parametrize("max_norm", [np.inf, 1.0, 0.3])
@pytest.mark.parametrize("n_components", [None, 2])
@pytest.mark.parametrize("seed", range(2))
def test_every_round_stays_in_the_ball_and_the_cone(max_norm, n_components, seed):
    settings = with_settings(max_norm=max_norm, n_components=n_components, metric_reg=0.2)
    _, states = run(5, settings, seed)
    for state in states:
        metric = state.components.T @ state.components
        assert np.linalg.norm(metric) <= max_norm * np.sqrt(6) * (1 + 1e-9)
        assert np.linalg.eigvalsh(metric).min() >= -1e-9 * np.linalg.norm(metric)
        assert len(state.components) <= (n_components or 6)
        assert np.all(np.isfinite(state.latents))
        assert state.record["rank"] == np.linalg.matrix_rank(metric)
        assert state.record["norm"] == pytest.approx(np.linalg.norm(metric))


def test_margins_are_one_plus_the_mean_squared_distance_of_each_class():
    rows, states = run(3, with_settings(max_passes=500))
    state = states[-1]
    for position in range(3):
        own = slice(state.class_starts[position], state.class_starts[position + 1])
        everyone = rows.classes[position][slice(None)] + rows.classes[position].mean
        points, latents = (z @ state.components.T for z in (everyone, state.latents[own]))
        squared = np.square(points[:, None] - latents[None]).sum(axis=2).min(axis=1)
        assert state.spreads[position] == pytest.approx(squared.mean())
        np.testing.assert_allclose(state.candidates.margins[own], 1 + squared.mean())


def test_the_objective_is_the_mean_hinge_of_the_same_triplets_in_every_round():
    _, states = run(4)
    for state in states:
        watched, losses = state.watched, []
        assert watched is states[0].watched
        points = state.latents @ state.components.T
        margins = np.repeat(1 + state.spreads, np.diff(state.class_starts))
        for o, p, q in zip(watched.anchors, watched.targets, watched.impostors, strict=True):
            to_impostor = np.square(points[o] - points[q]).sum()
            to_target = np.square(points[o] - points[p]).sum()
            losses.append(max(0, margins[o] - (to_impostor - to_target)))
        assert state.record["objective"] == pytest.approx(np.mean(losses))
        assert objective(points, margins, watched) == pytest.approx(np.mean(losses))
    assert states[-1].record["objective"] < states[0].record["objective"]


def test_rank_reduction_keeps_the_directions_in_which_latents_differ(rng):
    latents = rng.standard_normal((50, 4)) * [0.01, 5, 0.01, 3]
    reduced = reduce_rank(np.eye(4), latents, 2)
    assert reduced.shape == (2, 4)
    np.testing.assert_allclose(reduced.T @ reduced, np.diag([0, 1, 0, 1]), atol=0.05)
    np.testing.assert_array_equal(reduce_rank(np.eye(4), latents, None), np.eye(4))
