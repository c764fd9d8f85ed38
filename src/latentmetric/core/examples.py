"""Which rows a reference stands for: itself, or the rows of its class nearest to a latent example.

A model keeps the ids of at most ``EXAMPLES`` rows for each reference. To find them takes time
O(n·m/C·r) for n rows, m references of C classes and a metric of rank r; memory O(m), beside a block
of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.distances import References, k_nearest
from latentmetric.core.types import Bools, Floats, Ints

EXAMPLES = 3
"""Rows of a reference whose ids are kept."""

Ids = np.ndarray[Any, Any]
"""Ids of rows, strings or integers; None where there is none."""

NearestRows = tuple[Floats, Ints]
"""Squared distances and numbers of the rows nearest to each reference; −1 where there are none."""


def nearest_rows(
    references: References, of_references: Ints, points: Floats, codes: Ints, start: int = 0
) -> NearestRows:
    """The rows nearest to each reference of their class; ``start`` is the number of the first row.

    ``points`` are the rows under the metric. Rows with the code −1 are left out.
    """
    shape = len(references), EXAMPLES
    squared, numbers = np.full(shape, np.inf), np.full(shape, -1, dtype=np.intp)
    for code in np.unique(codes[codes >= 0]):
        own, members = np.flatnonzero(codes == code), np.flatnonzero(of_references == code)
        if len(members):
            k, rows = min(EXAMPLES, len(own)), References.of(points[own])
            squared[members, :k], found = k_nearest(references.rows[members], rows, k)
            numbers[members, :k] = start + own[found]
    return squared, numbers


def nearer(some: NearestRows, others: NearestRows) -> NearestRows:
    """The nearest rows among those of two blocks; on ties, those of the first."""
    squared, numbers = (
        np.concatenate(pair, axis=1) for pair in zip(some, others, strict=True)
    )  # fmt: skip
    order = squared.argsort(axis=1, kind="stable")[:, :EXAMPLES]
    return np.take_along_axis(squared, order, axis=1), np.take_along_axis(numbers, order, axis=1)


def ids_of(row_ids: Ids | None, numbers: Ints) -> Ids:
    """The ids of rows by their numbers; None for the number −1, or if there are no ids."""
    found: Ids = np.full(numbers.shape, None, dtype=object)
    if row_ids is not None:
        found[numbers >= 0] = row_ids[numbers[numbers >= 0]]
    return found


def own_ids(row_ids: Ids | None, rows: Ints) -> Ids:
    """Ids of references that are rows, by their numbers: each is its own only example."""
    numbers = np.full((len(rows), EXAMPLES), -1, dtype=np.intp)
    numbers[:, 0] = rows
    return ids_of(row_ids, numbers)


def joined_ids(known: Ids | None, n_known: int, more: Ids | None, n_more: int) -> Ids | None:
    """Ids of references and of more references, which are rows; None if there are none."""
    if known is None and more is None:
        return None
    if known is None:
        known = own_ids(None, np.arange(n_known))
    return np.concatenate((known, own_ids(more, np.arange(n_more))))


def filled_ids(known: Ids | None, others: Ids) -> Ids:
    """The ids that references have, and others for those that have none."""
    if known is None:
        return others
    return np.where(are_missing(known).all(axis=1, keepdims=True), others, known)


def are_missing(ids: Ids) -> Bools:
    """Where there is no id."""
    missing: Any = None
    are: Bools = np.equal(ids, missing)
    return are
