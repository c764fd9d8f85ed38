"""Read pickles of plain data from files that others made, without running their code.

A pickle can name any function and have it called, so ``pickle.load`` runs whatever the author of
the file chose. Here a pickle may use dicts, lists, tuples, strings, bytes, numbers, and the names
that an array of bytes is pickled with. Those names resolve to the classes below: not even NumPy's
own unpickling code runs.
"""

from __future__ import annotations

import pickle
from math import prod
from typing import Any, BinaryIO

import numpy as np


class _Dtype:
    """In place of an array's dtype; only unsigned bytes are admitted."""

    def __init__(self, name: str | bytes, *flags: object) -> None:
        if name not in ("u1", b"u1"):
            raise ValueError(f"an array has the dtype {name!r}, only u1 is admitted")

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and flags, which unsigned bytes do not have."""


class _Array:
    """In place of an array; builds it from its shape and its bytes."""

    def __init__(self, *ignored: object) -> None:
        self.content = np.empty(0, dtype=np.uint8)

    def __setstate__(self, state: tuple[int, tuple[int, ...], _Dtype, bool, bytes]) -> None:
        _, shape, dtype, by_columns, content = state
        if not (isinstance(dtype, _Dtype) and isinstance(content, bytes)):
            raise ValueError("an array is not made of bytes")
        if by_columns or min(shape) < 0 or prod(shape) != len(content):
            raise ValueError(f"an array of the shape {shape} has {len(content)} bytes")
        self.content = np.frombuffer(content, dtype=np.uint8).reshape(shape)


ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
}
"""What the names in a pickle resolve to; ``ndarray`` is only an argument of ``_reconstruct``."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Called for every name in the pickle."""
        if (module, name) not in ADMITTED:
            raise ValueError(f"it refers to {module}.{name}")
        return ADMITTED[module, name]


def load_plain_dict(file: BinaryIO) -> dict[str, Any]:
    """A pickled dict of plain values and arrays of bytes.

    Parameters
    ----------
    file : binary file
        A pickle of Python 2 or 3. Keys become strings; strings of Python 2 become bytes.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If the file is damaged, or refers to anything but plain data.
    """
    try:
        loaded = _Unpickler(file, encoding="bytes").load()
    except Exception as error:  # a damaged pickle can raise almost anything
        raise ValueError(f"it is not a pickle of plain data: {error}") from error
    if type(loaded) is not dict:
        raise ValueError(f"it is a pickle of {type(loaded).__name__}, a dict is expected")
    return {
        key.decode() if isinstance(key, bytes) else str(key): (
            value.content if isinstance(value, _Array) else value
        )
        for key, value in loaded.items()
    }
