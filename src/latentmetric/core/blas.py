"""BLAS routines for triangles, called without Python's lock.

NumPy has no product with a triangle and no rank update in place. SciPy has both, but its functions
keep Python's lock, so that no other thread can work meanwhile. These call the same routines
through the pointers that SciPy offers to compiled code.
"""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    byref,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_void_p,
    py_object,
    pythonapi,
)
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas

from latentmetric.core.types import Floats

_NUMBERS: dict[np.dtype[Any], tuple[str, Any]] = {
    np.dtype(np.float32): ("s", c_float),
    np.dtype(np.float64): ("d", c_double),
}
_name_of = PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
_pointer_of = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
_UPPER, _PLAIN, _LEFT, _NOT_UNIT = (c_char(letter) for letter in (b"U", b"N", b"L", b"N"))


def add_squares(matrix: Floats, rows: Floats, weight: float, share: float = 1.0) -> None:
    """N ← share·N + weight·Σ xxᵀ over the rows, in the upper triangle of ``matrix``, in place.

    ``matrix`` is in Fortran's order, ``rows`` are in C's, and both have the same dtype.
    """
    _check(matrix, rows)
    syrk, number = _routine("syrk", matrix.dtype)
    n_rows, n_features = rows.shape
    syrk(
        byref(_UPPER), byref(_PLAIN), byref(c_int(n_features)), byref(c_int(n_rows)),
        byref(number(weight)), rows.ctypes.data, byref(c_int(n_features)),
        byref(number(share)), matrix.ctypes.data, byref(c_int(n_features)),
    )  # fmt: skip


def times_triangle(matrix: Floats, rows: Floats) -> Floats:
    """Tx of every row x, with T the upper triangle of ``matrix``; half the work of a product."""
    _check(matrix, rows)
    trmm, number = _routine("trmm", matrix.dtype)
    n_rows, n_features = rows.shape
    turned = rows.copy()
    trmm(
        byref(_LEFT), byref(_UPPER), byref(_PLAIN), byref(_NOT_UNIT), byref(c_int(n_features)),
        byref(c_int(n_rows)), byref(number(1.0)), matrix.ctypes.data, byref(c_int(n_features)),
        turned.ctypes.data, byref(c_int(n_features)),
    )  # fmt: skip
    return turned


def _check(matrix: Floats, rows: Floats) -> None:
    """Raise unless BLAS would read and write within these arrays: it checks nothing itself."""
    if matrix.shape != (rows.shape[1],) * 2 or matrix.dtype != rows.dtype:
        raise ValueError(f"{matrix.dtype} {matrix.shape} does not fit {rows.dtype} {rows.shape}")
    if not (matrix.flags.f_contiguous and matrix.flags.writeable and rows.flags.c_contiguous):
        raise ValueError("BLAS needs a writeable matrix in Fortran's order and rows in C's")


@cache
def _routine(name: str, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """A routine for numbers of this type, and the type that ctypes has for them."""
    letter, number = _NUMBERS[dtype]
    word, size, scalar, array = POINTER(c_char), POINTER(c_int), POINTER(number), c_void_p
    arguments = {
        "syrk": [*[word] * 2, size, size, scalar, array, size, scalar, array, size],
        "trmm": [*[word] * 4, size, size, scalar, array, size, array, size],
    }
    pointers: dict[str, Any] = dict(cython_blas.__pyx_capi__)
    capsule = pointers[letter + name]
    pointer = _pointer_of(capsule, _name_of(capsule))
    return CFUNCTYPE(None, *arguments[name])(pointer), number
