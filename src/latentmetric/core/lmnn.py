"""Large margin nearest neighbours: pull each row's targets near, push impostors a margin beyond.

The loss is (1 − μ) Σ D²(i, j) + μ Σ [1 + D²(i, j) − D²(i, l)]₊ over rows i, their fixed target
neighbours j and all rows l of other classes. L-BFGS minimises it over the factor of the metric,
on the impostors that matter, which are searched again every few iterations.

Time O(n²·d) per search as blocked GEMM, O(n·d² + p·d) per iteration for p impostor pairs. Memory:
one copy of the rows under the metric, O(p), O(d²) and blocks; no n×n array. Rows far from 0, or of
extreme size, are copied once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.sparse import csr_array

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import References, row_blocks, search, squared_norms
from latentmetric.core.parallel import parallel_map
from latentmetric.core.steps import Record, Steps
from latentmetric.core.triplets import hide_own_class, own_nearest
from latentmetric.core.tuning import (
    BALANCE_FLOOR,
    FIRST_DESCENT,
    GATHER_DIVISOR,
    KEPT_SEARCHES,
    MARGIN_SHARE,
    SEARCH_EVERY,
)
from latentmetric.core.types import Floats, Ints

HINGE_BYTES = 32
"""Memory per pair while its hinges are computed."""

UNION_BYTES = 2**11
"""Approximate memory per row while pairs are united."""

ROUNDING = 1e-5
"""Rows are centred before they are added if rounding is more than this share of the spread."""


@dataclass(frozen=True)
class Problem:
    """What stays fixed during a fit: rows by class, their targets, the margin and the weights."""

    rows: InnerRows
    order: Ints
    """Row numbers, class by class; the fields below number the rows in this order."""
    class_starts: Ints
    targets: Ints
    margin: float
    push: float
    """μ, the weight of the impostors; the weight of the targets is 1 − μ."""
    max_impostors: int
    n_threads: int

    @classmethod
    def of(
        cls, rows: InnerRows, codes: Ints, n_targets: int, push: float, max_impostors: int,
        n_threads: int,
    ) -> Problem:  # fmt: skip
        """Choose the targets: each row's nearest rows of its class by Euclidean distance."""
        rows = _well_scaled(rows)
        order = np.argsort(codes, kind="stable")
        class_starts = np.concatenate(([0], np.cumsum(np.bincount(codes))))
        points = rows[order]
        values, targets = own_nearest(points, class_starts, n_targets, n_threads)
        # A row alone in its class, or with too few others, is its own target at distance 0.
        targets = np.where(values > -np.inf, targets, np.arange(len(points))[:, None])
        squared = _target_distances(points, targets, n_threads)
        margin = MARGIN_SHARE * float(squared.mean(dtype=np.float64)) or 1.0
        return cls(rows, order, class_starts, targets, margin, push, max_impostors, n_threads)

    @property
    def most_pairs(self) -> int:
        """The number of impostor pairs that may be kept from one descent to the next."""
        return KEPT_SEARCHES * self.max_impostors * len(self.rows)


def _well_scaled(rows: InnerRows) -> InnerRows:
    """The rows, copied into inner coordinates if sums of them as they are would lose digits.

    That is so if they are far from 0, very large or very small; see ``_PairWeights.times_rows``.
    """
    dtype, scale = np.finfo(rows.dtype), rows.coordinates.scale
    largest = max(float(rows.rows.max()), -float(rows.rows.min()))
    near = largest * float(dtype.eps) <= ROUNDING * scale
    if near and largest <= float(dtype.max) ** 0.5 and scale >= float(dtype.tiny) ** 0.5:
        return rows
    return InnerRows(rows[:], Coordinates(np.zeros(rows.n_features), 1.0))


