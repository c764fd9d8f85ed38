"""The random draws of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def generator_from(random_state: Any) -> np.random.Generator:
    """A generator seeded from anything that scikit-learn accepts as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint32))
