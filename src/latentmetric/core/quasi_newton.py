"""Refinement of few rows: the likelihood of all their labels at once, by L-BFGS.

The objective is that of ``refinement``, −log P(y | x) under the kernel vote of the latent examples,
each row left out of its own one. With few rows, all of them and all latent examples fit into one
matrix: a gradient is three products, and a quasi-Newton method needs a few dozen of them, where
steps over batches need a thousand.

Each latent example may have a bandwidth and a weight of its own, because classes scatter
differently. It then votes with the weight

    exp(b_z − e^{t_z} D²(x, z) / T).

The ridge holds the factor L and the points u = Lz where they started. It is the loss that it would
cost to change L, or all points, by as much as they measure. With one latent example a class, equal
bandwidths and no ridge, this is multinomial logistic regression: ‖Lx‖² cancels, and what is left of
the exponents is linear in x. With one a row it is a k-NN; between the two lies a dial.

Time O(n·(d·r + m·r)) an iteration, for n rows of d features, m latent examples and a metric of rank
r. Memory O(n·m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from latentmetric.core.distances import squared_norms
from latentmetric.core.likelihood import leave_one_out_factors, loss_of
from latentmetric.core.tuning import (
    BANDWIDTH_PULL,
    DENSE_SHARE,
    SETTLED_LOSS,
    TEMPERATURE_RANK,
    WEIGHT_PULL,
)
from latentmetric.core.types import Floats, Ints

BANDWIDTHS = ("shared", "class", "latent")
"""Whose bandwidths and weights are learned, the simplest first."""


CORRECTIONS = 5
"""Steps that L-BFGS remembers; each is as long as all that is learned."""

TINY = float(np.finfo(np.float64).tiny)

TEMPERATURES = 2.0 ** np.arange(-5, 5)
"""Multiples of the usual squared distance that are tried as temperatures."""


@dataclass(frozen=True)
class KernelVote:
    """Latent examples under a metric, and how they vote."""

    components: Floats
    """The factor of the metric."""
    points: Floats
    """The latent examples under the metric, class by class."""
    class_starts: Ints
    temperature: float
    log_scales: Floats
    """t: a latent example's squared distances count e^t times."""
    log_weights: Floats
    """b: its vote counts e^b times."""

    @classmethod
    def equal(
        cls, components: Floats, points: Floats, class_starts: Ints, temperature: float
    ) -> KernelVote:
        """All latent examples have the same bandwidth and the same weight."""
        zeros = np.zeros(len(points), dtype=points.dtype)
        return cls(components, points, class_starts, temperature, zeros, zeros)

    def exponents(self, squared: Floats) -> Floats:
        """The logarithms of the votes, from squared distances to all latent examples."""
        scales = np.exp(self.log_scales) / self.temperature
        exponents: Floats = self.log_weights - squared * scales
        return exponents

    def probabilities(self, rows: Floats) -> Floats:
        """P(c | x) of every class."""
        squared = squared_distances(rows @ self.components.T, self.points)
        shares = _shifted_exp(self.exponents(squared))
        totals: Floats = np.add.reduceat(shares, self.class_starts[:-1], axis=1)
        totals /= totals.sum(axis=1, keepdims=True)
        return totals


