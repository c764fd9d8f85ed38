"""Rows of all processes that train together, so that they share latent examples and margins."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed


def n_processes() -> int:
    """How many processes train together; 1 without ``torch.distributed``."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1
    return int(distributed.get_world_size())


class _Gathered(torch.autograd.Function):
    """The rows of all processes, one after the other; gradients add up over the processes."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        everywhere = [torch.empty_like(rows) for _ in range(n_processes())]
        distributed.all_gather(everywhere, rows.contiguous())
        ctx.n_rows = len(rows)
        return torch.cat(everywhere)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous()
        distributed.all_reduce(total)
        return total[own_part(ctx.n_rows)]


_gathered: Any = _Gathered.apply
"""PyTorch's own annotation of it says nothing."""


def own_part(n_rows: int) -> slice:
    """Where the rows of this process are among those of all, if each has so many."""
    first = int(distributed.get_rank()) * n_rows
    return slice(first, first + n_rows)


def of_all(rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, slice]:
    """Rows and labels of all processes, and which of them are this one's.

    Processes with fewer rows than others add rows that are not a number, which do not count.
    """
    if n_processes() == 1:
        return rows, labels, slice(len(rows))
    most = torch.tensor(len(rows), device=rows.device)
    distributed.all_reduce(most, distributed.ReduceOp.MAX)
    missing = int(most) - len(rows)
    padding = (0, 0, 0, missing)
    padded = torch.nn.functional.pad(rows, padding, value=torch.nan)
    everyone = _gathered(padded)
    codes = _gathered(torch.nn.functional.pad(labels, padding[2:]))
    first = own_part(len(padded)).start
    return everyone, codes, slice(first, first + len(rows))


def mean_over_processes(number: Tensor) -> Tensor:
    """The mean of a number over all processes, without gradient."""
    if n_processes() == 1:
        return number
    total = number.detach().clone()
    distributed.all_reduce(total)
    return total / n_processes()
