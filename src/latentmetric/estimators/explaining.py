"""Why a row gets its class: the references that voted, and rows of the fit that they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from latentmetric.characters import percent, shortened, visible
from latentmetric.core.examples import (
    Ids,
    NearestRows,
    are_missing,
    ids_of,
    nearer,
    nearest_rows,
    own_ids,
)
from latentmetric.core.model import FittedModel
from latentmetric.core.types import Floats, Ints
from latentmetric.estimators.training import TrainingData
from latentmetric.validation.labels import Labels

SHOWN_ROWS = 5
"""Rows that are shown as text."""

SHOWN_CHARACTERS = 40
"""Characters that are shown of a label or an id."""


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The references that decided on each row, the largest share of the vote first.

    Printed, it shows the first rows as text; ``to_dict`` gives columns for a data frame.

    Attributes
    ----------
    references : ndarray of shape (n_samples, n_voters)
        The numbers of the references, as in ``kneighbors``.
    labels : ndarray of shape (n_samples, n_voters)
        Their classes.
    distances : ndarray of shape (n_samples, n_voters)
        How far they are from the row.
    shares : ndarray of shape (n_samples, n_voters)
        Their shares of the vote.
    rest : ndarray of shape (n_samples,)
        The share of the vote that is not shown. If all voters are shown, it belongs to no reference
        in particular, and all classes share it equally: ``predict_proba`` of a class is the sum of
        the shares of its references and ``rest / n_classes``.
    row_ids : ndarray of shape (n_samples, n_voters, 3) or None
        Ids of rows that each reference stands for, None where there are fewer than three: of a
        latent example, the rows of its class nearest to it, nearest first; of a row, its own. None
        if no ids were given.

    Examples
    --------
    >>> from latentmetric import Euclidean
    >>> X, y, names = [[0.0], [1.0], [5.0]], ["a", "a", "b"], ["Ann", "Al", "Bob"]
    >>> Euclidean(weights="distance").fit(X, y, row_ids=names).explain([[4.0]])
    row 0
      63.16 % b: reference 2 at 1 | Bob
      21.05 % a: reference 1 at 3 | Al
      15.79 % a: reference 0 at 4 | Ann
    """

    references: Ints
    labels: Labels
    distances: Floats
    shares: Floats
    rest: Floats
    row_ids: Ids | None

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Columns for a data frame, with one line for each reference that voted on a row.

        Returns
        -------
        dict of str to ndarray of shape (n_samples * n_voters,)
            "row" and "rank", counted from 0 and 1, "reference", "label", "distance" and "share";
            with ids also "example_1" to "example_3", as text.
        """
        n_rows, k = self.shares.shape
        return {
            "row": np.repeat(np.arange(n_rows), k),
            "rank": np.tile(np.arange(1, k + 1), n_rows),
            "reference": self.references.ravel(),
            "label": self.labels.ravel(),
            "distance": self.distances.ravel(),
            "share": self.shares.ravel(),
            **example_columns(self.row_ids),
        }

    def __repr__(self) -> str:
        lines = []
        for row in range(min(SHOWN_ROWS, len(self.shares))):
            lines.append(f"row {row}")
            for rank, reference in enumerate(self.references[row].tolist()):
                ids = [] if self.row_ids is None else self.row_ids[row, rank].tolist()
                label, *examples = (
                    shortened(visible(text), SHOWN_CHARACTERS)
                    for text in (self.labels[row, rank], *ids)
                    if text is not None
                )
                share, distance = percent(self.shares[row, rank]), self.distances[row, rank]
                about = f"{share} {label}: reference {reference} at {distance:.4g}"
                lines.append(f"  {' | '.join([about, *examples])}")
        if len(self.shares) > SHOWN_ROWS:
            lines.append(f"… and {len(self.shares) - SHOWN_ROWS} more")
        return "\n".join(lines)


def explanation_of(found: Floats, model: FittedModel, classes: Labels) -> Explanation:
    """From references, distances and shares side by side."""
    references, distances, shares = np.split(found, 3, axis=1)
    indices = references.astype(np.intp)
    return Explanation(
        indices, classes[model.codes[indices]], distances.astype(model.dtype), shares,
        np.maximum(0, 1 - shares.sum(axis=1)),
        None if model.row_ids is None else model.row_ids[indices],
    )  # fmt: skip


def example_columns(row_ids: Ids | None) -> dict[str, np.ndarray[Any, Any]]:
    """A column for each example of a reference, as text; the last axis is that of the examples."""
    if row_ids is None:
        return {}
    flat = row_ids.reshape(-1, row_ids.shape[-1]).T
    texts = np.frompyfunc(str, 1, 1)(np.where(are_missing(flat), "", flat))
    return {f"example_{rank}": column for rank, column in enumerate(texts, 1)}


def with_row_ids(model: FittedModel, data: TrainingData, of_latents: bool) -> FittedModel:
    """The model of a fit with the ids of the rows that its references stand for."""
    named = data.named
    if named is None:
        return model
    if of_latents:
        of_rows = None if named.weights is None else named.weights.of_rows
        if of_rows is not None:  # rows of weight 0 are not in the fit
            named = replace(named, codes=np.where(of_rows > 0, named.codes, -1))
        blocks = named.engine.each_block(partial(_nearest_in_block, model), named)
        return replace(model, row_ids=ids_of(named.ids, reduce(nearer, blocks)[1]))
    voters = data.voters(all_rows=True)
    numbers = voters if data.order is None else np.sort(data.order[voters])
    return replace(model, row_ids=own_ids(named.ids, numbers))


def _nearest_in_block(model: FittedModel, rows: Floats, codes: Ints, start: int) -> NearestRows:
    return nearest_rows(model.references, model.codes, model.points(rows), codes, start)
