"""Rows without labels: after a fit on the labelled ones, they join the latent examples.

Each row joins the class that it votes for, with the probability of that class as its weight, and
moves the latent examples as a labelled row would. Neither the metric nor the margins change: what
nobody has labelled must not say how wide a class is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.types import Bools, Floats
from latentmetric.engines.dispatch import check_in_memory
from latentmetric.estimators import answering
from latentmetric.estimators.online import grown, rescale_temperature
from latentmetric.validation.labels import Labels, checked_labels, kind_of
from latentmetric.validation.weights import checked_weights

JOINED_BYTES = 256 * 2**20
"""Bytes of unlabelled rows that join at a time."""

N_VOTES = 2
"""How often unlabelled rows vote and join; a third time gains nothing."""

Attributes = dict[str, Any]


def split_labels(estimator: Any, y: Any, sample_weight: Any) -> tuple[Labels, Floats, Floats]:
    """Labels to learn from, the weights of the labelled rows, and those of the other rows.

    Rows whose label is the mark get a label of others, and the weight 0 among the labelled ones.
    Raise if they cannot join a latent example.
    """
    mark = estimator.unlabelled
    if estimator.reference != "latent":
        raise ValueError(
            f"rows without labels join latent examples, but with reference={estimator.reference!r} "
            'other rows vote; set reference="latent", or unlabelled=None'
        )
    caller = f"{type(estimator).__name__}.fit with unlabelled={mark!r}"
    check_in_memory(caller, "y.compute()", y=y)
    labels = checked_labels(y)
    own, kind = kind_of(np.array([mark])), kind_of(labels)
    if kind != own and kind in ("text", "numbers", "Booleans"):
        raise TypeError(
            f"unlabelled={mark!r} must be of the same kind as the labels, which are {kind}, such "
            f"as {labels.tolist()[0]!r}"
        )
    marked = are_marked(labels, mark)
    if marked.all():
        raise ValueError(
            f"all {len(labels)} labels are {mark!r}, which marks rows without a label; rows of at "
            "least 2 classes need one"
        )
    weights: Floats = np.ones(len(labels))
    if sample_weight is not None:
        weights = checked_weights(sample_weight, len(labels))
    learned = labels.copy()
    learned[marked] = labels[np.argmin(marked)]
    return learned, np.where(marked, 0.0, weights), np.where(marked, weights, 0.0)


def are_marked(labels: Labels, mark: Any) -> Bools:
    """Which labels are the mark of rows without one."""
    marked: Bools = np.broadcast_to(labels == mark, labels.shape)
    return marked


def add_unlabelled(
    estimator: Any, attributes: Attributes, rows: Any, weights: Floats
) -> Attributes:
    """The fitted attributes of MaPML after the rows with a weight above 0 have joined.

    They vote, join, vote once more among the latent examples that they have moved, and join again.
    ``estimator`` has the parameters of the fit.
    """
    numbers = np.flatnonzero(weights)
    voting = _with(estimator, attributes)
    row_bytes = rows.shape[1] * rows.dtype.itemsize
    for _ in range(N_VOTES):
        joining = _with(estimator, attributes)
        for block in row_blocks(len(numbers), row_bytes, JOINED_BYTES):
            own = numbers[block]
            some = rows[own]
            shares = answering.shares(voting, some, 0)
            posterior = shares.max(axis=1) * weights[own]
            after = grown(joining, some, shares.argmax(axis=1), joining.classes_, posterior)
            model = rescale_temperature(after["model_"], joining.model_)
            vars(joining).update(after | {"margins_": joining.margins_, "model_": model})
        voting = joining
    return {name: getattr(voting, name) for name in attributes}


def _with(estimator: Any, attributes: Attributes) -> Any:
    """A copy of the estimator with these attributes."""
    copied = object.__new__(type(estimator))
    vars(copied).update(vars(estimator) | attributes)
    return copied
