"""Latent examples that follow a network: the rows they stand for, and their spread.

Plain functions on tensors. None of them asks for the value of a tensor, so a loss compiles to one
graph and a GPU is never waited for. Classes are codes from 0 to C − 1, and latent examples are
sorted by class: ``latent_labels`` ascend. Time O(B·m·d) for B rows and m latent examples; memory
O(B·(m + C) + m·d). Where the rows of a batch vote, B² more distances.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

MEMORY = 20.0
"""The number of rows that a latent example stands for on average: earlier ones are forgotten."""

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


def nearest_of_class(
    rows: Tensor, labels: Tensor, latents: Tensor, latent_labels: Tensor
) -> Tensor:
    """The number of the nearest latent example of each row's class, (B,)."""
    squared = squared_distances(rows.detach(), latents.detach())
    return squared.masked_fill(latent_labels != labels[:, None], torch.inf).argmin(dim=1)


def refill_empty(state: State, rows: Tensor, labels: Tensor, latent_labels: Tensor) -> State:
    """Put empty latent examples at rows of their class, the first ones of the batch.

    A batch is in random order, so its first rows are random ones. Outliers, which wrong labels
    often are, are not preferred. Those for which the batch has no row stay empty.
    """
    empty, finite = state.counts < EMPTY, _is_finite(rows)
    before = empty.cumsum(dim=0) - empty.long()
    rank = before - before[torch.searchsorted(latent_labels, latent_labels)]
    arrived = torch.nn.functional.one_hot(labels, len(state.spreads)) * finite[:, None]
    row_rank = arrived.cumsum(dim=0).gather(1, labels[:, None]) - 1
    fits = finite[:, None] & (labels[:, None] == latent_labels) & (row_rank == rank)
    taken, row = empty & fits.any(dim=0), fits.int().argmax(dim=0)
    latents = torch.where(taken[:, None], rows.detach()[row], state.latents)
    return state._replace(latents=latents, counts=torch.where(taken, 0, state.counts))


def _is_finite(rows: Tensor) -> Tensor:
    """Which rows count: one whose distances are not finite must not stay in a mean for ever."""
    squared = rows.detach().square().sum(dim=1)
    counted: Tensor = squared < MAX_SQUARED_NORM * torch.finfo(rows.dtype).max
    return counted


def update_state(
    state: State, rows: Tensor, labels: Tensor, latent_labels: Tensor, memory: float = MEMORY
) -> tuple[State, Tensor]:
    """The state after these rows, and the latent example of each of them.

    A class forgets as its rows arrive, so that its latent examples stand for ``memory`` rows each
    in the mean, however rare the class is.
    """
    finite = _is_finite(rows)
    weights, rows = finite.to(rows.dtype), torch.where(finite[:, None], rows, 0)
    own = nearest_of_class(rows, labels, state.latents, latent_labels)
    n_classes = len(state.spreads)
    sizes = group_sums(torch.ones_like(state.counts), latent_labels, n_classes)
    forgotten = torch.exp(-group_sums(weights, labels, n_classes) / (memory * sizes))
    kept = state.counts * forgotten[latent_labels]
    counts = kept + group_sums(weights, own, len(kept))
    before, after = (group_sums(each, latent_labels, n_classes) for each in (kept, counts))
    squared = group_sums(weights * distances_to(rows, state.latents[own]), labels, n_classes)
    spreads = (before * state.spreads + squared) / after.clamp(min=TINY)
    return State(state.latents, counts, spreads), own


def group_sums(values: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """The sum of the values of each group."""
    zeros = values.new_zeros((n_groups, *values.shape[1:]))
    return zeros.index_add(0, groups, values)


def class_logits(log_votes: Tensor, state: State, latent_labels: Tensor) -> Tensor:
    """log Σ exp of the votes of the latent examples of each class, (B, C).

    Latent examples that have not stood for a row yet have no vote, unless none has.
    """
    known = state.counts > 0
    known = known | ~known.any()
    log_votes = log_votes.masked_fill(~known, -torch.inf)
    return group_logsumexp(log_votes, latent_labels, len(state.spreads))


def batch_logits(rows: Tensor, labels: Tensor, n_classes: int, temperature: Tensor) -> Tensor:
    """log Σ exp(−D²/T) over the other rows of each class, (B, C); −inf where there are none."""
    finite = _is_finite(rows)
    squared = squared_distances(rows, torch.where(finite[:, None], rows, 0))
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    log_weights = -squared.clamp(min=0) / temperature
    return group_logsumexp(log_weights.masked_fill(itself | ~finite, -torch.inf), labels, n_classes)


def group_logsumexp(values: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """log Σ exp over the columns of each group, (B, n_groups); −inf where there are none.

    The largest term of each sum is taken out before, so that a class far away keeps its gradient.
    """
    columns = groups.expand(len(values), -1)
    nothing = values.new_full((len(values), n_groups), -torch.inf)
    largest = nothing.scatter_reduce(1, columns, values.detach(), "amax")
    shift = torch.where(largest > -torch.inf, largest, 0)
    terms = torch.exp(values - shift.gather(1, columns))
    sums = torch.zeros_like(shift).scatter_add(1, columns, terms)
    found: Tensor = sums.clamp(min=TINY).log() + shift
    return found.masked_fill(largest == -torch.inf, -torch.inf)
