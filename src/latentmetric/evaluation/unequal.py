"""What an error hides where one class has most rows: always saying that class may be as good."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from latentmetric.core.types import Bools, Floats

UNEQUAL = 1.5
"""Classes are unequal if the largest has more than this many times the rows of an equal share."""


def are_unequal(labels: Any) -> bool:
    """Whether one class has so many rows that the error alone says little."""
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.max() * len(counts) > UNEQUAL * counts.sum())


def majority(labels: Any) -> tuple[Any, float]:
    """The most frequent label, and the error of always saying it."""
    classes, counts = np.unique(labels, return_counts=True)
    return classes.tolist()[counts.argmax()], 1 - float(counts.max() / counts.sum())


def second_class_scores(classifier: Any, X: Any) -> Floats | None:
    """How likely each row is to be of the second of two classes; None if there are not two."""
    if len(classifier.classes_) != 2:
        return None
    if hasattr(classifier, "predict_proba"):
        shares: Floats = classifier.predict_proba(X)
        return shares[:, 1]
    scores: Floats = classifier.decision_function(X)
    return scores


def balanced_scores(true: Any, right: Bools, scores: Floats | None = None) -> dict[str, float]:
    """Balanced accuracy and, of two classes with scores, AUC: each class counts the same."""
    classes = np.unique(true)
    found = {"balanced_accuracy": float(np.mean([right[true == one].mean() for one in classes]))}
    if scores is not None and len(classes) == 2:
        found["auc"] = float(roc_auc_score(true == classes[1], scores))
    return found
