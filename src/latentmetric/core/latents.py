"""Alg. 1 of the paper: move the latent examples of one class, with the metric held fixed.

k-means under the metric with a proximal term (eq. 5), from the latent examples of the round
before. Time at most O(n·m·d) per pass for a class of n rows and m latent examples; memory one
copy of the class's rows under the metric and one block of distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from latentmetric.core.distances import (
    References,
    paired_squared_distances,
    row_blocks,
    search,
    squared_norms,
)
from latentmetric.core.types import Floats, Ints

START_SHARE = 0.01
"""How far a latent example starts from its row towards the mean of the class.

Rows of whole numbers can be exactly as far from one row as from another, and rounding, which
differs with the scale of the data, would decide. From these places they practically never are.
"""


@dataclass(frozen=True)
class Membership:
    """What the passes of Alg. 1 find for one class."""

    assignment: Ints
    """The latent example of every row."""
    spread: float
    """E[D²(x, z)] of the class under the metric: what its margin adds to 1."""
    passes: int


def update_latents(
    rows: Floats, latents: Floats, components: Floats, latent_reg: float, max_passes: int
) -> tuple[Floats, Membership]:
    """Alg. 1 for one class, in the space of the features.

    The passes run under the metric, where distances are Euclidean; both steps are linear in the
    rows, so the same memberships give the latent examples in the input space.
    """
    found = assign(rows @ components.T, latents @ components.T, latent_reg, max_passes)
    return move(rows, found.assignment, latents, latent_reg), found


def assign(points: Floats, start: Floats, latent_reg: float, max_passes: int) -> Membership:
    """Assign (eq. 7) and move (eq. 6) under the metric, until no row changes its latent example."""
    nearest = Nearest.of(points, start)
    assignment = refill_empty(points, start, start, nearest.latent, latent_reg)
    moved = move(points, assignment, start, latent_reg)
    passes = 1
    while passes < max_passes:
        passes += 1
        nearest = nearest.after(points, moved)
        before = assignment
        assignment = refill_empty(points, moved, start, nearest.latent, latent_reg)
        changed = before != assignment
        if not changed.any():
            break
        touched = np.union1d(before[changed], assignment[changed])
        moved = moved.copy()
        moved[touched] = move(points, assignment, start, latent_reg, touched)
    spread = paired_squared_distances(points, moved, assignment).mean(dtype=np.float64)
    return Membership(assignment, float(spread), passes)


@dataclass(frozen=True)
class Nearest:
    """The nearest latent example of every row, kept up to date as some of them move.

    A latent example that has not moved was no nearer than the nearest before. So rows are
    compared with those that moved, and with the others only where that left the row worse off:
    the same answer as a full search, for a share of it that shrinks from pass to pass.
    """

    latents: Floats
    latent: Ints
    distance: Floats
    """Comparable, as in ``References``."""

    @classmethod
    def of(cls, points: Floats, latents: Floats) -> Nearest:
        """By a full search."""
        values, found = search(points, References.of(latents), 1)
        return cls(latents, found[:, 0], values[:, 0])

    def after(self, points: Floats, latents: Floats) -> Nearest:
        """Now that the latent examples are where ``latents`` says."""
        has_moved = np.any(latents != self.latents, axis=1)
        moved, still = np.flatnonzero(has_moved), np.flatnonzero(~has_moved)
        if not len(moved):
            return self
        challenge = Nearest.of(points, latents[moved])
        wins = has_moved[self.latent] | (challenge.distance < self.distance)
        latent = np.where(wins, moved[challenge.latent], self.latent)
        distance = np.where(wins, challenge.distance, self.distance)
        worse = np.flatnonzero(distance > self.distance)
        for block in row_blocks(len(worse) if len(still) else 0, points[:1].nbytes):
            rows = worse[block]
            rest = Nearest.of(points[rows], latents[still])
            back = rest.distance < distance[rows]
            latent[rows[back]] = still[rest.latent[back]]
            distance[rows[back]] = rest.distance[back]
        return Nearest(latents, latent, distance)


def move(
    points: Floats,
    assignment: Ints,
    previous: Floats,
    latent_reg: float,
    which: Ints | None = None,
) -> Floats:
    """Eq. 6: each latent example to the mean of its rows and γ times its previous place.

    One without rows stays where it was, which minimises eq. 5 too. ``which`` names those whose
    places are wanted; None wants all.
    """
    which = np.arange(len(previous)) if which is None else which
    sizes = np.bincount(assignment, minlength=len(previous))
    by_latent = np.argsort(assignment, kind="stable")
    wanted = np.zeros(len(previous), dtype=bool)
    wanted[which] = True
    members, sizes = by_latent[np.repeat(wanted, sizes)], sizes[which]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    ones = np.ones(len(members), dtype=points.dtype)
    sums = csr_array((ones, members, offsets), shape=(len(which), len(points))) @ points
    whole = np.where(sizes > 0, sizes + latent_reg, 1.0)
    of_old = np.where(sizes > 0, latent_reg / whole, 1.0).astype(points.dtype)
    sums *= (1 / whole).astype(points.dtype)[:, None]
    moved: Floats = sums + of_old[:, None] * previous[which]
    return moved


def refill_empty(
    points: Floats, latents: Floats, previous: Floats, assignment: Ints, latent_reg: float
) -> Ints:
    """Give each latent example without rows a worst served row, where that lowers eq. 5."""
    empty = np.flatnonzero(np.bincount(assignment, minlength=len(latents)) == 0)
    if not len(empty):
        return assignment
    served = paired_squared_distances(points, latents, assignment)
    worst_first = np.argsort(-served, kind="stable")[: len(empty)]
    assignment = assignment.copy()
    counts = np.bincount(assignment, minlength=len(latents))
    for latent, row in zip(empty, worst_first, strict=False):
        pull = latent_reg / (1 + latent_reg) * squared_norms(points[[row]] - previous[latent])[0]
        if served[row] > pull and counts[assignment[row]] > 1:
            counts[assignment[row]] -= 1
            assignment[row] = latent
    return assignment


def objective(
    points: Floats, latents: Floats, previous: Floats, assignment: Ints, latent_reg: float
) -> float:
    """Eq. 5 of one class under the metric: what no step of Alg. 1 may raise."""
    within = paired_squared_distances(points, latents, assignment).sum(dtype=np.float64)
    moves = squared_norms(latents - previous).sum(dtype=np.float64)
    return float(within + latent_reg * moves)


def first_latents(
    rows: Floats, n_latents: int, init: str, generator: np.random.Generator
) -> Floats:
    """Where the latent examples of a class start: near distinct rows, random or by k-means++."""
    if init == "random":
        chosen = generator.choice(len(rows), size=n_latents, replace=False)
    else:
        chosen = _k_means_plus_plus(rows, n_latents, generator)
    share = rows.dtype.type(START_SHARE)
    start: Floats = (1 - share) * rows[chosen] + share * rows.mean(axis=0)
    return start


def _k_means_plus_plus(rows: Floats, n_latents: int, generator: np.random.Generator) -> Ints:
    """Further rows drawn in proportion to their squared distance from those drawn before."""
    norms = squared_norms(rows)

    def distances_from(row: int) -> Floats:
        squared: Floats = norms - 2 * (rows @ rows[row]) + norms[row]
        positive: Floats = np.maximum(squared, 0).astype(np.float64, copy=False)
        return positive

    chosen = np.empty(n_latents, dtype=np.intp)
    chosen[0] = generator.integers(len(rows))
    nearest = distances_from(chosen[0])
    for position in range(1, n_latents):
        nearest[chosen[:position]] = 0
        total = nearest.sum()
        if total > 0:
            chosen[position] = generator.choice(len(rows), p=nearest / total)
        else:
            left = np.setdiff1d(np.arange(len(rows)), chosen[:position])
            chosen[position] = generator.choice(left)
        np.minimum(nearest, distances_from(chosen[position]), out=nearest)
    return chosen
