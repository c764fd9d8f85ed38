"""Alg. 1 of the paper: move the latent examples of one class, with the metric held fixed.

This is k-means under the metric with a proximal term (eq. 5), starting from the latent examples
of the round before. Only zᵀMz − 2xᵀMz decides which latent example is nearest to a row x, so the
latent examples are mapped to Mz, and the rows are never mapped.

Time per pass at most O(n·m·d) for a class of n rows and m latent examples, and O(m·d²) for the
latent examples that moved; memory a block of rows, a block of distances and O(n + m·d).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from latentmetric.core.classes import OneClass
from latentmetric.core.distances import (
    ROUNDING_SLACK,
    References,
    row_blocks,
    search,
)
from latentmetric.core.metric import Metric
from latentmetric.core.tuning import (
    MAX_LATENT_SHARE,
    SETTLED_SHARE,
    START_SHIFT,
    SUMMED_ROWS,
)
from latentmetric.core.types import Floats, Ints

UNASSIGNED = -1
"""The latent example of a row that has none yet."""


@dataclass(frozen=True)
class Settled:
    """The result of Alg. 1 for one class."""

    latents: Floats
    assignment: Ints
    """The latent example of every row."""
    spread: float
    """E[D²(x, z)] of the class under the metric: what its margin adds to 1."""
    counts: Floats
    """Rows of every latent example, or their weight."""
    passes: int


def settle(
    rows: OneClass, start: Floats, metric: Metric, latent_reg: float, max_passes: int
) -> Settled:
    """Alg. 1: assign (eq. 7) and move (eq. 6) until hardly any row changes its latent example.

    A row with a weight counts as so many rows. If groups within the class are so far apart that
    float32 loses the differences inside them, it is repeated in float64.
    """
    dtype, slack = start.dtype, ROUNDING_SLACK * float(np.finfo(start.dtype).eps)
    start = start - rows.mean.astype(dtype)
    nearest = Nearest(len(rows), start.dtype)
    members = Members(len(rows), start, latent_reg, rows.weights)
    latents, moved, passes = start.copy(), np.arange(len(start)), 0
    mapped, rounding = References.under(latents, metric.matrix), 0.0
    while passes < max_passes:
        passes += 1
        # No row changes its latent example for less than the rounding error. Otherwise equal rows
        # could be passed back and forth between equal latent examples for ever.
        largest = float(np.abs(mapped.norms[moved]).max(initial=0))
        rounding = max(rounding, slack * largest)
        for block in rows.blocks:
            inside = rows[block]
            members.reassign(block, inside, nearest.update(block, inside, moved, mapped, rounding))
        refill_empty(rows, latents, metric, members)
        moved, changed = members.touched()
        latents[moved] = members.means(moved)
        there = References.under(latents[moved], metric.matrix)
        mapped.rows[moved], mapped.norms[moved] = there.rows, there.norms
        if changed <= SETTLED_SHARE * rows.weight:
            break
    within, between = members.within_and_between(rows, latents, mapped, metric)
    if dtype == np.float32 and within < slack * between:
        precise = settle(rows, start + rows.mean, metric.in_double, latent_reg, max_passes)
        return replace(precise, latents=precise.latents.astype(dtype))
    return Settled(
        (latents + rows.mean).astype(dtype), members.assignment, within / rows.weight,
        members.counts, passes,
    )  # fmt: skip


class Nearest:
    """The nearest latent example of every row, kept up to date as some of them move.

    A latent example that has not moved is no nearer to a row than the nearest one was before. So
    rows are compared with those that moved, and with the others only if their distance grew: the
    same answer as a full search, at a fraction of its cost that shrinks from pass to pass.
    """

    def __init__(self, n_rows: int, dtype: Any) -> None:
        self._latent = np.full(n_rows, UNASSIGNED)
        self._distance = np.full(n_rows, np.inf, dtype=dtype)

    def update(
        self, block: slice, rows: Floats, moved: Ints, references: References, rounding: float
    ) -> Ints:
        """The nearest latent examples of a block of rows; call once per block after each move."""
        old, before = self._latent[block], self._distance[block]
        if not len(moved):
            return old
        has_moved = np.zeros(len(references), dtype=bool)
        has_moved[moved] = True
        distance, challenger = _nearest_of(rows, references, moved)
        wins = (old == UNASSIGNED) | has_moved[old] | (distance < before)
        latent = np.where(wins, challenger, old)
        distance = np.where(wins, distance, before)
        still = np.flatnonzero(~has_moved)
        # Rows that are farther away than before may be nearer to one that has not moved.
        worse = np.flatnonzero(distance > before) if len(still) else still
        for part in row_blocks(len(worse), rows[:1].nbytes):
            some = worse[part]
            rest_distance, rest = _nearest_of(rows[some], references, still)
            back = rest_distance < distance[some]
            latent[some[back]] = rest[back]
            distance[some[back]] = rest_distance[back]
        _keep_ties(rows, references, old, latent, distance, rounding)
        self._latent[block], self._distance[block] = latent, distance
        return latent


def _keep_ties(
    rows: Floats, references: References, old: Ints, latent: Ints, distance: Floats,
    rounding: float,
) -> None:  # fmt: skip
    """Rows stay with their old latent example if another one is nearer only by rounding."""
    changed = np.flatnonzero((latent != old) & (old != UNASSIGNED))
    for part in row_blocks(len(changed), rows[:1].nbytes):
        some = changed[part]
        there = references.rows[old[some]]
        still = np.einsum("ij,ij->i", rows[some], there) + references.norms[old[some]]
        stays = still - distance[some] <= rounding
        latent[some[stays]] = old[some[stays]]
        distance[some[stays]] = still[stays]


def _nearest_of(rows: Floats, references: References, which: Ints) -> tuple[Floats, Ints]:
    some = references if len(which) == len(references) else references.some(which)
    values, found = search(rows, some, 1)
    return values[:, 0], which[found[:, 0]]


class Members:
    """The rows assigned to each latent example, and their sums, which eq. 6 needs."""

    def __init__(
        self, n_rows: int, start: Floats, latent_reg: float, weights: Floats | None = None
    ) -> None:
        self.assignment: Ints = np.full(n_rows, UNASSIGNED, dtype=np.intp)
        self.n_rows = np.zeros(len(start), dtype=np.intp)
        """Rows of every latent example."""
        self.counts = np.zeros(len(start))
        """The weight of these rows; their number if each counts as one."""
        self._weights = np.ones(n_rows) if weights is None else weights
        self._start, self._latent_reg = start, latent_reg
        self._sums = np.zeros(start.shape)
        self._touched = np.zeros(len(start), dtype=bool)
        self._changed = 0.0

    def reassign(self, block: slice, rows: Floats, latent: Ints) -> None:
        """Assign each row of a block to the given latent example.

        Either none of the rows has one yet, in the first pass, or all have.
        """
        before, size = self.assignment[block], len(self.n_rows)
        changed = np.flatnonzero(before != latent)
        if not len(changed):
            return
        first = before[changed[0]] == UNASSIGNED
        for some in np.split(changed, range(SUMMED_ROWS, len(changed), SUMMED_ROWS)):
            new, old, gained = latent[some], before[some], self._weights[block][some]
            to = new if first else np.stack((new, old), axis=1).ravel()
            signed = gained if first else np.stack((gained, -gained), axis=1).ravel()
            per_row = np.zeros(len(rows) + 1, dtype=np.int32)
            per_row[some + 1] = 1 if first else 2
            parts = signed.astype(self._start.dtype), to.astype(np.int32), np.cumsum(per_row)
            self._sums += csc_array(parts, (size, len(rows))) @ rows
            self.n_rows += np.bincount(new, minlength=size)
            self.counts += np.bincount(new, gained, size)
            if not first:
                self.n_rows -= np.bincount(old, minlength=size)
                self.counts -= np.bincount(old, gained, size)
            self.counts[self.n_rows == 0] = 0  # what rounding left
            self._touched[to] = True
            self._changed += float(gained.sum())
        self.assignment[block] = latent

    def touched(self) -> tuple[Ints, float]:
        """The latent examples that gained or lost rows since the last call, and how many rows."""
        touched, changed = np.flatnonzero(self._touched), self._changed
        self._touched[:], self._changed = False, 0.0
        return touched, changed

    def means(self, which: Ints | slice = slice(None)) -> Floats:
        """Eq. 6: the mean of the rows and γ times the start; without rows, the start itself."""
        counts, pull = self.counts[which][:, None], self._latent_reg
        if not pull and counts.all():
            means: Floats = self._sums[which] / counts
        else:
            whole = np.where(counts > 0, counts + pull, 1.0)
            of_start = np.where(counts > 0, pull / whole, 1.0)
            of_rows = np.where(counts > 0, 1 / whole, 0.0)
            means = of_rows * self._sums[which] + of_start * self._start[which]
        return means.astype(self._start.dtype)

    def pull(self, latent: int, row: Floats, weight: float, metric: Metric) -> float:
        """The cost in eq. 5 of moving a latent example to this row, its only one.

        As a squared distance of the row, whose own cost is its weight times that.
        """
        share = self._latent_reg / (weight + self._latent_reg)
        return share * float(metric.squared_lengths((row - self._start[latent])[None])[0])

    def within_and_between(
        self, rows: OneClass, latents: Floats, mapped: References, metric: Metric
    ) -> tuple[float, float]:
        """Σ D²(x, z) and Σ D²(z, mean) over the rows; ``mapped`` are the latents under the metric.

        The first is Σ D²(x, mean), from the scatter, less what the latent examples save. It is
        summed row by row if that is cheaper, or if so little remains that rounding would show.
        """
        between = float(self.counts @ mapped.norms)
        if rows.has_scatter:
            whole = rows.scatter_under(metric)
            remains = whole + float(np.vdot(mapped.rows, self._sums)) + between
            if remains > ROUNDING_SLACK * np.finfo(rows.dtype).eps * whole:
                return remains, between
        squared = rows.weighted(self.squared_distances(rows, latents, metric), slice(None))
        return float(squared.sum(dtype=np.float64)), between

    def squared_distances(self, rows: OneClass, latents: Floats, metric: Metric) -> Floats:
        """D²(x, z) of every row."""
        squared = np.empty(len(rows), dtype=latents.dtype)
        for block in rows.blocks:
            differences = rows[block] - latents[self.assignment[block]]
            squared[block] = metric.squared_lengths(differences)
        return squared


def refill_empty(rows: OneClass, latents: Floats, metric: Metric, members: Members) -> None:
    """Give each latent example without rows one of the farthest rows, if that lowers eq. 5.

    It must do so by more than rounding; otherwise equal rows would be passed around.
    """
    empty = np.flatnonzero(members.n_rows == 0)
    if not len(empty):
        return
    squared = members.squared_distances(rows, latents, metric)
    costs = rows.weighted(squared, slice(None))
    worst_first = np.argsort(-costs, kind="stable")[: len(empty)]
    for latent, row in zip(empty, worst_first, strict=False):
        alone = slice(int(row), int(row) + 1)
        inside = rows[alone]
        rounding = (
            ROUNDING_SLACK * np.finfo(rows.dtype).eps * float(metric.squared_lengths(inside)[0])
        )
        weight = 1.0 if rows.weights is None else float(rows.weights[row])
        gains = squared[row] > members.pull(int(latent), inside[0], weight, metric) + rounding
        if gains and members.n_rows[members.assignment[row]] > 1:
            members.reassign(alone, inside, np.array([latent]))


def shared_by_weight(share: float, sizes: Ints, weights: Ints | Floats) -> Floats:
    """The latent examples of each class, if they are a share of the rows' weight.

    A class of few but heavy rows would have about one for each row, and a vote of single rows is
    a noisy one. So a class has at most one for four rows, or its share of the rows if that is more.
    Where this leaves classes with less than their weight asks for, the others have less, too: the
    mean shortage is the harmonic one, so that one small class among many hardly matters.
    """
    wanted, most = share * weights, max(share, MAX_LATENT_SHARE) * sizes
    shortages = np.maximum(wanted / most, 1.0)
    shared: Floats = np.minimum(wanted * (len(sizes) / shortages.sum()), most)
    return shared


def draw_starts(
    sizes: Ints, counts: Ints, init: str, generator: np.random.Generator,
    weights: Floats | None = None,
) -> list[Ints]:  # fmt: skip
    """The rows of every class at which its latent examples start, all distinct.

    They are numbers of its ``drawing_order``, which does not depend on the caller's order. All are
    drawn before any row is read, so classes can be processed anywhere, in any order.
    ``weights`` are those of all rows by their drawing numbers.
    """
    if init == "spaced":
        return [np.arange(k) * n // k for k, n in zip(counts, sizes, strict=True)]
    ones: Floats = np.ones(np.sum(sizes)) if weights is None else weights
    of_classes = np.split(ones, np.cumsum(sizes)[:-1])
    return [
        generator.choice(
            len(of_class), size=int(count), replace=False,
            p=None if (of_class == of_class[0]).all() else of_class / of_class.sum(),
        )
        for of_class, count in zip(of_classes, counts, strict=True)
    ]  # fmt: skip


def latents_near(rows: OneClass, numbers: Ints) -> Floats:
    """Latent examples near these rows of a class, in inner coordinates.

    Rows of whole numbers can be exactly as far from one row as from another. Rounding, which
    differs with the scale of the data, would then decide which is nearer; a shift towards the mean
    of the class breaks such ties. It is short because rows of a class may form groups: a shift as
    large as a group would move all its latent examples out of it.
    """
    chosen = rows[numbers]
    share = chosen.dtype.type(START_SHIFT)
    latents: Floats = (1 - share) * chosen + rows.mean.astype(chosen.dtype)
    return latents
