"""Rows of all processes that train together, so that they share latent examples and margins."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed
from torch.distributed.nn import functional


def gather_batches(rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, slice]:
    """Rows and labels of all processes, and which of them are this one's.

    Processes with fewer rows than others add rows that are not a number, which do not count.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return rows, labels, slice(len(rows))
    most = torch.tensor(len(rows), device=rows.device)
    distributed.all_reduce(most, distributed.ReduceOp.MAX)
    padding = (0, int(most) - len(rows))
    all_gather: Any = functional.all_gather  # PyTorch does not annotate it
    padded = torch.nn.functional.pad(rows, (0, 0, *padding), value=torch.nan)
    everyone = torch.cat(all_gather(padded))  # gradients add up over the processes
    codes = torch.cat(all_gather(torch.nn.functional.pad(labels, padding)))
    first = distributed.get_rank() * int(most)
    return everyone, codes, slice(first, first + len(rows))
