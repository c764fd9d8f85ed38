"""Votes of a query's nearest references: labels, ties and probabilities.

To add a vote, add an entry to ``VOTES``. Time O(n·(k + C)) for n queries with k neighbours each and
C classes, O(n·k²) if there are many classes; memory O(n·k), and O(n·C) for probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from latentmetric.core.distances import References, k_nearest, row_blocks
from latentmetric.core.tuning import (
    ALL_VOTE,
    FEW_CLASSES,
    KERNEL_NEIGHBORS,
    TEMPERATURE_GRID,
    TEMPERATURE_RANK,
    TEMPERATURE_SAMPLE,
    TEMPERATURE_SHARE,
)
from latentmetric.core.types import Bools, Floats, Ints

TINY = float(np.finfo(np.float64).tiny)
"""In the place of T = 0, where only the nearest references vote."""


@dataclass(frozen=True)
class Vote:
    """One way to weight the votes of neighbours."""

    weigh: Callable[[Floats, float], Floats]
    """Computes weights from squared distances, nearest first, and the temperature."""
    needs_distances: bool = True
    """Whether the weights need distances, not only the ranks that a similarity gives."""
    needs_temperature: bool = False
    """Whether it is the kernel's: how many references vote does not depend on ``n_neighbors``."""


def _uniform(squared: Floats, temperature: float) -> Floats:
    return np.ones(squared.shape)


def _inverse_distance(squared: Floats, temperature: float) -> Floats:
    """1/D; references at distance 0 share the whole vote."""
    at_zero = squared <= 0
    found_itself = at_zero.any(axis=1)
    inverse = 1 / np.sqrt(np.where(at_zero, 1, squared), dtype=np.float64)
    inverse[found_itself] = at_zero[found_itself]
    return inverse


def _kernel(squared: Floats, temperature: float) -> Floats:
    """exp(−D²/T), relative to the nearest neighbour; at T = 0 only the nearest ones vote."""
    beyond_nearest = (squared - squared[:, :1]).astype(np.float64)
    if temperature > 0:
        with np.errstate(over="ignore"):  # the weight is 0 then
            return np.exp(-beyond_nearest / temperature)
    return (beyond_nearest <= 0).astype(np.float64)


def log_votes(squared: Floats, scales: Floats, log_weights: Floats) -> Floats:
    """b − e^t D²/T of neighbours with bandwidths of their own; never infinite."""
    with np.errstate(over="ignore"):
        exponents = log_weights - squared * scales
    return np.maximum(exponents, np.finfo(np.float64).min)


def voting_scales(log_scales: Floats, temperature: float) -> Floats:
    """e^t/T of references, for ``log_votes``; never infinite, nor 0."""
    with np.errstate(over="ignore"):
        scales = np.exp(log_scales, dtype=np.float64) / max(temperature, TINY)
    return np.clip(scales, TINY, np.finfo(np.float64).max)


VOTES = {
    "uniform": Vote(_uniform, needs_distances=False),
    "distance": Vote(_inverse_distance),
    "kernel": Vote(_kernel, needs_temperature=True),
}
"""The votes by their names, which are the values of the parameter ``weights``."""


def n_voters(
    weights: str, n_neighbors: int, n_references: int, own_bandwidths: bool = False
) -> int:
    """How many references vote on a row: under the kernel, all that matter.

    Bandwidths are learned from votes of all, shared ones in a refinement from votes of the nearest.
    """
    if VOTES[weights].needs_temperature:
        n_neighbors = ALL_VOTE if own_bandwidths else KERNEL_NEIGHBORS
    return min(n_neighbors, n_references)


def vote(labels: Ints, weights: Floats) -> Ints:
    """The label of greatest total weight; on ties, that of the nearest neighbour among them."""
    n_classes = 1 + int(labels.max(initial=0))
    if n_classes > FEW_CLASSES:
        totals: Floats = np.zeros(weights.shape)
        for rank in range(labels.shape[1]):  # compare the neighbours with each other
            totals += np.where(labels == labels[:, rank, None], weights[:, rank, None], 0)
        return _winners(labels, totals)
    winning = np.empty(len(labels), dtype=labels.dtype)
    for rows in row_blocks(len(labels), 8 * n_classes):
        some = labels[rows]
        totals = _totals(some, weights[rows], n_classes)
        winning[rows] = _winners(some, totals[np.arange(len(some))[:, None], some])
    return winning


def _totals(labels: Ints, weights: Floats, n_classes: int) -> Floats:
    """The weight of each class, (n, C), added up from the nearest neighbour to the farthest."""
    cells = labels + n_classes * np.arange(len(labels))[:, None]
    totals = np.bincount(cells.ravel(), weights.ravel(), n_classes * len(labels))
    # Without any row, bincount returns integers.
    return totals.astype(np.float64, copy=False).reshape(len(labels), n_classes)


def _winners(labels: Ints, totals: Floats) -> Ints:
    """The first label whose total is greatest; ``totals`` has one for each neighbour's class."""
    winning: Ints = labels[np.arange(len(labels)), totals.argmax(axis=1)]
    return winning


def vote_shares(
    labels: Ints, weights: Floats, n_classes: int, others: Floats | None = None
) -> Floats:
    """Each class's share of the weight, (n, C). The winner of ``vote`` has the largest entry.

    Where classes tie, the winner's share is raised by one unit in the last place. ``others`` is the
    weight of all references that do not vote; it is not known whose it is, so classes share it.
    """
    shares = _totals(labels, weights, n_classes)
    winners = _winners(labels, shares[np.arange(len(labels))[:, None], labels])
    if others is not None:
        shares += others[:, None] / n_classes
    shares /= shares.sum(axis=1, keepdims=True)
    tied = np.flatnonzero(shares.argmax(axis=1) != winners)
    if len(tied):
        shares[tied, winners[tied]] = np.nextafter(shares[tied].max(axis=1), 2)
    return shares


def temperature_from_references(references: References, share: float = TEMPERATURE_SHARE) -> float:
    """The kernel's temperature from the spacing of the references, if nothing else is known."""
    rank = min(TEMPERATURE_RANK, len(references) - 1)
    if rank < 1:
        return 0.0
    spaced = np.linspace(0, len(references) - 1, min(TEMPERATURE_SAMPLE, len(references)))
    distances, _ = k_nearest(references.rows[spaced.astype(np.intp)], references, rank + 1)
    return share * float(distances[:, rank].mean(dtype=np.float64))


def temperature_from_held_out(
    squared: Floats, correct: Bools, of_rows: Floats | None = None
) -> float:
    """The temperature from a grid that makes the labels of held-out rows most likely.

    ``correct`` marks the neighbours that have the label of their row; ``of_rows`` are the rows'
    weights.
    """
    rank = min(TEMPERATURE_RANK, squared.shape[1]) - 1
    grid = TEMPERATURE_GRID * float(squared[:, rank].mean(dtype=np.float64))
    losses = []
    for temperature in grid:
        weights = _kernel(squared, temperature)
        right = np.where(correct, weights, 0).sum(axis=1) / weights.sum(axis=1)
        of_labels = -np.log(np.maximum(right, np.finfo(np.float32).eps))
        losses.append(np.average(of_labels, weights=of_rows))
    return float(grid[np.argmin(losses)])
