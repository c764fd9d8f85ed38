"""Large margin nearest neighbours: pull each row's targets near, push impostors a margin beyond.

The loss is (1 − μ) Σ D²(i, j) + μ Σ [1 + D²(i, j) − D²(i, l)]₊ over rows i, their fixed target
neighbours j and all rows l of other classes. L-BFGS minimises it over the factor of the metric,
on the impostors that matter, which are searched again every few iterations.

Time O(n²·d) per search as blocked GEMM, O(n·d² + p·d) per iteration for p impostor pairs. Memory:
one copy of the rows and one under the metric, O(p), O(d²) and blocks; no n×n array.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.sparse import csr_array

from latentmetric.core.coordinates import InnerRows
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


@dataclass(frozen=True)
class Problem:
    """What stays fixed during a fit: rows by class, their targets, the margin and the weights."""

    rows: Floats
    """In inner coordinates, class by class."""
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
        class_starts = np.concatenate(([0], np.cumsum(np.bincount(codes))))
        points = rows[np.argsort(codes, kind="stable")]
        values, targets = own_nearest(points, class_starts, n_targets, n_threads)
        # A row alone in its class, or with too few others, is its own target at distance 0.
        targets = np.where(values > -np.inf, targets, np.arange(len(points))[:, None])
        problem = cls(points, class_starts, targets, 1.0, push, max_impostors, n_threads)
        margin = MARGIN_SHARE * float(problem.target_distances(points).mean(dtype=np.float64))
        return replace(problem, margin=margin or 1.0)

    @property
    def most_pairs(self) -> int:
        """The number of impostor pairs that may be kept from one descent to the next."""
        return KEPT_SEARCHES * self.max_impostors * len(self.rows)

    def points(self, components: Floats) -> Floats:
        """The rows under the metric with this factor."""
        points = np.empty((len(self.rows), len(components)), dtype=components.dtype)

        def map_block(block: slice) -> None:
            np.matmul(self.rows[block], components.T, out=points[block])

        blocks = row_blocks(len(points), 4 * self.rows[:1].nbytes)
        parallel_map(map_block, list(blocks), self.n_threads)
        return points

    def distances(self, points: Floats, left: Ints, right: Ints) -> Floats:
        """Squared distances of pairs of points by differences, exact even for close points."""
        squared = np.empty(len(left), dtype=points.dtype)

        def measure(block: slice) -> None:
            differences = points[left[block]]
            differences -= points[right[block]]
            squared[block] = squared_norms(differences)

        blocks = row_blocks(len(left), GATHER_DIVISOR * points[:1].nbytes)
        parallel_map(measure, list(blocks), self.n_threads)
        return squared

    def target_distances(self, points: Floats) -> Floats:
        """Squared distances from every point to each of its targets, (n, k)."""
        of = np.repeat(np.arange(len(points)), self.targets.shape[1])
        return self.distances(points, of, self.targets.ravel()).reshape(self.targets.shape)

    def margin_limits(self, points: Floats) -> Floats:
        """The squared distance to every row's farthest target, plus the margin."""
        limits: Floats = self.target_distances(points).max(axis=1)
        limits += points.dtype.type(self.margin)
        return limits

    def scatter(self, on_targets: Floats, impostors: Impostors, on_impostors: Floats) -> Floats:
        """Σ wᵢⱼ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ over targets and impostors with these weights.

        It is G + Gᵀ with G = Xᵀ (D/2 − W) X, where D has the sums of the rows and columns of W.
        """
        X, shape, k = self.rows, (len(self.rows),) * 2, self.targets.shape[1]
        starts = np.arange(0, self.targets.size + 1, k)
        pull = csr_array((on_targets.ravel(), self.targets.ravel(), starts), shape)
        starts = np.searchsorted(impostors.of, np.arange(len(X) + 1))
        push = csr_array((on_impostors, impostors.rows, starts), shape)
        sums = [part.sum(axis, dtype=np.float64) for part in (pull, push) for axis in (0, 1)]
        halves = (sum(sums) / 2).astype(X.dtype)[:, None]

        def product(block: slice) -> Floats:
            difference = np.asarray(pull[block] @ X)
            difference += np.asarray(push[block] @ X)
            difference -= halves[block] * X[block]
            part: Floats = X[block].T @ difference
            return part

        blocks = list(row_blocks(len(X), 4 * X[:1].nbytes))
        total = np.zeros((X.shape[1], X.shape[1]), dtype=X.dtype)
        # As many at a time as there are threads: each product is a d×d matrix.
        for first in range(0, len(blocks), self.n_threads):
            some = blocks[first : first + self.n_threads]
            for part in parallel_map(product, some, self.n_threads):
                total += part
        scatter: Floats = -(total + total.T)
        return scatter


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
        keys = [pairs.of.astype(np.int64) * n_rows + pairs.rows for pairs in (self, other)]
        of, rows = np.divmod(np.union1d(*keys), n_rows)
        return Impostors(of.astype(np.int32), rows.astype(np.int32))

    def near(self, problem: Problem, components: Floats) -> Impostors:
        """The pairs that a small change of the metric may bring within the margin.

        If they are more than ``problem.most_pairs``, only the nearest of each row.
        """
        points = problem.points(components)
        reach = problem.margin_limits(points) + problem.margin
        squared = problem.distances(points, self.of, self.rows)
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
    points = problem.points(components)
    references, k = References.of(points), min(problem.max_impostors, len(points))
    hide = hide_own_class(problem.class_starts, np.arange(len(points)))
    values, found = search(points, references, k, hide, problem.n_threads)
    limits = problem.margin_limits(points) - references.norms
    of, rank = np.nonzero(values < limits[:, None])
    return Impostors(of.astype(np.int32), found[of, rank].astype(np.int32))


