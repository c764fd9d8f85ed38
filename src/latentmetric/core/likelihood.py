"""The leave-one-out likelihood of training rows: how good a state is, without held-out rows.

A row's label is predicted by the kernel vote of the latent examples, with the row left out of its
own one. Measured on a sample of the rows, whose size is bounded.

Time O(n·m·r) for n rows of the sample and m latent examples under a metric of rank r. Memory: a
block of distances per thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.distances import References, k_nearest, row_blocks
from latentmetric.core.parallel import parallel_map
from latentmetric.core.sets import set_numbers, sets_of
from latentmetric.core.tuning import KERNEL_NEIGHBORS, TILE_ROWS
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import TINY, VOTES, log_votes, n_voters, vote, voting_scales

ALONE = 4.0
"""Stretch of the squared distance of a row to a latent example that has no other row."""

MIN_LIKELIHOOD = float(np.finfo(np.float32).eps)
"""The least likelihood of a label: one row must not decide alone."""


@dataclass(frozen=True)
class Judgement:
    """How well rows are classified when each is left out of its own latent example."""

    loss: float
    """The mean of ``loss_of`` the labels."""
    error: float
    """The share of rows whose label is not the likeliest."""


def leave_one_out_factors(counts: Ints | Floats, weights: Floats | float = 1) -> Floats:
    """For a row of each latent example of c rows, (c/(c − 1))².

    A latent example is the mean of its rows. The mean of the others is c/(c − 1) times as far
    from a row as the mean that contains it. A row of weight w, in a latent example whose rows
    weigh c, is left out with all its weight: c/(c − w).
    """
    rest = counts - weights
    farther = np.divide(counts, rest, out=np.full(np.shape(rest), np.inf), where=rest > 0)
    squares: Floats = np.minimum(farther**2, ALONE)
    return squares


def loss_of(likelihood: Floats, exponent: float) -> Floats:
    """−log P(y | x), or (1 − P^e)/e for an exponent e > 0: rows with wrong labels weigh less."""
    if exponent > 0:
        return (1 - likelihood**exponent) / exponent
    return -np.log(np.maximum(likelihood, MIN_LIKELIHOOD))


def judge(
    points: Floats, positions: Ints, latents: Floats, class_starts: Ints, counts: Ints | Floats,
    temperature: float, exponent: float = 0.0, n_threads: int = 1, leave_out: bool = True,
    weights: Floats | None = None, most_voters: int = KERNEL_NEIGHBORS, n_sets: int = 1,
) -> Judgement:  # fmt: skip
    """Judge latent examples by rows; all are points under the metric.

    Rows are left out of their own latent example of each set. Without ``leave_out``, they must not
    be among those the latent examples are means of. ``weights`` are those of the rows.
    """
    references = References.of(latents)
    k = min(most_voters, len(latents))
    of_latents = np.repeat(np.arange(len(class_starts) - 1), np.diff(class_starts))
    of_sets = set_numbers(class_starts, n_sets)
    losses, wrong = np.empty(len(points)), np.empty(len(points), dtype=bool)
    of_rows = np.ones(len(points)) if weights is None else weights

    def judge_block(block: slice) -> None:
        squared, found = k_nearest(points[block], references, k)
        squared, truth = squared.astype(np.float64), positions[block]
        if leave_out:  # the nearest one of the same class is the row's own, in each set
            own = np.zeros(found.shape, dtype=bool)
            for number in range(n_sets):
                same = (of_latents[found] == truth[:, None]) & (of_sets[found] == number)
                own |= same & (np.cumsum(same, axis=1) == 1)
            stretch = leave_one_out_factors(counts[found], of_rows[block, None])
            squared = np.where(own, squared * stretch, squared)
            order = np.argsort(squared, axis=1, kind="stable")
            squared = np.take_along_axis(squared, order, axis=1)
            found = np.take_along_axis(found, order, axis=1)
        voters = of_latents[found]
        votes = VOTES["kernel"].weigh(squared, temperature)
        right = np.where(voters == truth[:, None], votes, 0).sum(axis=1) / votes.sum(axis=1)
        losses[block] = loss_of(right, exponent)
        wrong[block] = vote(voters, votes) != truth

    tile_bytes = min(len(latents), TILE_ROWS) * latents.itemsize
    blocks = list(row_blocks(len(points), 4 * tile_bytes))
    parallel_map(judge_block, blocks, n_threads)
    return Judgement(
        float(np.average(losses, weights=weights)), float(np.average(wrong, weights=weights))
    )


def label_likelihoods(
    points: Floats, codes: Ints, latents: References, of_latents: Ints, counts: Floats,
    temperature: float, leave_out: bool = True, log_scales: Floats | None = None,
    log_weights: Floats | None = None, n_sets: int = 1,
) -> Floats:  # fmt: skip
    """P(y | x) of the label of each row, by the kernel vote of the latent examples.

    All are points under the metric. The nearest latent example of the label's class in each set
    always takes part, however far away it is, so that even the least likely labels can be compared.
    With ``leave_out``, the row is left out of these.
    """
    own_bandwidths = log_scales is not None and log_weights is not None
    k = n_voters("kernel", 1, len(latents), own_bandwidths)
    squared, found = k_nearest(points, latents, k)
    of_sets = set_numbers(np.searchsorted(of_latents, np.arange(of_latents[-1] + 2)), n_sets)
    own_squared, own = np.empty((len(points), n_sets)), np.empty((len(points), n_sets), np.intp)
    for number in range(n_sets):
        of_set = np.where(of_sets == number, of_latents, -1)
        nearest = _nearest_of_class(points, codes, latents, of_set, squared, found)
        own_squared[:, number], own[:, number] = nearest
    squared = np.concatenate((squared, own_squared), axis=1, dtype=np.float64)
    for each, away in zip(own.T, own_squared.T, strict=True):  # they have the last columns
        squared[:, :k][(found == each[:, None]) & np.isfinite(away)[:, None]] = np.inf
    if leave_out:
        squared[:, k:] *= leave_one_out_factors(counts)[own]
    if log_scales is not None and log_weights is not None:
        voters = np.append(found, own, axis=1)
        scales = voting_scales(log_scales, temperature)
        exponents = log_votes(squared, scales[voters], log_weights[voters])
    else:
        nearest = squared.min(axis=1, keepdims=True)
        exponents = (nearest - squared) / max(temperature, TINY)
    same = np.append(of_latents[found] == codes[:, None], np.ones(own.shape, bool), axis=1)
    of_class = np.logaddexp.reduce(np.where(same, exponents, -np.inf), axis=1)
    likelihoods: Floats = np.exp(of_class - np.logaddexp.reduce(exponents, axis=1))
    return likelihoods


def _nearest_of_class(
    points: Floats, codes: Ints, latents: References, of_latents: Ints, squared: Floats, found: Ints
) -> tuple[Floats, Ints]:
    """The nearest latent example of each row's class: its squared distance and its number.

    Only rows that have none among the nearest of all, ``found``, are searched again.
    """
    same = of_latents[found] == codes[:, None]
    first = np.arange(len(points)), same.argmax(axis=1)
    missing = ~same[first]
    own_squared = np.where(missing, np.inf, squared[first].astype(np.float64))
    numbers = np.where(missing, 0, found[first])
    for code in np.unique(codes[missing]):
        rows, own = np.flatnonzero(missing & (codes == code)), np.flatnonzero(of_latents == code)
        if len(own):
            nearest, columns = k_nearest(points[rows], latents.some(own), 1)
            own_squared[rows], numbers[rows] = nearest[:, 0], own[columns[:, 0]]
    return own_squared, numbers


def left_out_distances(
    points: Floats, positions: Ints, latents: References, class_starts: Ints,
    counts: Ints | Floats, weights: Floats | None = None, n_sets: int = 1,
) -> Floats:  # fmt: skip
    """The squared distance of each row to the nearest latent example, left out of its own ones."""
    found = [
        _left_out_distances_of_set(
            points, positions, latents.some(which), class_starts // n_sets, counts[which], weights
        )
        for which in sets_of(class_starts, n_sets)
    ]
    nearest: Floats = np.min(found, axis=0)
    return nearest


def _left_out_distances_of_set(
    points: Floats, positions: Ints, latents: References, class_starts: Ints,
    counts: Ints | Floats, weights: Floats | None,
) -> Floats:  # fmt: skip
    of_latents = np.repeat(np.arange(len(class_starts) - 1), np.diff(class_starts))
    squared, found = k_nearest(points, latents, min(2, len(latents)))
    own_squared, own = _nearest_of_class(points, positions, latents, of_latents, squared, found)
    others = np.where(found == own[:, None], np.inf, squared)
    stretch = leave_one_out_factors(counts[own], 1 if weights is None else weights)
    nearest: Floats = np.minimum(others.min(axis=1), own_squared * stretch)
    return nearest
