"""Refuse wrong batches before any work is done, with messages that say what was passed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from latentmetric.validation.parameters import Integer


def check_counts(latents_per_class: Any, n_classes: int) -> list[int]:
    """The number of latent examples of each class."""
    counts = np.atleast_1d(latents_per_class).tolist()
    if np.ndim(latents_per_class) == 0:
        return [Integer(1).check("latents_per_class", counts[0])] * n_classes
    if len(counts) != n_classes:
        raise ValueError(
            f"latents_per_class has {len(counts)} numbers, but there are {n_classes} classes; "
            "pass one number for each class, or one for all"
        )
    rule = Integer(1)
    return [
        rule.check(f"latents_per_class of class {code}", each) for code, each in enumerate(counts)
    ]


def check_rows(embeddings: Tensor, n_features: int) -> None:
    """Raise unless these are embeddings of this length."""
    if not isinstance(embeddings, Tensor):
        raise TypeError(f"embeddings must be a tensor, got {type(embeddings).__name__}")
    if embeddings.ndim != 2 or embeddings.shape[1] != n_features:
        raise ValueError(
            f"embeddings have shape {tuple(embeddings.shape)}, but this loss was made for "
            f"{n_features} features: expected (rows, {n_features})"
        )
    if not embeddings.is_floating_point():
        raise TypeError(f"embeddings must be floating point numbers, got {embeddings.dtype}")


def check_batch(embeddings: Tensor, labels: Tensor, n_classes: int, n_features: int) -> None:
    """Raise unless these are embeddings of this length with the code of a class each.

    Codes are looked at on a CPU only: a GPU would have to be waited for.
    """
    check_rows(embeddings, n_features)
    if not isinstance(labels, Tensor):
        raise TypeError(f"labels must be a tensor, got {type(labels).__name__}")
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"labels have shape {tuple(labels.shape)}, but there are {len(embeddings)} embeddings; "
            "pass one label for each"
        )
    if not len(embeddings):
        raise ValueError("the batch is empty; pass at least one row")
    if labels.is_floating_point() or labels.dtype == torch.bool:
        raise TypeError(f"labels must be integer codes of classes, got {labels.dtype}")
    if labels.device.type == "cpu" and not torch.compiler.is_compiling():
        check_codes(labels, n_classes)


def check_codes(codes: Any, n_classes: int) -> None:
    """Raise unless codes are those of the classes."""
    low, high = int(codes.min()), int(codes.max())
    if low < 0 or high >= n_classes:
        raise ValueError(
            f"labels are from {low} to {high}, but this loss was made for {n_classes} classes, "
            f"with codes from 0 to {n_classes - 1}"
        )
