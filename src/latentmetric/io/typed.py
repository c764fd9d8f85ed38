"""Columns of text as labels, numbers or ids, so that no two texts become one value."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import numpy as np

from latentmetric.io.cells import is_boolean, is_value

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Text that an int64 gives back letter by letter."""


def as_labels(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole numbers where these print exactly as the texts, other numbers likewise, else the texts.

    So no two texts become one label: 1.0 and 1.00 differ, and 007 is a name.
    """
    distinct, places = np.unique(texts, return_inverse=True)
    words = distinct.tolist()
    if all(map(WHOLE_NUMBER.fullmatch, words)):
        return distinct.astype(np.int64)[places]
    if all(map(_is_given_back, words)):
        numbers = distinct.astype(np.float64)
        if len(np.unique(numbers)) == len(numbers):  # 0.0 and -0.0 are equal
            return numbers[places]
    return texts


def as_numbers(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers where all texts are such, however written: for labels known to be numbers."""
    words = texts.tolist()
    if not all(is_value(word) and not is_boolean(word) for word in words):
        return texts
    numbers = texts.astype(np.float64)
    return numbers if (np.abs(numbers) < 2**53).all() else texts


def as_ids(texts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole numbers where these print exactly as the texts, else the texts."""
    if not all(map(WHOLE_NUMBER.fullmatch, texts.tolist())):
        return texts
    return texts.astype(np.int64)


def _is_given_back(text: str) -> bool:
    """Whether a finite float prints exactly as the text."""
    try:
        number = float(text)
    except ValueError:
        return False
    return isfinite(number) and repr(number) == text
