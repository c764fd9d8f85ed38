"""Latent examples that follow a network: the rows they stand for, their means, their spread.

Plain functions on tensors. None of them asks for the value of a tensor, so a loss compiles to one
graph and a GPU is never waited for. Classes are codes from 0 on, and latent examples are sorted by
class. Time O(B·m·d) for B rows and m latent examples; memory O(B·(m + C·K) + m·d), where K is the
most latent examples of a class. Where the rows of a batch vote, B² more distances.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from latentmetric.core.likelihood import ALONE

EMPTY = 0.5
"""A latent example that stands for fewer rows than this is empty: a row takes its place."""

MAX_SQUARED_NORM = 1e-6
"""The largest squared length of a row, as a share of the largest number: sums must be finite."""

TINY = 1e-30
"""A bound for divisions by numbers of rows."""

RARE = 1e-3
"""The count of a latent example that stands for no row, but has a vote."""

LATENT_RATE = 1e-2
"""The learning rate of latent examples, unless another one is given."""


class Layout(NamedTuple):
    """Which latent examples belong to which class."""

    of_latents: Tensor
    """(m,): the class of each latent example."""
    members: Tensor
    """(C, K): the latent examples of each class; a class with fewer repeats its first."""
    exists: Tensor
    """(C, K): False for the repeated ones."""

    @classmethod
    def of(cls, sizes: Tensor) -> Layout:
        """The layout of classes with so many latent examples each."""
        starts = sizes.cumsum(0) - sizes
        columns = torch.arange(int(sizes.max()), device=sizes.device)
        exists = columns < sizes[:, None]
        members = starts[:, None] + torch.where(exists, columns, 0)
        classes = torch.arange(len(sizes), device=sizes.device)
        return cls(classes.repeat_interleave(sizes), members, exists)


class State(NamedTuple):
    """What a loss knows of the rows it has seen."""

    latents: Tensor
    """(m, d)."""
    counts: Tensor
    """(m,): rows of each latent example; those seen long ago count less."""
    spreads: Tensor
    """(C,): the running mean E[D²(x, z)] of each class."""


def squared_distances(rows: Tensor, points: Tensor) -> Tensor:
    """D² of every row and every point, (B, m); rounding may leave it a little below 0."""
    centre = points.detach().mean(dim=0)
    rows, points = rows - centre, points - centre
    squared: Tensor = rows.square().sum(dim=1, keepdim=True) + points.square().sum(dim=1)
    return squared - 2 * (rows @ points.T)


def distances_to(rows: Tensor, points: Tensor) -> Tensor:
    """D² of each row and its own point: exactly 0 if they are equal."""
    squared: Tensor = (rows - points).square().sum(dim=-1)
    return squared


def nearest_of_class(rows: Tensor, labels: Tensor, latents: Tensor, layout: Layout) -> Tensor:
    """The number of the nearest latent example of each row's class, (B,)."""
    squared = squared_distances(rows.detach(), latents.detach())
    members = layout.members[labels]
    of_class = squared.gather(1, members).masked_fill(~layout.exists[labels], torch.inf)
    nearest: Tensor = members.gather(1, of_class.argmin(dim=1, keepdim=True))
    return nearest[:, 0]


def refill_empty(state: State, rows: Tensor, labels: Tensor, layout: Layout) -> State:
    """Put empty latent examples at rows of their class, the first ones of the batch.

    A batch is in random order, so its first rows are random ones. Outliers, which wrong labels
    often are, are not preferred. Those for which the batch has no row stay empty.
    """
    n_classes, most = layout.members.shape
    empty = state.counts < EMPTY
    position = _order_within(empty, layout)
    finite = _is_finite(rows)
    arrived = torch.nn.functional.one_hot(labels, n_classes) * finite[:, None]
    rank = arrived.cumsum(dim=0).gather(1, labels[:, None])[:, 0] - 1
    # Rows beyond the most that a class can need, and rows that are not finite, share a column
    # that is not read.
    column = torch.where(finite, rank.clamp(max=most), most)
    table = torch.full((n_classes, most + 1), -1, dtype=labels.dtype, device=labels.device)
    numbers = torch.arange(len(rows), dtype=labels.dtype, device=labels.device)
    table = table.index_put((labels, column), numbers)
    row = table[layout.of_latents, position]
    taken = empty & (row >= 0)
    latents = torch.where(taken[:, None], rows.detach()[row.clamp(min=0)], state.latents)
    return state._replace(latents=latents, counts=torch.where(taken, 0, state.counts))


