"""Where the paper's three theorems and its margin preservation fail, by counterexample.

Both bounds replace a term that is linear in a move by a square, which is correct for moves of
length 0 or at least 1 and wrong in between. The constants are those of the proofs, corrected where
a proof has a mistake; ``docs/paper.md`` explains it. Two classes of numbers have one latent example
each, which is its own nearest target; so there are two triplets, and the metric is a number.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers import one_class
from scipy.optimize import minimize_scalar

from latentmetric.core.latents import settle
from latentmetric.core.metric import Metric

N_TRIPLETS = 2


@dataclass(frozen=True)
class OnALine:
    """The rows of both classes, their latent examples and the metric of the round before."""

    rows: tuple[np.ndarray, np.ndarray]
    latents: np.ndarray
    max_norm: float
    """δ: the bound on the metric."""
    metric: float = 1.0

    @classmethod
    def of(cls, first, second, latents, max_norm):
        return cls((np.array(first), np.array(second)), np.array(latents), max_norm)

    @property
    def radius(self):
        return max(np.abs(rows).max() for rows in self.rows)

    def spreads(self, metric, latents):
        """E[D²(x, z)] of each class."""
        each = zip(self.rows, latents, strict=True)
        return np.array([metric * np.square(rows - latent).mean() for rows, latent in each])

    def gap(self, metric, latents):
        """D²(o, q) − D²(o, p), the same for both triplets."""
        return metric * (latents[0] - latents[1]) ** 2

    def loss(self, metric, latents):
        """L(M, z)."""
        hinges = 1 + self.spreads(metric, latents) - self.gap(metric, latents)
        return np.maximum(hinges, 0).sum()


PULLED_TO_THE_IMPOSTOR = OnALine.of([0.0, 0.4], [0.9], [0.0, 0.9], max_norm=1.0)
"""The rows of the first class are between its latent example and that of the second."""

WIDER_THAN_THE_GAP = OnALine.of([-2.0, 2.0], [0.5], [0.0, 0.5], max_norm=2.0)
"""E[D²(x, z)] is 4 in the first class and D²(o, q) is 1/4; no latent example has to move."""


class LatentBound:
    """Σ_r F_r of Theorem 1, which touches L(M, ·) at the problem's latent examples."""

    def __init__(self, problem):
        self.problem = problem
        before = problem.spreads(problem.metric, problem.latents)
        constant = 1 - problem.gap(problem.metric, problem.latents)
        lift, hinges = max(0.0, -constant), np.maximum(before + constant, 0)
        self.slopes = np.where(hinges > 0, hinges / np.where(hinges > 0, hinges + lift, 1), 0)
        self.offset = self.slopes.sum() * (constant + lift)
        # An anchor's move costs c in eq. 9 and c + 2 in eq. 10, in each triplet.
        reach = 8 * problem.max_norm * problem.radius**2
        self.pull = (2 * reach + 2) * N_TRIPLETS

    def value(self, latents):
        spreads = self.problem.spreads(self.problem.metric, latents)
        moves = self.problem.metric * np.square(latents - self.problem.latents).sum()
        return self.slopes @ spreads + self.offset + self.pull * moves

    def minimiser(self):
        """Alg. 1 with the γ that makes eq. 5 a multiple of F_r: n_r c₃ / c₁."""
        latents, metric = self.problem.latents.copy(), Metric(np.eye(1) * self.problem.metric**0.5)
        for code, rows in enumerate(self.problem.rows):
            if self.slopes[code] > 0:
                latent_reg = len(rows) * self.pull / self.slopes[code]
                start = latents[code : code + 1, None]
                settled = settle(one_class(rows[:, None]), start, metric, latent_reg, 100)
                latents[code] = settled.latents[0, 0]
        return latents


class MetricBound:
    """H of Theorem 2, which touches L(·, z) at the metric of the round before."""

    def __init__(self, problem):
        self.problem = problem
        self.metric_reg = 2 * N_TRIPLETS * 4 * problem.radius**2  # λ = 2 T c̃, c̃ = 4 max‖x‖²

    def value(self, metric):
        problem = self.problem
        before = problem.spreads(problem.metric, problem.latents)
        held = np.maximum(1 + before - problem.gap(metric, problem.latents), 0).sum()
        return self.metric_reg / 2 * (metric - problem.metric) ** 2 + held

    def minimiser(self):
        bounds = (0, self.problem.max_norm)
        return minimize_scalar(self.value, bounds=bounds, options={"xatol": 1e-12}).x


