"""The latent examples near each row: those that the refinement of the row depends on.

The rows of a class are compared with the latent examples of the class, and then only with those
listed as near the nearest one: a search of latent examples among latent examples, which costs far
less than one of rows among latent examples. For long points, the lists are made from their leading
principal axes.

Time O(n·d·r) to map the rows, O(n·(m/C + L)·r) to compare them with lists of length L, O(m²·A)
for lists from A axes. Memory: a block of rows, and K numbers per row for the result. Rows are
mapped once for all sets of latent examples, and K is for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.linalg import eigh

from latentmetric.core.classes import OneClass
from latentmetric.core.distances import (
    References,
    row_blocks,
    search,
    squared_norms,
)
from latentmetric.core.likelihood import leave_one_out_factors
from latentmetric.core.parallel import lazy_property, parallel_map
from latentmetric.core.sets import sets_of
from latentmetric.core.tuning import LISTED, LISTING_AXES, MAX_COMPARED, NEAR, TILE_ROWS
from latentmetric.core.types import Bools, Floats, Ints


@dataclass(frozen=True)
class Nearby:
    """The latent examples near the rows visited of one or more classes, in drawing order."""

    near: Ints
    """Numbers of the latent examples of each set near each row, its own one among them."""
    own: Ints
    """The nearest latent example of the row's class in each set."""
    likelihood: Floats
    """P(y | x) of every row, left out of its own latent example; the least of all sets."""
    spreads: Floats
    """E[D²(x, z)] of every class, z being each row's own latent examples."""


@dataclass(frozen=True)
class RowSubset:
    """The rows that a pass visits: of every class, each so many, in drawing order."""

    stride: int = 1
    first: int = 0

    def of(self, n_rows: int) -> slice:
        """The rows of a class of this size; at least one."""
        return slice(self.first % n_rows, None, self.stride)

    def numbers(self, sizes: Ints) -> Ints:
        """The drawing numbers of all rows visited."""
        ends = np.cumsum(sizes)
        return np.concatenate(
            [
                np.arange(end - size, end)[self.of(int(size))]
                for size, end in zip(sizes, ends, strict=True)
            ]
        )


@dataclass(frozen=True)
class LatentPoints:
    """The latent examples under the metric, as the refinement sees them."""

    components: Floats
    """The factor of the metric, for inner rows."""
    points: Floats
    class_starts: Ints
    lists: Ints
    """The latent examples of its set near each latent example, in no particular order."""
    counts: Floats
    """Rows of every latent example, as known before; counted again if all rows are visited."""
    temperature: float
    visit: RowSubset = field(default_factory=RowSubset)
    n_sets: int = 1

    @lazy_property
    def components_in_double(self) -> Floats:
        """The factor in float64, for the means of classes."""
        return self.components.astype(np.float64)


