"""Between losses and estimators: tensors and codes on one side, arrays and labels on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from latentmetric.estimators.assembled import LearnedLatents, assembled
from latentmetric.validation.labels import checked_labels


def as_array(values: Any) -> Any:
    """A tensor as an array, wherever it is; anything else as it is."""
    if not isinstance(values, Tensor):
        return values
    values = values.detach().cpu()
    return (
        values.float() if values.is_floating_point() and values.itemsize < 4 else values
    ).numpy()


def estimator_of(
    learned: LearnedLatents, features: Any, labels: Any, classes: Sequence[Any] | None
) -> Any:
    """A fitted MaPML; labels are codes, and ``classes`` are their names."""
    n_classes = len(learned.sizes)
    codes = checked_labels(as_array(labels), "labels")
    if codes.dtype.kind not in "iu":
        raise TypeError(f"labels must be integer codes of classes, got {codes.dtype}")
    if len(codes) and not 0 <= codes.min() <= codes.max() < n_classes:
        raise ValueError(
            f"labels are from {codes.min()} to {codes.max()}, but this loss was made for "
            f"{n_classes} classes, with codes from 0 to {n_classes - 1}"
        )
    names = np.arange(n_classes) if classes is None else checked_labels(classes, "classes")
    every, positions = np.unique(names, return_inverse=True)
    if not len(names) == len(every) == n_classes:
        raise ValueError(
            f"classes has {len(names)} labels, {len(every)} of them different, but this loss was "
            f"made for {n_classes} classes; pass one label for each code"
        )
    return assembled(learned.reordered(positions), as_array(features), names[codes])
