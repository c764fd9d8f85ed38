"""The rules for the number and names of features, for rows that scikit-learn cannot check.

Arrays and frames in memory go through scikit-learn's own check; rows in files and on clusters are
checked here by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def remember_features(estimator: Any, n_features: int, names: Sequence[str] | None) -> None:
    """Set the estimator's feature attributes, as scikit-learn's ``validate_data`` does."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def is_plain_table(X: Any, estimator: Any) -> bool:
    """Whether queries obviously pass scikit-learn's check, which would return them unchanged.

    The check takes as long as the search of one row. An array of numbers with a row or more and
    the right number of features passes it, if it needs no feature names.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.kind in "biuf"
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def check_features(estimator: Any, n_features: int, names: Sequence[str] | None) -> None:
    """Raise unless queries have the features that the estimator was fitted with."""
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    known = getattr(estimator, "feature_names_in_", None)
    if names is None or known is None or list(names) == known.tolist():
        return
    place = next(place for place, name in enumerate(known.tolist()) if names[place] != name)
    raise ValueError(
        "The feature names should match those that were passed during fit: feature "
        f"{place} (counted from 0) is {names[place]!r}, but was {known[place]!r}"
    )