@dataclass(frozen=True)
class Impostors:
    """Pairs of a row and a row of another class that is, or may come, within its margin."""

    of: Ints
    """The row of each pair, ascending."""
    rows: Ints
    """Its impostor."""

    def __len__(self) -> int:
        return len(self.of)

    def union(self, other: Impostors, n_rows: int) -> Impostors:
        """The pairs of both, without duplicates."""
        of, rows = [], []
        for block in row_blocks(n_rows, UNION_BYTES):
            keys = np.union1d(self._keys(block, n_rows), other._keys(block, n_rows))
            of.append((keys // n_rows).astype(np.int32))
            rows.append((keys % n_rows).astype(np.int32))
        return Impostors(np.concatenate(of), np.concatenate(rows))

    def _keys(self, block: slice, n_rows: int) -> Ints:
        """One number for each pair of a block of rows."""
        first, end = np.searchsorted(self.of, (block.start, block.stop))
        return self.of[first:end].astype(np.int64) * n_rows + self.rows[first:end]

    def near(self, problem: Problem, components: Floats) -> Impostors:
        """The pairs that a small change of the metric may bring within the margin.

        If they are more than ``problem.most_pairs``, only the nearest of each row.
        """
        points = problem.rows.under(components, problem.order, problem.n_threads)
        reach = _margin_limits(problem, points) + problem.margin
        squared = _pair_distances(points, self.of, self.rows, problem.n_threads)
        del points
        kept = np.flatnonzero(squared < reach[self.of])
        if len(kept) > problem.most_pairs:
            kept = kept[np.lexsort((squared[kept], self.of[kept]))]
            of = self.of[kept]
            rank = np.arange(len(of)) - np.searchsorted(of, of)
            kept = kept[rank < KEPT_SEARCHES * problem.max_impostors]
        return Impostors(self.of[kept], self.rows[kept])


@dataclass(frozen=True)
class Evaluation:
    """The loss of a metric on given impostors."""

    loss: float
    active: int
    """Triplets that incur a loss."""
    gradient: Floats
    """With respect to the factor."""


def find_impostors(problem: Problem, components: Floats) -> Impostors:
    """The nearest rows of other classes inside every row's widest margin."""
    points = problem.rows.under(components, problem.order, problem.n_threads)
    references, k = References.of(points), min(problem.max_impostors, len(points))
    hide = hide_own_class(problem.class_starts, np.arange(len(points)))
    values, found = search(points, references, k, hide, problem.n_threads)
    limits = _margin_limits(problem, points) - references.norms
    of, rank = np.nonzero(values < limits[:, None])
    return Impostors(of.astype(np.int32), found[of, rank].astype(np.int32))


def evaluate(problem: Problem, components: Floats, impostors: Impostors) -> Evaluation:
    """Loss and gradient; the gradient needs one sparse and one dense product with the rows."""
    loss, n_active, on_targets, on_impostors = _weigh(problem, components, impostors)
    scatter = _scatter(problem, on_targets, impostors, on_impostors)
    scatter *= scatter.dtype.type(2)
    return Evaluation(loss, n_active, components @ scatter)


def _weigh(
    problem: Problem, components: Floats, impostors: Impostors
) -> tuple[float, int, Floats, Floats]:
    """Loss, number of active triplets, and the gradient's weights of targets and impostors."""
    points = problem.rows.under(components, problem.order, problem.n_threads)
    to_targets = _target_distances(points, problem.targets, problem.n_threads)
    squared = _pair_distances(points, impostors.of, impostors.rows, problem.n_threads)
    del points
    hinged, counts = 0.0, np.zeros(to_targets.shape, dtype=np.intp)
    on_impostors = np.zeros(len(impostors), dtype=squared.dtype)
    for pairs in row_blocks(len(impostors), HINGE_BYTES):
        of, beyond = impostors.of[pairs], problem.margin - squared[pairs]
        for rank in range(to_targets.shape[1]):
            hinges = beyond + to_targets[of, rank]
            active = hinges > 0
            hinged += float(hinges[active].sum(dtype=np.float64))
            counts[:, rank] += np.bincount(of[active], minlength=len(counts))
            on_impostors[pairs] -= active
    pull, push = 1 - problem.push, problem.push
    loss = pull * float(to_targets.sum(dtype=np.float64)) + push * hinged
    on_targets = (pull + push * counts).astype(squared.dtype)
    on_impostors *= push
    return loss, int(counts.sum()), on_targets, on_impostors


@dataclass(frozen=True)
class State:
    """The metric after some descents, and what the next one starts from."""

    components: Floats
    """The factor of the metric, for this margin."""
    margin: float
    x: Floats
    """The factor in balanced coordinates."""
    at: Evaluation
    impostors: Impostors
    length: int
    """Iterations of the next descent."""
    record: Record
    finished: bool = False


def steps(problem: Problem, start: Floats, max_iter: int, tol: float) -> Steps[State]:
    """LMNN in steps: each is a descent that lowers the loss and a search for impostors."""
    preconditioner = Preconditioner.of(problem)

    def first(generator: np.random.Generator) -> State:
        since = perf_counter()
        impostors = find_impostors(problem, start)
        x = preconditioner.into(start)
        at = preconditioner.evaluate(problem, x, impostors)
        record = _record(problem, 0, 0, at, impostors, since)
        return State(start, problem.margin, x, at, impostors, FIRST_DESCENT, record, max_iter < 1)

    following = partial(
        _next_state, problem=problem, preconditioner=preconditioner, max_iter=max_iter, tol=tol
    )
    return Steps(first, following, max_iter, State)


def _next_state(
    state: State, generator: np.random.Generator, *, problem: Problem,
    preconditioner: Preconditioner, max_iter: int, tol: float,
) -> State:  # fmt: skip
    """The state after the next descent that lowers the loss; if none does, the metric stays.

    A descent may meet impostors it did not know. If they outweigh its gain, it is undone and
    repeated with them, and the next descents are shorter.
    """
    since = perf_counter()
    x, at, impostors, length = state.x, state.at, state.impostors, state.length
    done = state.record["iterations"]
    while done < max_iter:
        length = min(length, max_iter - done)
        moved, made = _descend(problem, preconditioner, x, at.loss, impostors, length)
        done += max(1, made)
        components = moved @ preconditioner.matrix
        impostors = impostors.union(find_impostors(problem, components), len(problem.rows))
        there = preconditioner.evaluate(problem, moved, impostors)
        if there.loss > at.loss:  # some new impostors may already have been active at the start
            at = preconditioner.evaluate(problem, x, impostors)
        if there.loss > at.loss:
            length = max(1, length // 2)
            continue
        gain, at = at.loss - there.loss, there
        too_many = len(impostors) > problem.most_pairs
        impostors = impostors.near(problem, components)
        if too_many:
            at = preconditioner.evaluate(problem, moved, impostors)
        record = _record(problem, state.record["round"] + 1, done, at, impostors, since)
        return State(
            components, problem.margin, moved, at, impostors,
            min(2 * length, SEARCH_EVERY), record, done >= max_iter or gain <= tol * at.loss,
        )  # fmt: skip
    record = _record(problem, state.record["round"] + 1, done, at, impostors, since)
    return replace(state, at=at, impostors=impostors, record=record, finished=True)


def _descend(
    problem: Problem, preconditioner: Preconditioner, x: Floats, loss: float, impostors: Impostors,
    n_iterations: int,
) -> tuple[Floats, int]:  # fmt: skip
    """Up to ``n_iterations`` of L-BFGS, fewer if they halve the loss; the x found, their number."""

    def evaluate_flat(flat: Floats) -> tuple[float, Floats]:
        at = preconditioner.evaluate(problem, flat.reshape(x.shape).astype(x.dtype), impostors)
        return at.loss, at.gradient.ravel()

    def stop_at_half(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun <= loss / 2:
            raise StopIteration

    found = minimize(
        evaluate_flat, x.ravel(), jac=True, method="L-BFGS-B", callback=stop_at_half,
        options={"maxiter": n_iterations, "ftol": 0, "gtol": 0},
    )  # fmt: skip
    return found.x.reshape(x.shape).astype(x.dtype), found.nit


def _record(
    problem: Problem, number: int, iterations: int, at: Evaluation, impostors: Impostors,
    since: float,
) -> Record:  # fmt: skip
    n_triplets = len(impostors) * problem.targets.shape[1]
    return {
        "round": number,
        "iterations": iterations,
        "objective": at.loss / len(problem.rows) / problem.margin,
        "active_share": at.active / max(1, n_triplets),
        "impostors": len(impostors),
        "seconds": {"metric": perf_counter() - since},
    }


@dataclass(frozen=True)
class Preconditioner:
    """Coordinates of the factor in which targets differ about equally in every direction.

    L-BFGS needs several times fewer iterations in them if features are as unequal as pixels.
    """

    matrix: Floats
    """(S + ε)^−½, symmetric; S is the targets' scatter, scaled to a mean eigenvalue of 1."""

    @classmethod
    def of(cls, problem: Problem) -> Preconditioner:
        """The preconditioner of all rows and their targets."""
        none = Impostors(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
        ones = np.ones(problem.targets.shape, dtype=problem.rows.dtype)
        scatter = _scatter(problem, ones, none, np.empty(0, dtype=ones.dtype))
        values, vectors = np.linalg.eigh(scatter)
        spreads = np.maximum(values / (values.mean() or 1), 0) + ones.dtype.type(BALANCE_FLOOR)
        return cls((vectors / np.sqrt(spreads)) @ vectors.T)

    def into(self, components: Floats) -> Floats:
        """A factor in these coordinates."""
        x: Floats = np.linalg.solve(self.matrix, components.T).T
        return x

    def evaluate(self, problem: Problem, x: Floats, impostors: Impostors) -> Evaluation:
        """The loss of the factor ``x @ matrix``, with the gradient with respect to x."""
        found = evaluate(problem, x @ self.matrix, impostors)
        return replace(found, gradient=found.gradient @ self.matrix)


def _margin_limits(problem: Problem, points: Floats) -> Floats:
    """The squared distance to every row's farthest target, plus the margin."""
    reach: Floats = _target_distances(points, problem.targets, problem.n_threads).max(axis=1)
    reach += points.dtype.type(problem.margin)
    return reach


def _target_distances(points: Floats, targets: Ints, n_threads: int) -> Floats:
    """Squared distances from every point to each of its targets, (n, k)."""
    of = np.repeat(np.arange(len(points)), targets.shape[1])
    squared = _pair_distances(points, of, targets.ravel(), n_threads)
    return squared.reshape(targets.shape)


def _pair_distances(points: Floats, left: Ints, right: Ints, n_threads: int) -> Floats:
    """Squared distances of pairs of points by differences, exact even for close points."""
    squared = np.empty(len(left), dtype=points.dtype)

    def compute(block: slice) -> None:
        differences = points[left[block]]
        differences -= points[right[block]]
        squared[block] = squared_norms(differences)

    parallel_map(
        compute, list(row_blocks(len(left), GATHER_DIVISOR * points[:1].nbytes)), n_threads
    )
    return squared


def _scatter(
    problem: Problem, on_targets: Floats, impostors: Impostors, on_impostors: Floats
) -> Floats:
    """Σ wᵢⱼ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ over targets and impostors, in blocks of rows.

    It is G + Gᵀ with G = Xᵀ (D/2 − W) X, where D has the sums of the rows and columns of W.
    """
    inner, weights = problem.rows, _PairWeights(problem, on_targets, impostors, on_impostors)
    blocks = list(row_blocks(len(inner), 4 * inner.n_features * inner.dtype.itemsize))
    total = np.zeros((inner.n_features, inner.n_features), dtype=inner.dtype)

    def product(block: slice) -> Floats:
        centred = inner[problem.order[block]]
        half = weights.times_rows(block)
        half -= weights.halved_degrees[block, None] * centred
        return centred.T @ half

    # As many at a time as there are threads: each product is a d×d matrix.
    for first in range(0, len(blocks), problem.n_threads):
        some = blocks[first : first + problem.n_threads]
        for part in parallel_map(product, some, problem.n_threads):
            total += part
    scatter: Floats = -(total + total.T)
    return scatter


class _PairWeights:
    """W, with rows in the problem's order and columns in the caller's; never stored whole."""

    def __init__(
        self, problem: Problem, on_targets: Floats, impostors: Impostors, on_impostors: Floats
    ) -> None:
        self._problem, self._on_targets, self._on_impostors = problem, on_targets, on_impostors
        self._impostors, self._columns = impostors, problem.order.astype(np.int32)
        n_rows = len(on_targets)
        self._firsts = np.searchsorted(impostors.of, np.arange(n_rows + 1))
        sums = on_targets.sum(axis=1, dtype=np.float64)
        degrees = np.bincount(problem.targets.ravel(), on_targets.ravel(), n_rows)
        for pairs in row_blocks(len(impostors), HINGE_BYTES):
            sums += np.bincount(impostors.of[pairs], on_impostors[pairs], n_rows)
            degrees += np.bincount(impostors.rows[pairs], on_impostors[pairs], n_rows)
        self._sums = sums.astype(on_targets.dtype)
        self.halved_degrees = ((degrees + sums) / 2).astype(on_targets.dtype)

    def times_rows(self, block: slice) -> Floats:
        """A block of rows of W X, for X in inner coordinates: W times the centre is subtracted."""
        rows, coordinates = self._problem.rows.rows, self._problem.rows.coordinates
        targets, on_targets = self._problem.targets[block], self._on_targets[block]
        starts = np.arange(0, targets.size + 1, targets.shape[1])
        product: Floats = self._sparse(on_targets.ravel(), targets.ravel(), starts) @ rows
        starts = self._firsts[block.start : block.stop + 1]
        pairs = slice(int(starts[0]), int(starts[-1]))
        others = self._impostors.rows[pairs]
        product += self._sparse(self._on_impostors[pairs], others, starts - starts[0]) @ rows
        product -= self._sums[block, None] * coordinates.centre.astype(product.dtype)
        product /= product.dtype.type(coordinates.scale)
        return product

    def _sparse(self, values: Floats, columns: Ints, starts: Ints) -> csr_array:
        parts = (values, self._columns[columns], starts.astype(np.int32))
        return csr_array(parts, shape=(len(starts) - 1, len(self._columns)))