@dataclass(frozen=True)
class Labelled:
    """Rows of few classes, one class after the other, each left out of its own latent example."""

    rows: Floats
    positions: Ints
    own: Ints
    """The latent example of its class that is nearest to each row."""
    stretch: Floats
    """Factors of the squared distances to it; see ``leave_one_out_factors``."""
    counts: Floats
    """Rows of each latent example, or their weight."""
    weights: Floats
    """Of the rows; they sum to 1."""

    @classmethod
    def of(
        cls, rows: Floats, positions: Ints, weights: Floats | None, vote: KernelVote
    ) -> Labelled:
        """Assign the rows, whose positions ascend, to the latent examples of their classes."""
        squared = squared_distances(rows @ vote.components.T, vote.points)
        own = np.empty(len(rows), dtype=np.intp)
        for block, first, end in _class_blocks(positions, vote.class_starts):
            own[block] = first + squared[block, first:end].argmin(axis=1)
        counts = np.bincount(own, weights, minlength=len(vote.points)).astype(np.float64)
        stretch = leave_one_out_factors(counts[own], 1 if weights is None else weights)
        shares = np.full(len(rows), 1 / len(rows)) if weights is None else weights / weights.sum()
        dtype = rows.dtype
        return cls(rows, positions, own, stretch.astype(dtype), counts, shares.astype(dtype))

    def left_out(self, points: Floats, latents: Floats) -> Floats:
        """Squared distances of all rows, under the metric, to all latent examples."""
        squared = squared_distances(points, latents)
        squared[np.arange(len(self.own)), self.own] *= self.stretch
        return squared


def squared_distances(points: Floats, others: Floats) -> Floats:
    """D² of all pairs, by one matrix product."""
    squared = points @ (-2 * others.T)
    squared += squared_norms(points)[:, None]
    squared += squared_norms(others)
    return np.maximum(squared, 0, out=squared)


def _class_blocks(positions: Ints, class_starts: Ints) -> list[tuple[slice, int, int]]:
    """The rows of each class, whose positions ascend, and the range of its latent examples."""
    bounds = np.searchsorted(positions, np.arange(len(class_starts)))
    starts = class_starts.tolist()
    return [
        (slice(*rows), *latents)
        for rows, latents in zip(pairwise(bounds.tolist()), pairwise(starts), strict=True)
        if rows[0] < rows[1]
    ]


def _shifted_exp(exponents: Floats) -> Floats:
    shifted: Floats = exponents - exponents.max(axis=1, keepdims=True)
    np.exp(shifted, out=shifted)
    return shifted


def log_likelihoods(
    exponents: Floats, blocks: list[tuple[slice, int, int]]
) -> tuple[Floats, Floats]:
    """Log P(y | x) of every row, however unlikely its label is, and its falls by the exponents."""
    p = _shifted_exp(exponents)
    p /= p.sum(axis=1, keepdims=True)
    logs, tiny = np.empty(len(p)), np.finfo(p.dtype).tiny
    for block, first, end in blocks:
        of_class = p[block, first:end]
        total = of_class.sum(axis=1)
        logs[block] = np.log(np.maximum(total, tiny))
        if total.min() < tiny:  # all votes for a label are rounded to 0
            lost = total < tiny
            inside, every = exponents[block, first:end], exponents[block]
            of_class = np.where(lost[:, None], _shifted_exp(inside), of_class)
            total = of_class.sum(axis=1)
            exact = logsumexp(inside[lost], axis=1) - logsumexp(every[lost], axis=1)
            logs[np.arange(len(p))[block][lost]] = exact
        p[block, first:end] -= of_class / total[:, None]
    return logs, p


def first_temperature(data: Labelled, vote: KernelVote) -> float:
    """The temperature that makes the labels of the rows likeliest before anything is learned.

    Where classes are far apart, that would be so low that all labels are certain and nothing is
    learned: it is at least a share of the spacing of the latent examples.
    """
    squared = data.left_out(data.rows @ vote.components.T, vote.points)
    blocks = _class_blocks(data.positions, vote.class_starts)
    nearest = min(4, squared.shape[1]) - 1
    near = np.partition(squared, nearest, axis=1)[:, nearest].astype(np.float64)
    # Medians, because one row far away must not decide; 0 if most rows are equal.
    order = np.argsort(near, kind="stable")
    middle = int(np.searchsorted(np.cumsum(data.weights[order]), 0.5))
    usual = float(near[order[min(middle, len(near) - 1)]]) or float(near.mean())
    if not usual > 0:
        return 0.0
    losses = []
    for multiple in TEMPERATURES:
        shares = _shifted_exp(squared / -(multiple * usual))
        of_label = np.empty(len(shares))
        for block, first, end in blocks:
            of_label[block] = shares[block, first:end].sum(axis=1)
        of_label /= shares.sum(axis=1)
        losses.append(float(data.weights @ loss_of(of_label, 0.0)))
    likeliest = float(usual * TEMPERATURES[np.argmin(losses)])
    apart = squared_distances(vote.points, vote.points)
    rank = min(TEMPERATURE_RANK, len(apart) - 1)
    spacing = float(np.median(np.partition(apart, rank, axis=1)[:, rank]))
    return max(likeliest, DENSE_SHARE * spacing)


