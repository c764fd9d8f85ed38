"""Large margin nearest neighbours: pull each row's targets near, push impostors a margin beyond.

The loss is (1 − μ) Σ D²(i, j) + μ Σ [1 + D²(i, j) − D²(i, l)]₊ over rows i, their fixed target
neighbours j and all rows l of other classes. It is minimised over the factor of the metric by
L-BFGS on the impostors that matter, which are searched for again every few iterations.

Time O(n²·d) a search as blocked GEMM, O(n·d² + p·d) an iteration for p impostor pairs. Memory:
the rows under the metric and O(p); no n×n array.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from latentmetric.core.distances import (
    References,
    paired_squared_distances,
    row_blocks,
    search_within,
    squared_norms,
)
from latentmetric.core.parallel import OrderedSum, for_each
from latentmetric.core.rows import InnerRows
from latentmetric.core.triplets import hide_own_class, own_nearest
from latentmetric.core.types import Floats, Ints

SEARCH_EVERY = 20
"""Iterations of L-BFGS between two searches for impostors."""

FIRST_DESCENT = 5
"""Iterations before the second search: the first metrics change most."""

MARGIN_SHARE = 0.1
"""The margin as a share of the targets' mean squared distance at the start.

It only sets the unit of the metric that is learned; small, so that the first searches find the
impostors that matter and not all rows.
"""


KEPT_SEARCHES = 2
"""The findings of so many searches are kept, where rows have as many impostors."""


@dataclass(frozen=True)
class Problem:
    """What stays fixed during a fit: rows by class, their targets, the margin and the weights."""

    rows: InnerRows
    order: Ints
    """Row numbers, class by class; all that follows counts in this order."""
    class_starts: Ints
    targets: Ints
    margin: float
    push: float
    """μ, the weight of the impostors; the targets have 1 − μ."""
    max_impostors: int
    n_threads: int

    @classmethod
    def of(
        cls, rows: InnerRows, codes: Ints, n_targets: int, push: float, max_impostors: int,
        n_threads: int,
    ) -> Problem:  # fmt: skip
        """Choose the targets: each row's nearest of its class under the Euclidean distance."""
        order = np.argsort(codes, kind="stable")
        class_starts = np.concatenate(([0], np.cumsum(np.bincount(codes))))
        points = rows[order]
        values, targets = own_nearest(points, class_starts, n_targets, n_threads)
        # A row alone in its class, or with too few others, is its own target at distance 0.
        targets = np.where(values > -np.inf, targets, np.arange(len(points))[:, None])
        squared = _distances(points, targets)
        margin = MARGIN_SHARE * float(squared.mean(dtype=np.float64)) or 1.0
        return cls(rows, order, class_starts, targets, margin, push, max_impostors, n_threads)

    @property
    def most_pairs(self) -> int:
        """Impostor pairs that are kept from one descent to the next."""
        return KEPT_SEARCHES * self.max_impostors * len(self.rows)