def list_neighbors(points: Floats, class_starts: Ints, n_threads: int, n_sets: int = 1) -> Ints:
    """The latent examples of its set near each latent example, itself included."""
    lists: Ints = np.empty((len(points), min(LISTED, len(points) // n_sets)), dtype=np.int32)
    for which in sets_of(class_starts, n_sets):
        of_set = _list_neighbors_of_set(points[which], class_starts // n_sets, n_threads)
        lists[which] = which[of_set]
    return lists


def _list_neighbors_of_set(points: Floats, class_starts: Ints, n_threads: int) -> Ints:
    """The latent examples near each latent example of one set.

    Among many, those of a class are only compared with those of the classes whose means are
    nearest.
    """
    listed = min(LISTED, len(points))
    if listed == len(points):
        return np.broadcast_to(np.arange(listed, dtype=np.int32), (listed, listed))
    axes = points - points.mean(axis=0)
    rank = axes.shape[1]
    if rank > LISTING_AXES:
        _, directions = eigh(axes.T @ axes, subset_by_index=(rank - LISTING_AXES, rank - 1))
        axes = axes @ np.ascontiguousarray(directions)
    lists: Ints = np.empty((len(axes), listed), dtype=np.int32)

    def fill(task: tuple[slice, Ints | None]) -> None:
        block, others = task
        references = References.of(axes if others is None else axes[others])
        found = search(axes[block], references, listed)[1]
        lists[block] = found if others is None else others[found]

    parallel_map(fill, list(_candidate_blocks(axes, class_starts)), n_threads)
    return lists


def _candidate_blocks(axes: Floats, class_starts: Ints) -> Iterator[tuple[slice, Ints | None]]:
    """Blocks of latent examples, and those to compare them with; None means all."""
    # A search for so many sorts numbers of eight bytes beside the distances, and merges them.
    tile_bytes = 4 * min(len(axes), TILE_ROWS) * axes.itemsize
    if len(axes) <= MAX_COMPARED:
        yield from ((block, None) for block in row_blocks(len(axes), tile_bytes))
        return
    sizes = np.diff(class_starts)
    means = np.add.reduceat(axes, class_starts[:-1]) / sizes[:, None].astype(axes.dtype)
    apart = References.of(means)
    for position, first in enumerate(class_starts[:-1]):
        nearest = np.argsort(apart.comparable(means[position, None])[0], kind="stable")
        enough = int(np.searchsorted(np.cumsum(sizes[nearest]), MAX_COMPARED)) + 1
        chosen = [np.arange(class_starts[c], class_starts[c + 1]) for c in nearest[:enough]]
        others = np.sort(np.concatenate(chosen))
        for block in row_blocks(int(sizes[position]), tile_bytes):
            yield slice(first + block.start, first + block.stop), others


def nearby_of(rows: OneClass, position: int, latent_points: LatentPoints) -> Nearby:
    """The latent examples near the rows visited of the class at this position."""
    first, end = latent_points.class_starts[position], latent_points.class_starts[position + 1]
    n_sets, lists = latent_points.n_sets, latent_points.lists[first:end]
    n_near, size = min(NEAR, lists.shape[1]), int(end - first) // n_sets
    visited = rows.drawing_order[latent_points.visit.of(len(rows))]
    near: Ints = np.empty((len(visited), n_sets, n_near), dtype=np.int32)
    own: Ints = np.empty((len(visited), n_sets), dtype=np.int32)
    squared = np.empty(near.shape, dtype=rows.dtype)
    # Rows are centred on the mean of the class, and so are the points: float32 would lose
    # differences in a class that is far from the others.
    centre = (latent_points.components_in_double @ rows.mean).astype(rows.dtype)
    listed = np.union1d(lists, np.arange(first, end)).astype(np.int32)
    points, lists = latent_points.points[listed] - centre, np.searchsorted(listed, lists)
    offset = int(np.searchsorted(listed, first))
    own_sets = [
        References.of(points[start : start + size]) for start in offset + size * np.arange(n_sets)
    ]
    widest = max(rows.n_features, lists.shape[1])
    for block in row_blocks(len(visited), 4 * widest * rows.dtype.itemsize):
        mapped = rows[visited[block]] @ latent_points.components.T
        for number, of_set in enumerate(own_sets):
            nearest = number * size + search(mapped, of_set, 1)[1][:, 0]
            own[block, number] = first + nearest
            found, squared[block, number] = _near_own(
                mapped, nearest, offset, points, lists, n_near
            )
            near[block, number] = listed[found]
    counts: Ints | Floats = latent_points.counts[first:end]
    weights = None if rows.weights is None else rows.weights[visited]
    if latent_points.visit.stride == 1:
        counts = rows_of_latents(own - first, weights, int(end - first))
    of_rows = 1 if weights is None else weights[:, None]
    stretch = leave_one_out_factors(counts[own - first], of_rows)
    is_own = near == own[:, :, None]
    away = squared[is_own].astype(np.float64).reshape(own.shape).mean(axis=1)
    spread = float(np.average(away, weights=weights))
    left_out = np.where(is_own, squared * stretch[:, :, None].astype(squared.dtype), squared)
    same: Bools = (near >= first) & (near < end)
    _, _, likelihood = responsibilities(left_out, same, latent_points.temperature)
    return Nearby(near, own, likelihood.min(axis=1), np.array([spread]))


def rows_of_latents(own: Ints, weights: Floats | None, n_latents: int) -> Floats:
    """How many rows have each latent example as their own in its set, or what they weigh."""
    of_rows = None if weights is None else np.repeat(weights, own.shape[1])
    return np.bincount(own.ravel(), of_rows, minlength=n_latents).astype(np.float64)


def _near_own(
    mapped: Floats, own: Ints, offset: int, points: Floats, lists: Ints, n_near: int
) -> tuple[Ints, Floats]:
    """The nearest of those listed for each row's own latent example, itself among them.

    Also their squared distances.
    ``own`` are numbers of the class's latent examples, which begin at ``offset`` in ``points``.
    """
    order = np.argsort(own, kind="stable")
    here, ascending = mapped[order], own[order]
    listed = lists[ascending]
    comparable = np.empty(listed.shape, dtype=mapped.dtype)
    gathered = np.empty((lists.shape[1], points.shape[1]), dtype=points.dtype)
    bounds = np.flatnonzero(np.diff(ascending)) + 1
    for first, end in pairwise((0, *bounds.tolist(), len(own))):  # the rows of a latent example
        # Indices are in range; "clip" only spares numpy a copy of what it has gathered.
        np.take(points, lists[ascending[first]], axis=0, out=gathered, mode="clip")
        np.matmul(here[first:end], gathered.T, out=comparable[first:end])
    comparable *= -2
    comparable += squared_norms(points)[listed]
    columns = np.argpartition(comparable, n_near - 1, axis=1)[:, :n_near]
    values = np.take_along_axis(comparable, columns, axis=1)
    near: Ints = np.empty((len(mapped), n_near), dtype=np.intp)
    squared = np.empty(near.shape, dtype=mapped.dtype)
    near[order] = np.take_along_axis(listed, columns, axis=1)
    squared[order] = np.maximum(values + squared_norms(here)[:, None], 0)
    own = offset + own
    missing = np.flatnonzero((near != own[:, None]).all(axis=1))
    near[missing, -1] = own[missing]
    squared[missing, -1] = squared_norms(mapped[missing] - points[own[missing]])
    return near, squared


def responsibilities(
    squared: Floats, same: Bools, temperature: float
) -> tuple[Floats, Floats, Floats]:
    """p of all near latent examples, q of those with the row's label, and P(y | x), by set.

    Each row needs at least one latent example of its label in each set.
    """
    exponents = squared / squared.dtype.type(-temperature)
    p = np.exp(exponents - exponents.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    of_label = np.where(same, exponents, -np.inf)
    q = np.exp(of_label - of_label.max(axis=-1, keepdims=True))
    q /= q.sum(axis=-1, keepdims=True)
    return p, q, np.where(same, p, 0).sum(axis=-1)