class Objective:
    """The loss of the labels and its gradient, as functions of one vector."""

    def __init__(
        self, data: Labelled, start: KernelVote, ridge: float, bandwidth: str,
        exponent: float = 0.0, latent_reg: float = 0.0,
    ) -> None:  # fmt: skip
        self._data, self._start, self._exponent = data, start, exponent
        sizes, n_rows, n_points = np.diff(start.class_starts), len(data.rows), len(start.points)
        self._blocks = _class_blocks(data.positions, start.class_starts)
        self._groups = np.repeat(np.arange(len(sizes)), sizes)
        if bandwidth == "latent":
            self._groups = np.arange(n_points)
        self._n_groups = 0 if bandwidth == "shared" else int(self._groups[-1]) + 1
        self._pulls = np.repeat((BANDWIDTH_PULL / n_rows, WEIGHT_PULL / n_rows), self._n_groups)
        rank, dtype = start.points.shape[1], data.rows.dtype
        self._every = np.arange(len(data.own))
        self._beside = np.ones((len(data.rows), rank + 2), dtype)
        self._toward = np.empty((rank + 2, n_points), dtype)
        of_factor = float(np.vdot(start.components, start.components)) or 1.0
        of_points = float(np.vdot(start.points, start.points)) or 1.0
        self._factor_pull = ridge / of_factor
        self._point_pull = ridge / of_points + latent_reg / (n_rows * start.temperature)

    @property
    def first(self) -> Floats:
        """The vector to start from."""
        shared = np.zeros(2 * self._n_groups)
        return np.concatenate((self._start.components.ravel(), self._start.points.ravel(), shared))

    def vote(self, vector: Floats) -> KernelVote:
        """What a vector stands for."""
        start, dtype = self._start, self._data.rows.dtype
        n_factor, n_points = start.components.size, start.points.size
        components = vector[:n_factor].reshape(start.components.shape)
        points = vector[n_factor : n_factor + n_points].reshape(start.points.shape)
        vote = replace(start, components=components.astype(dtype), points=points.astype(dtype))
        if not self._n_groups:
            return vote
        scales, weights = vector[n_factor + n_points :].reshape(2, -1)[:, self._groups]
        return replace(vote, log_scales=scales.astype(dtype), log_weights=weights.astype(dtype))

    def likelihoods(self, vote: KernelVote) -> tuple[Floats, Floats, Floats]:
        """Mapped rows, P(y | x) of every row, and the predicted positions of their classes."""
        mapped = self._data.rows @ vote.components.T
        exponents = vote.exponents(self._data.left_out(mapped, vote.points))
        logs, _ = log_likelihoods(exponents, self._blocks)
        totals = np.add.reduceat(_shifted_exp(exponents), vote.class_starts[:-1], axis=1)
        return mapped, np.exp(logs), totals.argmax(axis=1)

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        """The loss and its gradient; columns beside the matrices save passes over all pairs."""
        data, start, vote = self._data, self._start, self.vote(vector)
        points, own, every, rank = vote.points, data.own, self._every, vote.points.shape[1]
        scales = np.exp(vote.log_scales) / vote.temperature
        beside, toward = self._beside, self._toward
        mapped = beside[:, :rank]
        mapped[:] = data.rows @ vote.components.T
        beside[:, rank] = squared_norms(mapped)
        of_norms = squared_norms(points)
        np.multiply(2 * scales, points.T, out=toward[:rank])
        toward[rank], toward[-1] = -scales, vote.log_weights - scales * of_norms
        exponents = beside @ toward  # b − e^t D² / T, where D² = ‖x‖² − 2 x·u + ‖u‖²
        left_out = squared_norms(mapped - points[own]) * data.stretch
        exponents[every, own] = vote.log_weights[own] - scales[own] * left_out
        logs, slopes = log_likelihoods(exponents, self._blocks)
        trusted = np.exp(self._exponent * logs)
        # Without a least likelihood: a loss that does not fall along its gradient ends L-BFGS.
        losses = (1 - trusted) / self._exponent if self._exponent else -logs
        loss = float(data.weights @ losses)
        slopes *= (data.weights * trusted.astype(data.weights.dtype))[:, None]  # ∂loss/∂exponents
        of_own = slopes[every, own]
        slopes[every, own] = of_own * data.stretch
        sums = slopes.T @ beside
        of_points, totals = sums[:, :rank], sums[:, -1]
        of_groups = np.empty(0)
        if self._n_groups:
            products = np.einsum("ij,ij->i", points, of_points)
            of_scales = -scales * (sums[:, rank] - 2 * products + totals * of_norms)
            of_weights = totals - np.bincount(own, of_own * (data.stretch - 1), len(points))
            of_groups = np.concatenate(
                [np.bincount(self._groups, g) for g in (of_scales, of_weights)]
            )
        of_points = 2 * scales[:, None] * (of_points - totals[:, None] * points)
        of_mapped = slopes @ toward[:rank].T - 2 * (slopes @ scales)[:, None] * mapped
        of_factor = of_mapped.T @ data.rows
        moved, away = vote.components - start.components, vote.points - start.points
        of_factor += 2 * self._factor_pull * moved
        of_points += 2 * self._point_pull * away
        loss += self._factor_pull * float(np.vdot(moved, moved))
        loss += self._point_pull * float(np.vdot(away, away))
        held = vector[len(vector) - 2 * self._n_groups :]
        loss += float(self._pulls @ held**2)
        of_groups = of_groups + 2 * self._pulls * held
        parts = (of_factor.ravel(), of_points.ravel(), of_groups)
        return loss, np.concatenate(parts, dtype=np.float64)