@dataclass(frozen=True)
class Impostors:
    """Pairs of a row and a row of another class that is, or may come, within its margin."""

    of: Ints
    rows: Ints

    def __len__(self) -> int:
        return len(self.of)

    @classmethod
    def pairs(cls, of: Ints, rows: Ints) -> Impostors:
        """There may be many: numbers of rows are kept in four bytes."""
        return cls(of.astype(np.int32), rows.astype(np.int32))

    def union(self, other: Impostors, n_rows: int) -> Impostors:
        """The pairs of both, each once."""
        keys = np.union1d(self._keys(n_rows), other._keys(n_rows))
        return Impostors.pairs(keys // n_rows, keys % n_rows)

    def _keys(self, n_rows: int) -> Ints:
        return self.of.astype(np.int64) * n_rows + self.rows

    def near(self, problem: Problem, components: Floats) -> Impostors:
        """The pairs that a small change of the metric may bring within the margin.

        If they are more than searches may find for all rows, the nearest of each row.
        """
        points = problem.rows.under(components, problem.order)
        reach = _reach(problem, points) + problem.margin
        squared = _pair_distances(problem, points, self)
        kept = np.flatnonzero(squared < reach[self.of])
        if len(kept) > problem.most_pairs:
            kept = kept[np.lexsort((squared[kept], self.of[kept]))]
            of = self.of[kept]
            rank = np.arange(len(of)) - np.searchsorted(of, of)
            kept = kept[rank < KEPT_SEARCHES * problem.max_impostors]
        return Impostors(self.of[kept], self.rows[kept])


@dataclass(frozen=True)
class Evaluation:
    """The loss at a metric, on given impostors."""

    loss: float
    active: int
    """Triplets that incur a loss."""
    gradient: Floats
    """With respect to the factor."""


def find_impostors(problem: Problem, components: Floats) -> Impostors:
    """For every row the nearest rows of other classes inside its widest margin."""
    points = problem.rows.under(components, problem.order)
    references = References.of(points)
    of, rows = search_within(
        points,
        references,
        _reach(problem, points) - references.norms,
        problem.max_impostors,
        hide_own_class(problem.class_starts, np.arange(len(points))),
        problem.n_threads,
    )
    return Impostors.pairs(of, rows)


def evaluate(problem: Problem, components: Floats, impostors: Impostors) -> Evaluation:
    """Loss and gradient. The latter needs one sparse and one dense product with the rows."""
    loss, active, weights = _weigh(problem, components, impostors)
    gradient = 2 * components @ _scatter(problem, weights)
    return Evaluation(loss, active, gradient)


def _weigh(
    problem: Problem, components: Floats, impostors: Impostors
) -> tuple[float, int, csr_array]:
    """The loss, the number of active triplets, and how much each pair counts in the gradient."""
    points = problem.rows.under(components, problem.order)
    to_targets = _distances(points, problem.targets)
    beyond = problem.margin - _pair_distances(problem, points, impostors)
    pull, push = 1 - problem.push, problem.push
    loss = pull * to_targets.sum(dtype=np.float64)
    on_targets: Floats = np.full(to_targets.shape, pull)
    on_impostors = np.zeros(len(impostors), dtype=points.dtype)
    for rank in range(to_targets.shape[1]):
        hinges = beyond + to_targets[impostors.of, rank]
        active = hinges > 0
        loss += push * hinges[active].sum(dtype=np.float64)
        counts = np.bincount(impostors.of[active], minlength=len(points))
        on_targets[:, rank] += push * counts
        on_impostors -= active
    n_active = -int(on_impostors.sum(dtype=np.float64))
    on_impostors *= push
    return float(loss), n_active, _pair_weights(problem, on_targets, impostors, on_impostors)


def steps(
    problem: Problem, components: Floats, max_iter: int, tol: float
) -> Generator[tuple[Floats, Evaluation, int], None, None]:
    """Metrics of falling loss, each with its evaluation and the number of impostor pairs.

    A descent may run into impostors it did not know of. Where they outweigh its gain it is
    taken back and repeated with them, and the next ones are kept shorter.
    """
    impostors = find_impostors(problem, components)
    at = evaluate(problem, components, impostors)
    yield components, at, len(impostors)
    length, done = FIRST_DESCENT, 0
    while done < max_iter:
        length = min(length, max_iter - done)
        moved = _descend(problem, components, impostors, length)
        done += length
        known = impostors.union(find_impostors(problem, moved), len(problem.rows))
        there = evaluate(problem, moved, known)
        if there.loss > at.loss:  # of what was found, some may have been active before, unknown
            at = evaluate(problem, components, known)
        if there.loss > at.loss:
            impostors = known
            length = max(1, length // 2)
            continue
        gain, components = at.loss - there.loss, moved
        impostors = known.near(problem, components)
        at = there if len(known) <= problem.most_pairs else evaluate(problem, moved, impostors)
        length = min(2 * length, SEARCH_EVERY)
        yield components, at, len(impostors)
        if gain <= tol * at.loss:
            return


def _descend(
    problem: Problem, components: Floats, impostors: Impostors, n_iterations: int
) -> Floats:
    """L-BFGS with a line search, so the loss on these impostors never rises."""

    def loss_and_gradient(flat: Floats) -> tuple[float, Floats]:
        factor = flat.reshape(components.shape).astype(components.dtype)
        evaluation = evaluate(problem, factor, impostors)
        return evaluation.loss, evaluation.gradient.ravel().astype(np.float64)

    found = minimize(
        loss_and_gradient,
        components.ravel().astype(np.float64),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": n_iterations, "maxcor": 5},
    )
    moved: Floats = found.x.reshape(components.shape).astype(components.dtype)
    return moved


def _reach(problem: Problem, points: Floats) -> Floats:
    """The squared distance of every row's farthest target, and the margin."""
    farthest: Floats = _distances(points, problem.targets).max(axis=1)
    return farthest + points.dtype.type(problem.margin)


def _distances(points: Floats, partners: Ints) -> Floats:
    """Squared distances of every point to each of its partners, (n, k)."""
    squared = np.empty(partners.shape, dtype=points.dtype)
    for rank in range(partners.shape[1]):
        squared[:, rank] = paired_squared_distances(points, points, partners[:, rank])
    return squared


def _pair_distances(problem: Problem, points: Floats, pairs: Impostors) -> Floats:
    squared = np.empty(len(pairs), dtype=points.dtype)

    def compute(block: slice) -> None:
        squared[block] = squared_norms(points[pairs.of[block]] - points[pairs.rows[block]])

    for_each(compute, list(row_blocks(len(pairs), points[:1].nbytes)), problem.n_threads)
    return squared


def _pair_weights(
    problem: Problem, on_targets: Floats, impostors: Impostors, on_impostors: Floats
) -> csr_array:
    """How much each pair counts in the gradient, in the caller's order of rows."""
    n_rows, n_targets = on_targets.shape
    order = problem.order.astype(np.int32)
    counting = on_impostors != 0
    left = (np.repeat(order, n_targets), order[impostors.of[counting]])
    right = (order[problem.targets.ravel()], order[impostors.rows[counting]])
    values = (on_targets.ravel().astype(problem.rows.dtype), on_impostors[counting])
    pairs = (np.concatenate(left), np.concatenate(right))
    return csr_array((np.concatenate(values), pairs), shape=(n_rows, n_rows))


def _scatter(problem: Problem, weights: csr_array) -> Floats:
    """Σ wᵢⱼ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ = Xᵀ (D − W − Wᵀ) X, in blocks of rows.

    The rows of D − W − Wᵀ sum to 0, so it may be applied to rows that are not centred.
    """
    inner, both = problem.rows, (weights + weights.T).tocsr()
    degrees = both.sum(axis=1).astype(inner.dtype)
    blocks = list(row_blocks(len(inner), inner.n_features * inner.dtype.itemsize))
    summed = OrderedSum(np.zeros((inner.n_features, inner.n_features), dtype=inner.dtype))

    def add(number: int) -> None:
        block = blocks[number]
        laplacian = inner.rows[block] * degrees[block, None]
        laplacian -= both[block] @ inner.rows
        summed.add(number, inner[block].T @ laplacian)

    for_each(add, range(len(blocks)), problem.n_threads)
    scatter: Floats = summed.total
    scatter /= inner.dtype.type(inner.coordinates.scale)
    return scatter
