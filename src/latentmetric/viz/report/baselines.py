"""What one would use instead: rivals that are tuned and fitted on the training rows alone.

The page says how many rows each was fitted on: time is bounded, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.evaluation.rivals import fit_rival

NEIGHBORS, LOGISTIC = "tuned k\N{NON-BREAKING HYPHEN}NN", "logistic regression"
SUPPORT = "tuned SVC"

RIVALS = {NEIGHBORS: "tuned-k-NN", LOGISTIC: "logistic-regression", SUPPORT: "SVC"}
"""What the page calls them, and what ``latentmetric.evaluation.rivals`` does."""

SUPPORT_CLASSES = 100
"""With more classes, there is no SVC: it compares every two of them, which would take minutes."""


@dataclass(frozen=True)
class Baseline:
    """A rival, and what it said about the queries."""

    name: str
    predicted: Ints
    n_rows: int
    """Training rows that it was fitted on."""
    chosen: str
    """The parameters that were chosen, in words."""


def fitted_baselines(
    rows: Floats, codes: Ints, queries: Floats, n_jobs: int | None, about_to: Callable[[str], None]
) -> list[Baseline]:
    """Every rival with its answers; its samples are the same whatever else the page shows."""
    found = []
    for name, rival_name in RIVALS.items():
        if name == SUPPORT and len(np.unique(codes)) > SUPPORT_CLASSES:
            continue
        about_to(name)
        rival = fit_rival(rival_name, rows, codes, n_jobs=n_jobs, bounded=True)
        found.append(Baseline(name, rival.pipeline.predict(queries), rival.n_rows, rival.chosen))
    return found