def _order_within(chosen: Tensor, layout: Layout) -> Tensor:
    """How many latent examples before each one in its class are chosen, (m,)."""
    before = chosen.cumsum(dim=0) - chosen.to(torch.int64)
    first = layout.members[:, 0]
    return before - before[first][layout.of_latents]


def _is_finite(rows: Tensor) -> Tensor:
    """Which rows count: one whose distances are not finite must not stay in a mean for ever."""
    squared = rows.detach().square().sum(dim=1)
    counted: Tensor = squared < MAX_SQUARED_NORM * torch.finfo(rows.dtype).max
    return counted


def update_state(
    state: State, rows: Tensor, labels: Tensor, layout: Layout, memory: float, moves: bool
) -> tuple[State, Tensor]:
    """The state after these rows, and the latent example of each of them.

    A class forgets as its rows arrive, so that its latent examples stand for ``memory`` rows each
    in the mean, however rare the class is. With ``moves``, they are the means of these rows; the
    result is differentiable in the rows.
    """
    finite = _is_finite(rows)
    weights, rows = finite.to(rows.dtype), torch.where(finite[:, None], rows, 0)
    own = nearest_of_class(rows, labels, state.latents, layout)
    sizes = layout.exists.sum(dim=1)
    forgotten = torch.exp(-group_sums(weights, labels, len(sizes)) / (memory * sizes))
    kept = state.counts * forgotten[layout.of_latents]
    counts = kept + group_sums(weights, own, len(kept))
    latents = state.latents
    if moves:
        sums = kept[:, None] * latents + group_sums(rows, own, len(kept))
        means = sums / counts.clamp(min=TINY)[:, None]
        latents = torch.where(counts[:, None] > 0, means, latents)
    before, after = (
        group_sums(numbers, layout.of_latents, len(sizes)) for numbers in (kept, counts)
    )
    squared = group_sums(weights * distances_to(rows, latents[own]), labels, len(sizes))
    spreads = (before * state.spreads + squared) / after.clamp(min=TINY)
    return State(latents, counts, spreads), own


def group_sums(values: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """The sum of the values of each group."""
    zeros = values.new_zeros((n_groups, *values.shape[1:]))
    return zeros.index_add(0, groups, values)


def stretches(counts: Tensor) -> Tensor:
    """(c/(c − 1))² for each latent example of c rows: see ``core.likelihood.stretches``.

    Counts are not whole here; no stretch exceeds that of a row alone.
    """
    others = (counts - 1).clamp(min=TINY)
    stretched: Tensor = (counts / others).square().clamp(max=ALONE)
    return torch.where(counts > 1, stretched, ALONE)


def class_logits(squared: Tensor, state: State, layout: Layout, temperature: Tensor) -> Tensor:
    """log Σ exp(−D²/T) over the latent examples of each class, (B, C).

    Latent examples that have not stood for a row yet have no vote, unless none has.
    """
    known = state.counts > 0
    known = known | ~known.any()
    log_weights = (-squared / temperature).masked_fill(~known, -torch.inf)
    by_class = log_weights[:, layout.members].masked_fill(~layout.exists, -torch.inf)
    return torch.logsumexp(by_class, dim=2)


def batch_logits(rows: Tensor, labels: Tensor, n_classes: int, temperature: Tensor) -> Tensor:
    """log Σ exp(−D²/T) over the other rows of each class, (B, C); −inf where there are none.

    The largest term of each sum is taken out before, so that a class far away keeps its gradient.
    """
    finite = _is_finite(rows)
    squared = squared_distances(rows, torch.where(finite[:, None], rows, 0))
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    voters = finite & ~itself
    log_weights = (-squared.clamp(min=0) / temperature).masked_fill(~voters, -torch.inf)
    classes = labels.expand(len(rows), -1)
    empty = rows.new_full((len(rows), n_classes), -torch.inf)
    largest = empty.scatter_reduce(1, classes, log_weights.detach(), "amax")
    shift = torch.where(largest > -torch.inf, largest, 0)
    terms = torch.exp(log_weights - shift.gather(1, classes))
    sums = torch.zeros_like(shift).scatter_add(1, classes, terms)
    found: Tensor = sums.clamp(min=TINY).log() + shift
    return found.masked_fill(largest == -torch.inf, -torch.inf)
