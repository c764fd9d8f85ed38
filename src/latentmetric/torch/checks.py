"""Refuse wrong batches before any work is done, with messages that say what was passed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from latentmetric.validation.parameters import Integer


def check_counts(latents_per_class: Any, n_classes: int) -> list[int]:
    """The number of latent examples of each class."""
    if np.ndim(latents_per_class) == 0:
        latents_per_class = [latents_per_class] * n_classes
    if len(latents_per_class) != n_classes:
        raise ValueError(
            f"latents_per_class has {len(latents_per_class)} numbers, but there are {n_classes} "
            "classes; pass one number for each class, or one for all"
        )
    return [
        Integer(1).check(f"latents_per_class of class {code}", count)
        for code, count in enumerate(latents_per_class)
    ]


def check_rows(embeddings: Tensor, n_features: int) -> None:
    """Raise unless these are embeddings of this length."""
    is_tensor = isinstance(embeddings, Tensor)
    if not is_tensor or not embeddings.is_floating_point():
        given = embeddings.dtype if is_tensor else type(embeddings).__name__
        raise TypeError(f"embeddings must be a tensor of floating point numbers, got {given}")
    if embeddings.ndim != 2 or embeddings.shape[1] != n_features:
        raise ValueError(
            f"embeddings have shape {tuple(embeddings.shape)}, but this loss was made for "
            f"{n_features} features: expected (rows, {n_features})"
        )


def check_labels(labels: Any, n_rows: int, n_classes: int) -> None:
    """Raise unless these are the codes of classes of so many rows.

    Codes are looked at on a CPU only: a GPU would have to be waited for.
    """
    is_tensor = isinstance(labels, Tensor)
    if not is_tensor or labels.is_floating_point() or labels.dtype == torch.bool:
        given = labels.dtype if is_tensor else type(labels).__name__
        raise TypeError(f"labels must be a tensor of integer codes of classes, got {given}")
    if labels.shape != (n_rows,):
        raise ValueError(
            f"labels have shape {tuple(labels.shape)}, but there are {n_rows} embeddings; pass one "
            "label for each"
        )
    if not n_rows:
        raise ValueError("the batch is empty; pass at least one row")
    if labels.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= n_classes:
            raise ValueError(
                f"labels are from {low} to {high}, but this loss was made for {n_classes} classes, "
                f"with codes from 0 to {n_classes - 1}"
            )
