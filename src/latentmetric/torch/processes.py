"""Rows of all processes that train together, so that they share latent examples and margins."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed


class _Gathered(torch.autograd.Function):
    """The rows of all processes, one after the other; gradients add up over the processes."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        everywhere = [torch.empty_like(rows) for _ in range(distributed.get_world_size())]
        distributed.all_gather(everywhere, rows.contiguous())
        return torch.cat(everywhere)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous()
        distributed.all_reduce(total)
        return total.chunk(distributed.get_world_size())[distributed.get_rank()]


_gathered: Any = _Gathered.apply
"""PyTorch's own annotation of it says nothing."""


def gather_batches(rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, slice]:
    """Rows and labels of all processes, and which of them are this one's.

    Processes with fewer rows than others add rows that are not a number, which do not count.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return rows, labels, slice(len(rows))
    most = torch.tensor(len(rows), device=rows.device)
    distributed.all_reduce(most, distributed.ReduceOp.MAX)
    padding = (0, int(most) - len(rows))
    everyone = _gathered(torch.nn.functional.pad(rows, (0, 0, *padding), value=torch.nan))
    codes = _gathered(torch.nn.functional.pad(labels, padding))
    first = distributed.get_rank() * int(most)
    return everyone, codes, slice(first, first + len(rows))
