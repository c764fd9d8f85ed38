"""Active triplets among the latent examples: what Alg. 2 of the paper learns from.

For an anchor o: p is one of its nearest latent examples of its own class, q one of the nearest
of another class that violate its margin. Time O(m²·d) as blocked GEMM; memory one block of
distances per thread and O(m·p·q) for p targets and q impostors an anchor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latentmetric.core.distances import References, search
from latentmetric.core.parallel import for_each
from latentmetric.core.types import Floats, Ints


@dataclass(frozen=True)
class Triplets:
    """Rows (o, p, q) of latent examples, with the margin by which q must be farther than p."""

    anchors: Ints
    targets: Ints
    impostors: Ints
    margins: Floats

    @classmethod
    def none(cls) -> Triplets:
        """No triplets."""
        nowhere = np.empty(0, dtype=np.intp)
        return cls(nowhere, nowhere, nowhere, np.empty(0))

    def __len__(self) -> int:
        return len(self.anchors)

    def __getitem__(self, rows: slice) -> Triplets:
        return Triplets(
            self.anchors[rows], self.targets[rows], self.impostors[rows], self.margins[rows]
        )

    def differences(self, latents: Floats) -> tuple[Floats, Floats]:
        """The vectors z_q − z_o and z_p − z_o."""
        anchors = latents[self.anchors]
        return latents[self.impostors] - anchors, latents[self.targets] - anchors


@dataclass(frozen=True)
class Candidates:
    """The (p, q) that mining offers every anchor, and the hinge each of them incurs."""

    targets: Ints
    impostors: Ints
    margins: Floats
    hinges: Floats
    """(m, p, q): the margin less D²(o, q) − D²(o, p); −inf where there is no such p or q."""

    @property
    def active_share(self) -> float:
        """The share of the candidates that incur a loss."""
        return float(np.count_nonzero(self.hinges > 0) / np.count_nonzero(self.hinges > -np.inf))

    def all(self) -> Ints:
        """Numbers of all candidates, for ``take``."""
        return np.flatnonzero(self.hinges > -np.inf)

    def active(self) -> Ints:
        """Numbers of those that incur a loss."""
        return np.flatnonzero(self.hinges > 0)

    def take(self, numbers: Ints) -> Triplets:
        """The candidates of these numbers, in this order."""
        anchor, target, impostor = np.unravel_index(numbers, self.hinges.shape)
        return Triplets(
            anchor,
            self.targets[anchor, target],
            self.impostors[anchor, impostor],
            self.margins[anchor],
        )


def mine(
    points: Floats,
    class_starts: Ints,
    margins: Floats,
    target_neighbors: int,
    impostors: int,
    n_threads: int = 1,
) -> Candidates:
    """The nearest latent examples of its own and of other classes for every anchor, exactly.

    ``points`` are the latent examples under the metric, class by class: class c is
    ``points[class_starts[c]:class_starts[c + 1]]``. ``margins`` holds one number per point.
    """
    to_targets, targets = own_nearest(points, class_starts, target_neighbors, n_threads)
    to_others, others = other_nearest(points, class_starts, impostors, n_threads)
    hinges = margins[:, None, None] + (to_targets[:, :, None] - to_others[:, None, :])
    return Candidates(targets, others, margins, hinges)


def other_nearest(
    points: Floats, class_starts: Ints, k: int, n_threads: int
) -> tuple[Floats, Ints]:
    """The k nearest of other classes for every point; at +inf where there are not so many."""

    def hide_own_class(block: Floats, rows: slice, tile: slice) -> None:
        first = int(np.searchsorted(class_starts, rows.start, side="right")) - 1
        last = int(np.searchsorted(class_starts, rows.stop, side="left"))
        for begin, end in zip(class_starts[first:last], class_starts[first + 1 :], strict=False):
            own_rows = slice(max(begin - rows.start, 0), end - rows.start)
            own_columns = slice(max(begin - tile.start, 0), max(end - tile.start, 0))
            block[own_rows, own_columns] = np.inf

    k = min(k, len(points) - int(np.diff(class_starts).min()))
    return search(points, References.of(points), k, hide_own_class, n_threads)


def own_nearest(points: Floats, class_starts: Ints, k: int, n_threads: int) -> tuple[Floats, Ints]:
    """The k nearest of its own class for every point, itself left out unless it is alone.

    Where the class has fewer, the rest are at −inf, so that they never incur a loss.
    """
    k = max(1, min(k, int(np.diff(class_starts).max()) - 1))
    values = np.full((len(points), k), -np.inf, dtype=points.dtype)
    indices = np.zeros((len(points), k), dtype=np.intp)

    def search_class(position: int) -> None:
        own = slice(int(class_starts[position]), int(class_starts[position + 1]))
        size = own.stop - own.start
        found = max(1, min(k, size - 1))
        values[own, :found], columns = search(
            points[own], References.of(points[own]), found, hide_self if size > 1 else None
        )
        indices[own, :found] = columns + own.start

    for_each(search_class, range(len(class_starts) - 1), n_threads)
    return values, indices


def hide_self(block: Floats, rows: slice, tile: slice) -> None:
    """A mask for a search of points among themselves."""
    both = np.arange(max(rows.start, tile.start), min(rows.stop, tile.stop))
    block[both - rows.start, both - tile.start] = np.inf