def evaluate(problem: Problem, components: Floats, impostors: Impostors) -> Evaluation:
    """Loss and gradient; the gradient needs one sparse and one dense product with the rows."""
    points, of = problem.points(components), impostors.of
    to_targets = problem.target_distances(points)
    beyond = problem.margin - problem.distances(points, of, impostors.rows)
    del points
    hinged, counts = 0.0, np.zeros(to_targets.shape, dtype=np.intp)
    on_impostors = np.zeros(len(impostors), dtype=beyond.dtype)
    for rank in range(to_targets.shape[1]):
        hinges = beyond + to_targets[of, rank]
        active = hinges > 0
        hinged += float(hinges[active].sum(dtype=np.float64))
        counts[:, rank] = np.bincount(of[active], minlength=len(counts))
        on_impostors -= active
    pull, push = 1 - problem.push, problem.push
    loss = pull * float(to_targets.sum(dtype=np.float64)) + push * hinged
    on_targets = (pull + push * counts).astype(beyond.dtype)
    on_impostors *= push
    scatter = problem.scatter(on_targets, impostors, on_impostors)
    scatter *= scatter.dtype.type(2)
    return Evaluation(loss, int(counts.sum()), components @ scatter)


@dataclass(frozen=True)
class State:
    """The metric after some descents, and what the next one starts from."""

    components: Floats
    """The factor of the metric, for this margin."""
    margin: float
    at: Evaluation
    impostors: Impostors
    length: int
    """Iterations of the next descent."""
    record: Record
    finished: bool = False


def steps(problem: Problem, start: Floats, max_iter: int, tol: float) -> Steps[State]:
    """LMNN in steps: each is a descent that lowers the loss and a search for impostors."""
    preconditioner = _preconditioner(problem)

    def first(generator: np.random.Generator) -> State:
        since = perf_counter()
        impostors = find_impostors(problem, start)
        at = evaluate(problem, start, impostors)
        record = _record(problem, 0, 0, at, impostors, since)
        return State(start, problem.margin, at, impostors, FIRST_DESCENT, record, max_iter < 1)

    next_step = partial(
        _next_state, problem=problem, preconditioner=preconditioner, max_iter=max_iter, tol=tol
    )
    return Steps(first, next_step, max_iter, State)


def _next_state(
    state: State, generator: np.random.Generator, *, problem: Problem, preconditioner: Floats,
    max_iter: int, tol: float,
) -> State:  # fmt: skip
    """The state after the next descent that lowers the loss; if none does, the metric stays.

    A descent may meet impostors it did not know. If they outweigh its gain, it is undone and
    repeated with them, and the next descents are shorter.
    """
    since, before = perf_counter(), state.components
    at, impostors, length, done = (
        state.at,
        state.impostors,
        state.length,
        state.record["iterations"],
    )
    while done < max_iter:
        length = min(length, max_iter - done)
        moved, made = _descend(problem, preconditioner, before, at.loss, impostors, length)
        done += max(1, made)
        impostors = impostors.union(find_impostors(problem, moved), len(problem.rows))
        there = evaluate(problem, moved, impostors)
        if there.loss > at.loss:  # some new impostors may already have been active at the start
            at = evaluate(problem, before, impostors)
        if there.loss > at.loss:
            length = max(1, length // 2)
            continue
        gain, at = at.loss - there.loss, there
        too_many = len(impostors) > problem.most_pairs
        impostors = impostors.near(problem, moved)
        if too_many:
            at = evaluate(problem, moved, impostors)
        record = _record(problem, state.record["round"] + 1, done, at, impostors, since)
        return State(
            moved, problem.margin, at, impostors, min(2 * length, SEARCH_EVERY), record,
            done >= max_iter or gain <= tol * at.loss,
        )  # fmt: skip
    record = _record(problem, state.record["round"] + 1, done, at, impostors, since)
    return replace(state, at=at, impostors=impostors, record=record, finished=True)


def _descend(
    problem: Problem, preconditioner: Floats, components: Floats, loss: float,
    impostors: Impostors, n_iterations: int,
) -> tuple[Floats, int]:  # fmt: skip
    """Up to ``n_iterations`` of L-BFGS, fewer if they halve the loss; the factor, their number."""
    start = np.linalg.solve(preconditioner, components.T).T

    def factor(x: Floats) -> Floats:
        return x.reshape(start.shape).astype(components.dtype) @ preconditioner

    def evaluate_at(x: Floats) -> tuple[float, Floats]:
        at = evaluate(problem, factor(x), impostors)
        return at.loss, (at.gradient @ preconditioner).ravel()

    def stop_at_half(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun <= loss / 2:
            raise StopIteration

    found = minimize(
        evaluate_at, start.ravel(), jac=True, method="L-BFGS-B", callback=stop_at_half,
        options={"maxiter": n_iterations, "ftol": 0, "gtol": 0},
    )  # fmt: skip
    return (factor(found.x), found.nit) if found.nit else (components, 0)


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


def _preconditioner(problem: Problem) -> Floats:
    """(S + ε)^−½, symmetric; S is the targets' scatter, scaled to a mean eigenvalue of 1.

    L-BFGS moves x = components · (S + ε)^½, so that targets differ about equally in every
    direction. It needs several times fewer iterations if features are as unequal as pixels.
    """
    none = Impostors(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
    ones = np.ones(problem.targets.shape, dtype=problem.rows.dtype)
    scatter = problem.scatter(ones, none, np.empty(0, dtype=ones.dtype))
    values, vectors = np.linalg.eigh(scatter)
    spreads = np.maximum(values / (values.mean() or 1), 0) + ones.dtype.type(BALANCE_FLOOR)
    matrix: Floats = (vectors / np.sqrt(spreads)) @ vectors.T
    return matrix
