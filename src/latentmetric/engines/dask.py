"""MaPML on a Dask cluster, with the classes distributed over its workers.

Rows are shuffled by class once, so that each class is on one worker; then they never move again.
A round sends the metric and the latent examples to the workers and gets these back, moved; a step
of the refinement gets sums of gradients back. Only samples of a bounded number of rows reach the
client. When a worker is lost, the scheduler rebuilds its classes on another one, from the chunks of
the array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latentmetric.core.coordinates import Coordinates, peak_of
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.dask_population import DaskPopulation, on_cluster
from latentmetric.engines.protocol import (
    BlockFunction,
    LabelledBlockFunction,
    LabelledRows,
    Partition,
    Progress,
)
from latentmetric.extras import pip_install
from latentmetric.validation.labels import (
    check_classes,
    check_same_length,
    checked_labels,
    classes_and_codes,
)
from latentmetric.validation.rows import (
    as_floats,
    check_description,
    check_features,
    check_finite,
    float_dtypes,
    has_room,
)


def active_client() -> Any:
    """The active Dask client."""
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError(f"Dask arrays need dask.distributed: {pip_install('dask')}") from error
    try:
        return get_client()
    except ValueError as error:
        raise RuntimeError(
            "Dask arrays are fitted on a cluster, and no client is active; start one: "
            "client = dask.distributed.Client()"
        ) from error


@dataclass(frozen=True)
class LabelledChunks(LabelledRows):
    """Rows and labels in chunks on the workers; ``codes`` are futures of the chunks of labels."""

    sizes: Ints = field(kw_only=True)
    """The number of rows of each class."""


class DaskEngine:
    """Dask arrays: fits on the active cluster, answers as lazy arrays."""

    in_process = False

    def holds(self, X: Any) -> bool:
        """See ``LocalEngine``."""
        return type(X).__module__.split(".")[0] in ("dask", "dask_expr")

    def validate(self, X: Any, estimator: Any, *, training: bool) -> Any:
        """See ``LocalEngine``."""
        _refuse_other_collections(X, "X")
        n_rows = 2 if np.isnan(X.shape[0]) else X.shape[0]
        check_description((n_rows, *X.shape[1:]), X.dtype, 2 if training else 1)
        check_features(estimator, int(X.shape[1]), None, reset=training)
        return X

    def labelled(self, rows: Any, y: Any, owner: str) -> LabelledChunks:
        """See ``LocalEngine``; labels are checked on the workers, no row is read yet."""
        client = active_client()
        X, y = _aligned(rows, y)
        labels = client.compute(y.to_delayed().ravel().tolist())
        starts = np.cumsum([0, *X.chunks[0][:-1]]).tolist()
        counted = client.gather(client.map(_count, labels, starts))
        classes, _ = classes_and_codes(np.concatenate([names for names, _ in counted]))
        check_classes(classes, owner)
        sizes = np.zeros(len(classes), dtype=np.intp)
        for names, counts in counted:
            sizes[np.searchsorted(classes, names)] += counts
        return LabelledChunks(self, X, classes, labels, sizes=sizes)

    def partition(self, labelled: Any, n_threads: int, progress: Progress) -> Partition:
        """See ``LocalEngine``: rows are sent to the workers of their classes."""
        client, X, sizes = active_client(), labelled.rows, labelled.sizes
        chunks = client.compute(X.to_delayed().ravel().tolist())
        starts = np.cumsum([0, *X.chunks[0][:-1]]).tolist()
        summaries = client.gather(client.map(_summarise, chunks, starts, n_rows=X.shape[0]))
        sums, lows, highs = zip(*summaries, strict=True)
        centre, low, high = np.sum(sums, axis=0), np.min(lows, axis=0), np.max(highs, axis=0)
        *narrow, widest = float_dtypes(X.dtype)
        ends = np.array([low.min(), high.max()], np.float64)
        dtype = next((candidate for candidate in narrow if has_room(ends, candidate)), widest)
        workers = client.nthreads()
        addresses = [address for address, threads in workers.items() for _ in range(threads)]
        owners = _owners(sizes, min(len(sizes), len(addresses)))
        shared, parts = on_cluster(client, (labelled.classes, owners)), []
        for part in range(owners.max() + 1):
            pieces = client.map(
                _piece, chunks, labelled.codes, [shared] * len(chunks), [part] * len(chunks)
            )
            parts.append(
                client.submit(
                    _gather, pieces, dtype, workers=[addresses[part]], allow_other_workers=True
                )
            )
        del chunks, pieces  # so that the workers can release the chunks once the parts exist
        scale = peak_of(centre, low, high, dtype) or 1.0
        unit = Coordinates(centre, scale)
        total = sum(client.gather(client.map(_sum_of_radii, parts, unit=unit)))
        if total > 0:  # as in ``Coordinates.of``
            scale *= float(np.sqrt(total / X.shape[0] / X.shape[1]))
        coordinates = Coordinates(centre, scale)
        return Partition(DaskPopulation(client, parts, owners, sizes, coordinates, dtype))

    def map_blocks(self, function: BlockFunction, rows: Any, dtype: Any, width: int | None) -> Any:
        """See ``LocalEngine``; returns a lazy Dask array."""
        from dask.delayed import delayed

        X = rows.rechunk({1: -1})
        shape: dict[str, Any] = {"drop_axis": 1}
        if width is not None:
            shape = {"chunks": (X.chunks[0], (width,))}
        empty = np.empty((0,) if width is None else (0, width), dtype)
        return X.map_blocks(
            _answer, function=delayed(function), empty=empty, meta=empty, dtype=dtype, **shape
        )

    def each_block(self, function: LabelledBlockFunction, labelled: Any) -> Iterator[Any]:
        """See ``LocalEngine``; only what the function returns leaves the workers."""
        from dask.delayed import delayed

        client, X = active_client(), labelled.rows
        shared = on_cluster(client, (function, labelled.classes))
        chunks, starts = X.to_delayed().ravel().tolist(), np.cumsum([0, *X.chunks[0][:-1]])
        tasks = [
            delayed(_examine)(chunk, labels, start, shared)
            for chunk, labels, start in zip(chunks, labelled.codes, starts.tolist(), strict=True)
        ]
        for found in client.compute(tasks):
            yield found.result()

    def gather(self, rows: Any, caller: str) -> Floats:
        """See ``LocalEngine``."""
        raise TypeError(
            f"{caller} needs X in the memory of one process, but it is a Dask array and is not "
            "gathered silently; if it fits, pass X.compute()"
        )


def _refuse_other_collections(X: Any, name: str) -> None:
    if type(X).__name__ != "Array":
        raise TypeError(
            f"{name} is a Dask {type(X).__name__}; pass a Dask array, for example "
            f"{name}.to_dask_array(lengths=True), or {name}.compute() if it fits into memory"
        )


def _answer(rows: Any, function: BlockFunction, empty: Any, block_info: Any = None) -> Any:
    """The answers to one chunk, on a worker; error messages need the number of its first row."""
    if not len(rows):
        return empty
    first = block_info[0]["array-location"][0][0] if block_info else 0
    start = 0 if np.isnan(first) else int(first)
    return function(as_floats(rows, start), start)


def _aligned(X: Any, y: Any) -> tuple[Any, Any]:
    """X in chunks of whole rows, and y in chunks of the same rows; none is empty."""
    from dask.array import from_array

    if not DaskEngine().holds(y):
        y = from_array(checked_labels(y), chunks=-1)  # type: ignore[no-untyped-call]
    _refuse_other_collections(y, "y")
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead")
    X, y = (part.compute_chunk_sizes() if np.isnan(part.shape[0]) else part for part in (X, y))
    check_same_length(X.shape[0], y.shape[0])
    if X.shape[0] < 2:
        raise ValueError(f"X has {X.shape[0]} rows; at least 2 are needed")
    sizes = tuple(size for size in X.chunks[0] if size)  # selections leave empty chunks behind
    return X.rechunk({0: sizes, 1: -1}), y.rechunk((sizes,))


def _owners(sizes: Ints, n_parts: int) -> Ints:
    """The part of every class: the largest class first, each to the part with the fewest rows."""
    owners = np.empty(len(sizes), dtype=np.intp)
    loads = np.zeros(n_parts, dtype=np.intp)
    for code in np.argsort(-sizes, kind="stable"):
        owners[code] = np.argmin(loads)
        loads[owners[code]] += sizes[code]
    return owners


def _count(labels: Any, start: int) -> tuple[Any, Ints]:
    names, codes = classes_and_codes(checked_labels(labels, start=start))
    return names, np.bincount(codes, minlength=len(names))


def _summarise(rows: Any, start: int, n_rows: int) -> tuple[Floats, Floats, Floats]:
    """The share of a chunk in the mean, and the range of each column; raise on bad values."""
    check_finite(rows, start)
    sums = np.divide(rows, n_rows, dtype=np.float64).sum(axis=0)
    return sums, rows.min(axis=0), rows.max(axis=0)


def _piece(rows: Any, labels: Any, classes_and_owners: Any, part: int) -> tuple[Any, Ints]:
    """The rows of a chunk that belong to one part, and their codes."""
    classes, owners = classes_and_owners
    codes = np.searchsorted(classes, labels)
    mine = owners[codes] == part
    return rows[mine], codes[mine]


def _gather(pieces: list[tuple[Any, Ints]], dtype: np.dtype[Any]) -> tuple[Floats, list[Ints]]:
    """The rows of a part, and the row numbers of each of its classes."""
    codes = np.concatenate([codes for _, codes in pieces])
    rows = np.concatenate([rows for rows, _ in pieces]).astype(dtype, copy=False)
    order = np.argsort(codes, kind="stable")
    return rows, np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _examine(
    rows: Any, labels: Any, start: int, function_and_classes: tuple[LabelledBlockFunction, Any]
) -> Any:
    """What a function of labelled rows returns for one chunk, on a worker."""
    function, classes = function_and_classes
    return function(as_floats(rows, start), np.searchsorted(classes, labels), start)


def _sum_of_radii(part: tuple[Floats, list[Ints]], unit: Coordinates) -> float:
    return float(unit.radii(part[0]).sum())