def even_lengths(vote: KernelVote) -> KernelVote:
    """Points at more equal distances from their mean, for classes of a single row.

    Nothing can be left out there to learn from. In many dimensions most of a row's distance from
    the mean is noise, which a squared distance would count against the row's class. The more
    directions the points spread in, the more equal their distances become; in one they stay.
    """
    centre = vote.points.mean(axis=0)
    away = vote.points - centre
    gram = away @ away.T
    lengths = np.sqrt(np.maximum(np.diag(gram), np.finfo(gram.dtype).tiny))
    directions = np.trace(gram) ** 2 / max(float(np.square(gram).sum()), TINY)
    share = 1 - 1 / max(float(directions), 1.0)
    factors = 1 + share * (lengths.mean() / lengths - 1)
    return replace(vote, points=(centre + factors[:, None] * away).astype(away.dtype))


def descend(objective: Objective, n_iterations: int) -> KernelVote:
    """The vote after so many iterations of L-BFGS, or fewer if the loss no longer falls."""
    return objective.vote(lowest(objective, objective.first, n_iterations))


def lowest(
    loss: Callable[[Floats], tuple[float, Floats]], first: Floats, n_iterations: int
) -> Floats:
    """The vector that this leads to; ``loss`` also computes its gradient."""
    found = minimize(
        loss, first, jac=True, method="L-BFGS-B",
        options={"maxiter": n_iterations, "ftol": SETTLED_LOSS, "maxcor": CORRECTIONS},
    )  # fmt: skip
    vector: Floats = found.x
    return vector
