"""What an error hides where one class has most rows: always saying that class may be as good."""

from __future__ import annotations

from typing import Any

import numpy as np


def majority(labels: Any) -> tuple[Any, float]:
    """The most frequent label, and the error of always saying it."""
    classes, counts = np.unique(labels, return_counts=True)
    return classes.tolist()[counts.argmax()], 1 - float(counts.max() / counts.sum())
