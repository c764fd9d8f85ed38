"""Data to try things on: requests to a travel bank with their intents and sentence embeddings.

``requests.npy`` holds the rows x_train that ``benchmarks/compute_features.py texts
train=requests.csv test=requests.csv`` computes.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.core.types import Floats

__all__ = ["Requests", "load_requests"]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Requests:
    """Texts, what their writers want, and the texts as vectors."""

    texts: np.ndarray[Any, Any]
    """Short sentences in lower case."""
    intents: np.ndarray[Any, Any]
    """Labels; "none" is that of texts that are about something else."""
    X: Floats
    """(150, 384) in float32: all-MiniLM-L6-v2 embeddings, of length 1."""


def load_requests() -> Requests:
    """Load 150 requests to a travel bank: 10 of each of 13 intents, and 20 of no intent.

    Returns
    -------
    Requests

    Examples
    --------
    >>> from latentmetric.datasets import load_requests
    >>> requests = load_requests()
    >>> print(requests.texts[0], "->", requests.intents[0])
    my card was stolen -> lost card
    >>> requests.X.shape
    (150, 384)
    """
    with (HERE / "requests.csv").open(newline="", encoding="utf-8") as file:
        texts, intents = np.array(list(csv.reader(file))[1:]).T
    return Requests(texts, intents, np.load(HERE / "requests.npy").astype(np.float32))
