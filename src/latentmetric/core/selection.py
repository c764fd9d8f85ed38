"""The k smallest entries of every row of a block, exactly; of equal entries the first are taken.

Up to a few, k passes of argmin are fastest, O(n·m·k). For more, one pass over groups of columns
gives a limit that few entries do not exceed, and only these are sorted: O(n·m + n·k·log k).
"""

from __future__ import annotations

import numpy as np

from latentmetric.core.types import Floats, Ints

FEW = 15
"""Up to this k, k passes of argmin are fastest in blocks of many rows."""

GROUPS_PER_ENTRY = 4
"""Groups of columns for each entry to find: more of them make the limit sharper."""

CROWDED = 2
"""Rows with more than this multiple of k entries within the limit are left to argmin."""


def every_row(block: Floats | Ints) -> Ints:
    """Row numbers that select, beside an array of columns, those columns of each row."""
    return np.arange(len(block))[:, None]


def repeated_argmin(block: Floats, k: int) -> tuple[Floats, Ints]:
    """The k smallest entries of every row and their columns, ascending. Overwrites ``block``."""
    columns = np.empty((len(block), k), dtype=np.intp)
    values = np.empty((len(block), k), dtype=block.dtype)
    rows = np.arange(len(block))
    for rank in range(k):
        if rank:
            block[rows, columns[:, rank - 1]] = np.inf
        columns[:, rank] = block.argmin(axis=1)
        values[:, rank] = block[rows, columns[:, rank]]
    return values, columns


def grouped_smallest(block: Floats, k: int) -> tuple[Floats, Ints]:
    """The same as ``repeated_argmin``, with fewer passes. May overwrite ``block``.

    The k smallest of the groups' minima are k entries of the row, so the largest of them is a
    limit that its k smallest entries do not exceed. Rows with many entries within the limit
    (equal ones, or infinities) take the passes.
    """
    n_groups = GROUPS_PER_ENTRY * k
    group_size = block.shape[1] // n_groups
    if group_size < 2:
        return repeated_argmin(block, k)
    grouped = block[:, : group_size * n_groups].reshape(len(block), group_size, n_groups)
    limits = np.partition(grouped.min(axis=1), k - 1, axis=1)[:, k - 1 : k]
    inside = block <= limits
    if np.count_nonzero(inside) > CROWDED * k * len(block):
        return repeated_argmin(block, k)
    entries = np.flatnonzero(inside)
    if len(block) == 1:
        columns = entries[block[0, entries].argsort(kind="stable")[:k]]
        return block[:, columns], columns[None]
    rows = entries // block.shape[1]
    counts = np.bincount(rows, minlength=len(block))
    if counts.max(initial=0) <= CROWDED * k:
        return _sorted_entries(block, entries, rows, counts, k)
    values = np.empty((len(block), k), dtype=block.dtype)
    columns = np.empty((len(block), k), dtype=np.intp)
    crowded = counts > CROWDED * k
    values[crowded], columns[crowded] = repeated_argmin(block[crowded], k)
    values[~crowded], columns[~crowded] = grouped_smallest(block[~crowded], k)
    return values, columns


def _sorted_entries(
    block: Floats, entries: Ints, rows: Ints, counts: Ints, k: int
) -> tuple[Floats, Ints]:
    """The k smallest of these entries of the flat block; each row has its count, at least k."""
    places = rows, np.arange(len(rows)) - (counts.cumsum() - counts)[rows]
    shape = len(block), int(counts.max(initial=k))
    values, found = np.full(shape, np.inf, block.dtype), np.zeros(shape, np.intp)
    values[places], found[places] = block.ravel()[entries], entries
    order = every_row(values), values.argsort(axis=1, kind="stable")[:, :k]
    return values[order], found[order] % block.shape[1]
