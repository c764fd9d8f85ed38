"""The rules for ids of rows: strings or integers, one for each row."""

from __future__ import annotations

from typing import Any

import numpy as np


def checked_ids(row_ids: Any, n_rows: int) -> np.ndarray[Any, Any] | None:
    """Ids as a 1d array; None if there are none. An id that is None means that a row has none."""
    if row_ids is None:
        return None
    # As text, an array would be as wide as the longest one.
    ids = row_ids if isinstance(row_ids, np.ndarray) else np.asarray(row_ids, dtype=object)
    if ids.shape != (n_rows,):
        raise ValueError(
            f"row_ids must hold one id for each row: X has {n_rows} rows, but row_ids has the "
            f"shape {ids.shape}"
        )
    if ids.dtype.kind in "iuU":
        return ids
    wrong: Any = np.arange(n_rows)
    if ids.dtype.kind == "O":
        wrong = [
            row for row, one in enumerate(ids.tolist())
            if isinstance(one, bool) or not isinstance(one, str | int | np.integer | None)
        ]  # fmt: skip
    if len(wrong):
        raise TypeError(
            f"row_ids must be strings or integers, but {len(wrong)} of {n_rows} are not, such as "
            f"{ids[wrong[0]]!r:.60} for row {wrong[0]} (counted from 0); convert them with str"
        )
    return ids
