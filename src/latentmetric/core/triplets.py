"""Triplets of latent examples for Alg. 2: those that violate a margin.

For an anchor o, p is one of the nearest latent examples of its own class, and q one of the nearest
of other classes; the triplet is active if it violates the anchor's margin. Time O(a·m·d) as
blocked GEMM for a anchors among m latent examples; memory one block of distances per thread and
O(a·p·q) for p targets and q impostors per anchor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from latentmetric.core.distances import Mask, References, search, squared_norms
from latentmetric.core.parallel import parallel_map
from latentmetric.core.types import Floats, Ints


@dataclass(frozen=True)
class Triplets:
    """Row numbers (o, p, q), with the margin by which q must be farther from o than p."""

    anchors: Ints
    targets: Ints
    impostors: Ints
    margins: Floats

    def __len__(self) -> int:
        return len(self.anchors)

    def __getitem__(self, rows: slice | Ints) -> Triplets:
        return Triplets(
            self.anchors[rows], self.targets[rows], self.impostors[rows], self.margins[rows]
        )

    def differences(self, latents: Floats) -> tuple[Floats, Floats]:
        """The vectors z_q − z_o and z_p − z_o."""
        anchors, impostors, targets = (
            np.take(latents, rows, axis=0) for rows in (self.anchors, self.impostors, self.targets)
        )
        impostors -= anchors
        targets -= anchors
        return impostors, targets


@dataclass(frozen=True)
class Candidates:
    """The mined targets p and impostors q of some anchors, and the hinge of each triplet."""

    anchors: Ints
    targets: Ints
    impostors: Ints
    margins: Floats
    """One margin per anchor; the other arrays also have one row per anchor."""
    hinges: Floats
    """(anchors, p, q): the margin less D²(o, q) − D²(o, p); −inf if there is no such p or q."""

    def compact(self) -> tuple[Ints, Candidates]:
        """The latent examples that occur, ascending, and the candidates with numbers of these."""
        every = (self.anchors, self.targets, self.impostors)
        rows = np.unique(np.concatenate(every, axis=None))
        anchors, targets, impostors = (np.searchsorted(rows, numbers) for numbers in every)
        return rows, replace(self, anchors=anchors, targets=targets, impostors=impostors)

    def gaps(self, points: Floats) -> Floats:
        """D²(o, q) − D²(o, p) of every candidate, with latent examples at ``points``."""
        to_targets, to_impostors = (
            np.stack([squared_norms(points[ends] - points[self.anchors]) for ends in columns.T])
            for columns in (self.targets, self.impostors)
        )
        gaps: Floats = to_impostors.T[:, None, :] - to_targets.T[:, :, None]
        return gaps

    def take(self, numbers: Ints) -> Triplets:
        """The candidates with these numbers, in this order."""
        line, target, impostor = np.unravel_index(numbers, self.hinges.shape)
        return Triplets(
            self.anchors[line],
            self.targets[line, target],
            self.impostors[line, impostor],
            self.margins[line],
        )


def mine(
    points: Floats,
    class_starts: Ints,
    margins: Floats,
    target_neighbors: int,
    impostors: int,
    n_threads: int = 1,
    anchors: Ints | None = None,
) -> Candidates:
    """The nearest latent examples of its own class and of other classes for every anchor.

    ``points`` are the latent examples under the metric, class by class: class c is
    ``points[class_starts[c]:class_starts[c + 1]]``. ``margins`` holds one number per point.
    ``anchors`` are ascending; None means all points. The search is exact.
    """
    anchors = np.arange(len(points)) if anchors is None else anchors
    margins = margins[anchors]
    queries = points if len(anchors) == len(points) else points[anchors]
    to_targets, targets = own_nearest(points, class_starts, target_neighbors, n_threads, anchors)
    k, hide = min(impostors, len(points) - int(np.diff(class_starts).min())), hide_own_class
    to_others, others = search(
        queries, References.of(points), k, hide(class_starts, anchors), n_threads
    )  # fmt: skip
    hinges = margins[:, None, None] + (to_targets[:, :, None] - to_others[:, None, :])
    return Candidates(anchors, targets, others, margins, hinges)


def hide_own_class(class_starts: Ints, anchors: Ints) -> Mask:
    """A mask that hides each anchor's own class; anchors ascend, points are sorted by class."""
    classes = np.searchsorted(class_starts, anchors, side="right") - 1

    def hide(block: Floats, rows: slice, tile: slice) -> None:
        of_block = classes[rows]
        changes = np.flatnonzero(np.diff(of_block)) + 1
        for first, end in pairwise((0, *changes.tolist(), len(of_block))):
            begin, stop = class_starts[of_block[first] : of_block[first] + 2] - tile.start
            block[first:end, max(begin, 0) : max(stop, 0)] = np.inf

    return hide


def own_nearest(
    points: Floats, class_starts: Ints, k: int, n_threads: int, anchors: Ints | None = None
) -> tuple[Floats, Ints]:
    """The k nearest points of its own class for every anchor, without itself unless it is alone.

    If the class has fewer, the rest are at −inf, so that they never incur a loss.
    """
    anchors = np.arange(len(points)) if anchors is None else anchors
    anchor_starts = np.searchsorted(anchors, class_starts)
    k = max(1, min(k, int(np.diff(class_starts).max()) - 1))
    values = np.full((len(anchors), k), -np.inf, dtype=points.dtype)
    indices = np.zeros((len(anchors), k), dtype=np.intp)

    def search_class(position: int) -> None:
        own = slice(int(class_starts[position]), int(class_starts[position + 1]))
        querying = slice(int(anchor_starts[position]), int(anchor_starts[position + 1]))
        size = own.stop - own.start
        found = max(1, min(k, size - 1))
        own_columns = anchors[querying] - own.start

        def hide_self(block: Floats, rows: slice, tile: slice) -> None:
            columns = own_columns[rows] - tile.start
            inside = np.flatnonzero((columns >= 0) & (columns < block.shape[1]))
            block[inside, columns[inside]] = np.inf

        hide = hide_self if size > 1 else None
        queries = points[own] if len(anchors) == len(points) else points[anchors[querying]]
        values[querying, :found], columns = search(queries, References.of(points[own]), found, hide)
        indices[querying, :found] = columns + own.start

    parallel_map(search_class, np.flatnonzero(np.diff(anchor_starts)).tolist(), n_threads)
    return values, indices
