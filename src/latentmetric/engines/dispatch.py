"""The single entry point for rows and labels of any kind, all checked by the same rules.

The rules are in ``latentmetric.validation``; an engine applies them where its rows are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.core.types import Floats
from latentmetric.engines.dask import DaskEngine
from latentmetric.engines.local import LocalEngine
from latentmetric.engines.protocol import BlockFunction, LabelledRows
from latentmetric.validation.labels import Labels, check_same_length, checked_labels

ENGINES: tuple[Any, ...] = (DaskEngine(),)
"""The first of these engines that holds the rows is used."""

MEMORY = LocalEngine()
"""Holds everything else: files, and what scikit-learn can turn into an array."""


def engine_of(X: Any) -> Any:
    """The engine that holds these rows."""
    if type(X) is np.ndarray:
        return MEMORY
    return next((engine for engine in ENGINES if engine.holds(X)), MEMORY)


def validate(X: Any, y: Any, estimator: Any) -> LabelledRows:
    """Training rows with their labels, or an error before any work is done."""
    engine, of_labels = engine_of(X), engine_of(y)
    if not of_labels.in_process and of_labels is not engine:
        raise TypeError(
            f"y is a {type(y).__module__.split('.')[0]} {type(y).__name__}, but X is "
            f"{type(X).__name__}; pass both as Dask arrays, or pass y.compute()"
        )
    rows = engine.validate(X, estimator, training=True)
    labelled: LabelledRows = engine.labelled(rows, y, type(estimator).__name__)
    return labelled


def map_blocks(
    function: BlockFunction, X: Any, estimator: Any, dtype: Any, width: int | None = None
) -> Any:
    """Call ``function(block, start)`` on every block of queries; see ``LocalEngine.map_blocks``."""
    engine = engine_of(X)
    rows = engine.validate(X, estimator, training=False)
    return engine.map_blocks(function, rows, dtype, width)


def check_in_memory(caller: str, instead: str, **given: Any) -> None:
    """Raise ``TypeError`` if rows or labels are on a cluster, but ``caller`` needs them here."""
    for name, value in given.items():
        if not engine_of(value).in_process:
            raise TypeError(
                f"{caller} needs {name} in the memory of one process, but it is a "
                f"{type(value).__module__.split('.')[0]} {type(value).__name__}; use {instead}"
            )


def in_this_process(X: Any, estimator: Any, caller: str) -> Floats:
    """Queries as one array; raise ``TypeError`` if they are on a cluster."""
    engine = engine_of(X)
    rows: Floats = engine.gather(engine.validate(X, estimator, training=False), caller)
    estimator.model_.check_reach(rows)
    return rows


def labelled_queries(X: Any, y: Any, estimator: Any, caller: str) -> tuple[Floats, Labels]:
    """Queries and their labels as arrays, checked by the same rules as training rows."""
    check_in_memory(caller, "X.compute() and y.compute() if they fit into memory", X=X, y=y)
    labels = checked_labels(y)
    rows = in_this_process(X, estimator, caller)
    check_same_length(len(rows), len(labels))
    return rows, labels
