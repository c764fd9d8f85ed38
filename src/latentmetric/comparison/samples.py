"""Some of the rows, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks


def sample_rows(
    X: Any, y: np.ndarray[Any, Any], n_rows: int, random_state: int = 0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """At most ``n_rows`` rows, drawn at random; rows in a file are read block by block.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or rows of a file
        Rows to draw from.
    y : array of shape (n_samples,)
        The label of each row.
    n_rows : int
        The largest number of rows to draw.
    random_state : int, default=0
        Seed of the draw.

    Returns
    -------
    rows : ndarray
        In the order of ``X``.
    labels : ndarray
    """
    if len(y) <= n_rows:
        return np.asarray(X), y
    drawn = np.random.default_rng(random_state).choice(len(y), n_rows, replace=False)
    drawn.sort()
    parts = []
    for block in row_blocks(len(y), X.shape[1] * X.dtype.itemsize):
        first, last = np.searchsorted(drawn, (block.start, block.stop))
        if first < last:
            parts.append(X[block][drawn[first:last] - block.start])
    return np.concatenate(parts), y[drawn]