def test_theorem_1_fails_for_small_moves():
    """Alg. 1 with the proof's own γ lowers the bound and lifts the loss above it."""
    problem = PULLED_TO_THE_IMPOSTOR
    bound = LatentBound(problem)
    latents, before = bound.minimiser(), problem.loss(1.0, problem.latents)
    assert before == pytest.approx(0.46)
    assert bound.value(problem.latents) == pytest.approx(before)
    assert 0 < latents[0] < 0.01
    assert bound.value(latents) < before
    assert problem.loss(1.0, latents) > before + 0.02


def test_theorem_2_fails_for_small_moves():
    """The minimiser of H with the proof's own λ lowers H and lifts the loss above it."""
    problem = WIDER_THAN_THE_GAP
    bound = MetricBound(problem)
    metric, before = bound.minimiser(), problem.loss(1.0, problem.latents)
    assert metric == pytest.approx(1 + 0.5 / 64)
    assert bound.value(1.0) == pytest.approx(before)
    assert bound.value(metric) < before - 0.001
    assert problem.loss(metric, problem.latents) > before + 0.02


@pytest.mark.parametrize("problem", [PULLED_TO_THE_IMPOSTOR, WIDER_THAN_THE_GAP])
def test_objective_can_rise_in_every_round_with_the_constants(problem):
    """Theorem 3 fails in either half-step alone: in each problem the other one changes nothing."""
    losses = [problem.loss(problem.metric, problem.latents)]
    for _ in range(8):
        problem = replace(problem, latents=LatentBound(problem).minimiser())
        problem = replace(problem, metric=MetricBound(problem).minimiser())
        losses.append(problem.loss(problem.metric, problem.latents))
    assert np.all(np.diff(losses) > 0.01)


def test_margin_is_lost_if_a_target_is_wider_than_anchor_and_impostor():
    """The exact difference is the gap + E[D²(x_k, z_q)] − E[D²(x_j, z_p)]."""
    latents, deviations = np.array([0.0, 0.5, 1.2]), np.array([0.1, 2.0, 0.1])
    noise = np.random.default_rng(0).normal(size=(3, 200_000))
    anchor, target, impostor = latents[:, None] + deviations[:, None] * noise
    gap, own_spread = 1.2**2 - 0.5**2, 0.1**2
    assert gap >= 1 + own_spread
    difference = (anchor - impostor) ** 2 - (anchor - target) ** 2
    error = 5 * difference.std() / np.sqrt(len(difference))
    assert difference.mean() + error < -2.5 < gap - own_spread
    assert abs(difference.mean() - (gap + 0.1**2 - 2.0**2)) < error


@pytest.mark.parametrize("seed", range(3))
def test_margin_is_exact_on_the_training_rows_of_k_means(seed):
    """With γ = 0 latent examples are means, so distortions average 0 in every cluster."""
    generator = np.random.default_rng(seed)
    metric = Metric(generator.normal(size=(4, 4)))
    rows = generator.normal(size=(2, 20, 4)) + generator.normal(size=(2, 1, 4))
    own, other = (settle(one_class(x), x[:3].copy(), metric, 0.0, 100) for x in rows)
    anchors, impostors = rows[0][own.assignment == 0], rows[1][other.assignment == 0]

    def mean_distance(left, right):
        return np.square((left[:, None] - right[None]) @ metric.components.T).sum(axis=2).mean()

    of_anchor, of_impostor = own.latents[:1], other.latents[:1]
    to_impostor = mean_distance(of_anchor, of_impostor)
    to_targets = mean_distance(of_anchor, own.latents[own.assignment])
    gap = to_impostor - to_targets + mean_distance(impostors, of_impostor) - own.spread
    assert mean_distance(anchors, impostors) - mean_distance(anchors, rows[0]) == pytest.approx(gap)
