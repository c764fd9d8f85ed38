"""Rows whose labels the model finds least likely: labels to look at, in a table.

Training rows are left out of their own latent example. Time O(n·m·r) for at most ``MAX_JUDGED``
rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentmetric.core.model import FittedModel
from latentmetric.core.votes import n_voters
from latentmetric.estimators.label_quality import scores_of_labels
from latentmetric.evaluation.sampling import sample
from latentmetric.viz.report.rows import LabelledRows

MAX_JUDGED = 100_000
"""Labels that are judged at most; of more training rows, a sample by class."""

LISTED = 30
"""Rows in the table."""

UNLIKELY = 0.05
"""A label with a lower score is doubtful."""

CUT_OFF = f"{100 * UNLIKELY:g}\N{NO-BREAK SPACE}%"
"""The same in words."""


@dataclass(frozen=True)
class Doubt:
    """A row whose label is unlikely."""

    row: int
    training: bool
    """Whether it is one of ``originals``, and not of ``given``."""
    code: int
    score: float
    likelier: int
    """The class that the model would give the row."""
    share: float
    """That class's share of the vote."""


@dataclass(frozen=True)
class Doubts:
    """What was judged and what was found."""

    n_judged: int
    n_unlikely: int
    worst: list[Doubt]


def find_doubts(
    estimator: Any, voting: FittedModel, given: LabelledRows, originals: LabelledRows,
    has_training_rows: bool, generator: np.random.Generator,
) -> Doubts:  # fmt: skip
    """Judge the labels of training rows and of test rows; ``voting`` holds the latent examples."""
    pools = [(originals, True)] + ([(given, False)] if has_training_rows else [])
    n_judged, n_unlikely, found = 0, 0, []
    for rows, training in pools:
        judged = np.sort(sample(rows.codes, MAX_JUDGED, generator))
        scores = scores_of_labels(estimator, rows.rows[judged], rows.codes[judged], training)
        n_judged += len(judged)
        n_unlikely += int((scores < UNLIKELY).sum())
        worst = np.argsort(scores, kind="stable")[:LISTED]
        found += [
            (float(scores[place]), training, int(judged[place]))
            for place in worst
            if scores[place] < UNLIKELY
        ]
    listed = [
        _doubt(estimator, voting, originals if training else given, row, training, score)
        for score, training, row in sorted(found)[:LISTED]
    ]
    return Doubts(n_judged, n_unlikely, listed)


def _doubt(
    estimator: Any, voting: FittedModel, rows: LabelledRows, row: int, training: bool, score: float
) -> Doubt:
    k = n_voters(estimator.weights, estimator.n_neighbors, len(voting.references))
    shares = voting.shares(voting.nearest(rows.rows[[row]], k), estimator.weights)[0]
    shares[rows.codes[row]] = 0
    likelier = int(shares.argmax())
    return Doubt(row, training, int(rows.codes[row]), score, likelier, float(shares[likelier]))
