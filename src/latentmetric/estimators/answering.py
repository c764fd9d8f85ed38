"""What a fitted estimator answers to a block of checked rows: labels, shares, neighbours, reasons.

Every function takes a checked copy of the estimator, a block and the number of its first row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.model import Neighbors
from latentmetric.core.parallel import parallel_map, thread_count
from latentmetric.core.tuning import MANY_VOTERS, VOTING_BYTES
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import VOTES
from latentmetric.validation.labels import Labels

if TYPE_CHECKING:
    from latentmetric.estimators.base import ReferenceClassifier

    Fitted = ReferenceClassifier[Any]

VOTER_BYTES = 64
"""Of the distance, the index, the code and the vote of one neighbour, and what they come from."""


def embedded(fitted: Fitted, rows: Floats, start: int) -> Floats:
    """The block of ``transform``."""
    fitted.model_.check_reach(rows, start)
    return fitted.model_.embedded(rows)


def labels(
    fitted: Fitted,
    reject_below: float | None,
    reject_label: Any,
    dtype: Any,
    rows: Floats,
    start: int,
) -> Labels:
    """The block of ``predict``."""
    model = fitted.model_

    def named(codes: Ints, score: Callable[[], Floats]) -> Labels:
        voted = fitted.classes_[codes].astype(dtype, copy=False)
        if reject_below is not None:
            voted[~(score() >= float(reject_below))] = reject_label
        return voted

    if _all_vote(fitted):
        most = shares(fitted, rows, start).argmax(axis=1)
        return named(most, lambda: scores(fitted, rows, start))
    return _of_voters(
        fitted,
        lambda neighbors, some: named(
            model.vote(neighbors, fitted.weights), lambda: model.scores(neighbors, some)
        ),
        rows,
        start,
    )


def shares(fitted: Fitted, rows: Floats, start: int) -> Floats:
    """The block of ``predict_proba``."""
    model = fitted.model_
    if _all_vote(fitted):
        return _of_all(fitted, model.shares_of_all, rows, start)
    return _of_voters(
        fitted, lambda neighbors, _: model.shares(neighbors, fitted.weights), rows, start
    )


def reasons(fitted: Fitted, k: int, rows: Floats, start: int) -> Floats:
    """The block of ``explain``: references, distances and shares of the k strongest voters."""
    model = fitted.model_

    def side_by_side(voters: Neighbors, shares: Floats) -> Floats:
        distances = model.distances(voters.squared)
        return np.concatenate((voters.indices, distances, shares), axis=1, dtype=np.float64)

    if _all_vote(fitted):
        return _of_all(
            fitted, lambda some: side_by_side(*model.strongest_of_all(some, k)), rows, start
        )
    return _of_voters(
        fitted,
        lambda neighbors, _: side_by_side(*model.strongest(neighbors, fitted.weights, k)),
        rows,
        start,
    )


def scores(fitted: Fitted, rows: Floats, start: int) -> Floats:
    """The block of ``score_samples``."""
    return fitted.model_.scores(_nearest(fitted, 1, rows, start), rows)


def neighbors(fitted: Fitted, k: int, rows: Floats, start: int) -> Floats:
    """The block of ``kneighbors``: distances and indices, in float64, which can hold both."""
    found = _nearest(fitted, k, rows, start)
    distances = fitted.model_.distances(found.squared)
    return np.concatenate((distances, found.indices), axis=1, dtype=np.float64)


def _nearest(fitted: Fitted, k: int, rows: Floats, start: int) -> Neighbors:
    fitted.model_.check_reach(rows, start)
    return fitted.model_.nearest(rows, k, fitted.n_jobs)


def _all_vote(fitted: Fitted) -> bool:
    """Whether so many references vote, all of them, that sorting them takes longer."""
    model = fitted.model_
    n_voters = model.n_voters(fitted.weights, fitted.n_neighbors)
    by_kernel = VOTES[fitted.weights].needs_temperature and model.temperature > 0
    return by_kernel and model.is_metric and MANY_VOTERS <= n_voters == len(model.references)


def _of_all(fitted: Fitted, answer: Callable[[Floats], Floats], rows: Floats, start: int) -> Floats:
    """The answers of a vote of all references."""
    fitted.model_.check_reach(rows, start)
    blocks = _voting_blocks(len(rows), len(fitted.model_.references))
    found = parallel_map(lambda block: answer(rows[block]), blocks, thread_count(fitted.n_jobs))
    return np.concatenate(found)


def _of_voters(
    fitted: Fitted, answer: Callable[[Neighbors, Floats], Labels], rows: Floats, start: int
) -> Labels:
    """The answers of the nearest references that vote."""
    k = fitted.model_.n_voters(fitted.weights, fitted.n_neighbors)
    found = []
    for block in _voting_blocks(len(rows), k):
        some = rows[block]
        found.append(answer(_nearest(fitted, k, some, start + block.start), some))
    return np.concatenate(found)


def _voting_blocks(n_rows: int, n_voters: int) -> list[slice]:
    """So many rows at a time as memory allows; at least one block."""
    return list(row_blocks(n_rows, VOTER_BYTES * n_voters, VOTING_BYTES)) or [slice(0, 0)]
